//! Floods of refused calls, and floods of actions of a guest within a call. The ledger grows by few
//! rows, and loses no count.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_host::{Host, Request};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;

use super::{World, call, kinds};

/// The most bytes that a flood may add to the ledger's files.
const MAX_GROWTH_BYTES: usize = 1 << 20;
/// The number of measured calls of the neighbour.
const MEASURED: usize = 400;
/// The highest ratio of the neighbour's 99th percentile during a flood to the one without. The
/// flood keeps one core busy, and the neighbour's calls wait for the disk.
const MAX_RATIO: f64 = 10.0;
/// Below this, a call counts as fast regardless of its time without a flood.
const FAST: Duration = Duration::from_millis(20);

/// Whether tests run at their full size, as `cargo xtask long` has them.
fn long() -> bool {
    std::env::var_os("TOOLWARD_LONG").is_some()
}

fn flood_size() -> u64 {
    if long() { 100_000 } else { 5_000 }
}

/// Makes calls of one principal to a tool without grants, at most 10,000 per second.
async fn flood(host: &Host, count: u64) -> Duration {
    let start = Instant::now();
    for number in 0..count {
        let request = Request::with_value("hostile.closed", json!({"do": "echo"}));
        let reply = host.call(request.principal("mallory")).await;
        assert!(reply.result.is_err());
        if number.is_multiple_of(100) {
            // Not faster than 10,000 a second.
            tokio::time::sleep_until((start + Duration::from_micros(100) * number as u32).into())
                .await;
        }
    }
    start.elapsed()
}

/// The number of refusals with a separate row, and of all refusals.
fn refusals(events: &[Event]) -> (u64, u64) {
    let (mut rows, mut counted) = (0, 0);
    for event in events {
        match event {
            Event::Refused(_) => rows += 1,
            Event::RefusedMore(body) => {
                counted += body.codes.values().map(|n| n.get()).sum::<u64>()
            }
            _ => {}
        }
    }
    (rows, rows + counted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_is_counted_in_few_rows() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let before = world.bytes().len();
    let took = flood(&host, flood_size()).await;
    // The refusals of the last second are counted when it is over.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let grown = world.bytes().len() - before;
    let events = world.events();
    let (rows, all) = refusals(&events);
    println!(
        "{all} refusals in {took:.1?}: {} rows, {grown} bytes",
        events.len()
    );
    assert_eq!(all, flood_size());
    // Ten a second, and a row with the count of all others.
    let seconds = took.as_secs() + 2;
    assert!(rows <= 10 * seconds, "{rows} rows in {took:?}");
    assert!(events.len() as u64 <= 11 * seconds, "{:?}", kinds(&events));
    assert!(grown < MAX_GROWTH_BYTES, "{grown} bytes");
    assert!(world.reader().verify(&[]).unwrap().holds());
}

/// The 99th percentile of the times of another principal's calls.
async fn neighbour(host: &Host) -> Duration {
    let mut times = Vec::new();
    for _ in 0..MEASURED {
        let start = Instant::now();
        let reply = call(host, "hostile.changes", json!({"do": "echo"})).await;
        times.push(start.elapsed());
        assert!(reply.result.is_ok(), "{:?}", reply.result);
        assert_eq!(reply.metadata.recorded, Some(true));
    }
    times.sort();
    times[times.len() * 99 / 100]
}

#[tokio::test(flavor = "multi_thread")]
async fn another_principals_calls_are_recorded_beside_a_flood() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    neighbour(&host).await;
    let quiet = neighbour(&host).await;
    let flooding = tokio::spawn({
        let host = host.clone();
        async move {
            loop {
                flood(&host, 1000).await;
            }
        }
    });
    let beside = neighbour(&host).await;
    flooding.abort();
    let ratio = beside.as_secs_f64() / quiet.as_secs_f64();
    println!(
        "99 % of the neighbour's calls: {quiet:?}, beside a flood {beside:?}: {ratio:.2} times"
    );
    let events = world.events();
    let count = |kind| kinds(&events).iter().filter(|one| **one == kind).count();
    assert_eq!(
        (count("started"), count("ended")),
        (3 * MEASURED, 3 * MEASURED)
    );
    assert!(refusals(&events).1 > 0, "there was a flood");
    // Times mean nothing while other tests run at the same time.
    if long() {
        assert!(
            beside < FAST || ratio < MAX_RATIO,
            "{quiet:?}, then {beside:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_guest_does_within_a_call_adds_no_rows_but_those_of_nested_calls() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let nested = |tool: &str, times: u64| json!({"do": "call-tool", "tool": tool, "input": {"do": "echo"}, "times": times});
    let mut seen = 0;
    // Log records, calls of tools that were not granted, and calls of granted tools.
    for (input, rows) in [
        (json!({"do": "log", "n": 1000}), 1),
        (nested("hostile.closed", 32), 1),
        (nested("hostile.reads", 32), 1),
        (nested("hostile.changes", 64), 1 + 2 * 64),
    ] {
        let before = world.bytes().len();
        let reply = call(&host, "hostile.run", input.clone()).await;
        assert!(reply.result.is_ok(), "{input}: {:?}", reply.result);
        let grown = world.bytes().len() - before;
        let events = world.events();
        let new = &events[seen..];
        seen = events.len();
        println!("{input}: {} rows, {grown} bytes", new.len());
        assert_eq!(new.len(), rows, "{input}: {:?}", kinds(new));
    }
}
