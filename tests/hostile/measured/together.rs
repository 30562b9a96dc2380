//! Calls of one principal that take all the memory that they get.

use serde_json::json;
use tokio::task::JoinSet;
use toolward_host::{Limits, Request};

use super::process::{MIB, alone, idle, peak};
use super::{MOST, TOOL};
use crate::limits::hit;
use crate::world::{Bundle, Guest, value};

const CALLS: u64 = 20;
const TOTAL: u64 = 256 * MIB;

#[test]
fn calls_of_one_principal_stay_below_the_total_and_a_neighbour_is_answered() {
    alone(
        concat!(
            module_path!(),
            "::calls_of_one_principal_stay_below_the_total_and_a_neighbour_is_answered"
        ),
        together,
    );
}

async fn together() {
    let bundle = Bundle::of(TOOL, Guest::Plain, "", MOST);
    let limits = Limits {
        memory_total: Some(TOTAL),
        ..Limits::default()
    };
    let host = bundle.builder("").limits(limits).build().unwrap();
    value(&host, TOOL, json!({"do": "echo", "value": 7})).await;
    let before = idle();
    let (peak, ended) = peak(async {
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let input = json!({"do": "allocate-forever"});
            let request = Request::with_value(TOOL, input).principal("greedy");
            let host = host.clone();
            calls.spawn(async move { host.call(request).await });
        }
        let mut ended = Vec::new();
        while let Some(reply) = calls.join_next().await {
            ended.push(reply.unwrap());
            let input = json!({"do": "echo", "value": 7});
            let request = Request::with_value(TOOL, input).principal("modest");
            let neighbour = host.call(request).await;
            assert!(neighbour.result.is_ok(), "{:?}", neighbour.result);
        }
        ended
    })
    .await;
    let mut stopped = 0;
    for reply in &ended {
        // The limit of each call equals the total, so no call reaches its own limit.
        match hit(reply.result.as_ref().unwrap_err()) {
            ("toolward:memory_exceeded", "memory_total") => stopped += 1,
            ended => assert_eq!(ended, ("rate_limited", "memory_total")),
        }
    }
    println!(
        "{CALLS} calls: resident {} MiB, at most {}; {stopped} stopped",
        before / MIB,
        peak / MIB
    );
    assert!(stopped > 0);
    assert!(peak <= before + TOTAL + 64 * MIB, "at most: {peak}");
}
