use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::leases::Withdrawal;

fn digest(number: u64) -> CallDigest {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_le_bytes());
    digest
}

fn principal(name: &str) -> CallDigest {
    let mut digest = [0; 32];
    digest[..name.len()].copy_from_slice(name.as_bytes());
    digest
}

/// Another call with this id.
fn again(call: &CallId) -> CallId {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    CallId { call: id, ..*call }
}

/// A call with a new id.
fn new_call(name: &str) -> CallId {
    static IDS: AtomicU64 = AtomicU64::new(1);
    again(&CallId {
        principal: principal(name),
        id: digest(IDS.fetch_add(1, Ordering::Relaxed)),
        input: [0; 32],
        call: [0; 16],
    })
}

/// A reply of `bytes` bytes.
fn reply(bytes: usize) -> StoredReply {
    let bundle = || Arc::new(Withdrawal::new("a"));
    StoredReply {
        bytes: vec![b'x'; bytes].into(),
        bundles: [bundle(), bundle()],
    }
}

/// Runs a call with a new id to its end.
fn ended(
    memory: &mut Memory,
    principal: &str,
    bytes: usize,
    remembered: bool,
    now: Instant,
) -> CallId {
    let call = new_call(principal);
    assert_eq!(state(memory, &call, now), "new");
    let reply = reply(bytes);
    memory.end(&call, CallEnding::Replied { reply, remembered }, now);
    again(&call)
}

fn state(memory: &mut Memory, call: &CallId, now: Instant) -> &'static str {
    match memory.find(call, now) {
        Found::Runs(_) => "runs",
        Found::Known(begun) => match begun {
            Begun::New => "new",
            Begun::Running => "running",
            Begun::Busy(_) => "busy",
            Begun::Replied(_) => "replied",
            Begun::Ran => "ran",
            Begun::Differs => "differs",
        },
    }
}

#[test]
fn the_last_64_replies_of_a_principal_are_kept_and_the_ids_of_older_ones() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let other = ended(&mut memory, "eve", 10, true, now);
    let first = ended(&mut memory, "ada", 10, true, now);
    let unremembered = ended(&mut memory, "ada", 10, false, now);
    let all: Vec<_> = (0..MAX_REPLIES)
        .map(|_| ended(&mut memory, "ada", 10, true, now))
        .collect();
    assert!(
        all.iter()
            .all(|name| state(&mut memory, name, now) == "replied")
    );
    assert_eq!(state(&mut memory, &first, now), "ran");
    assert_eq!(state(&mut memory, &unremembered, now), "new");
    assert_eq!(state(&mut memory, &other, now), "replied");
}

#[test]
fn replies_of_a_principal_have_4_mib_together() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let names: Vec<_> = (0..5)
        .map(|_| ended(&mut memory, "ada", 1 << 20, true, now))
        .collect();
    let states: Vec<_> = names
        .iter()
        .map(|name| state(&mut memory, name, now))
        .collect();
    assert_eq!(states, ["ran", "ran", "replied", "replied", "replied"]);
}

#[test]
fn a_reply_is_kept_for_ten_minutes_and_its_id_for_25_hours() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let name = ended(&mut memory, "ada", 10, true, now);
    let after = |minutes| now + Duration::from_mins(minutes);
    assert_eq!(
        state(&mut memory, &name, after(10) - Duration::from_secs(1)),
        "replied"
    );
    assert_eq!(state(&mut memory, &name, after(10)), "ran");
    assert_eq!(state(&mut memory, &name, after(25 * 60)), "ran");
    assert_eq!(state(&mut memory, &name, after(25 * 60 + 11)), "new");
}

#[test]
fn whoever_has_most_loses_it_where_all_have_too_much() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let small = ended(&mut memory, "ada", 10, true, now);
    for number in 0..20 {
        for _ in 0..3 {
            ended(&mut memory, &format!("p{number}"), 1 << 20, true, now);
        }
        let bytes: u64 = memory.shares.values().map(|share| share.bytes).sum();
        assert!(bytes <= MAX_TOTAL_BYTES, "{number}: {bytes}");
    }
    assert_eq!(state(&mut memory, &small, now), "replied");
    for _ in 0..10 {
        ended(&mut memory, "p0", 1 << 20, true, now);
    }
    assert_eq!(state(&mut memory, &small, now), "replied");
}

#[test]
fn ids_without_replies_are_bounded_and_those_of_others_stay() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let ran = |memory: &mut Memory, principal: &str| {
        let call = new_call(principal);
        assert_eq!(state(memory, &call, now), "new");
        memory.end(&call, CallEnding::Ran, now);
        again(&call)
    };
    let other = ran(&mut memory, "eve");
    let first = ran(&mut memory, "ada");
    for _ in 0..MAX_IDS {
        ran(&mut memory, "ada");
    }
    assert_eq!(state(&mut memory, &first, now), "new");
    assert_eq!(state(&mut memory, &other, now), "ran");
}

#[test]
fn so_many_wait_for_a_running_call_and_others_are_told_to_come_back() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    let first = new_call("ada");
    assert_eq!(state(&mut memory, &first, now), "new");
    assert_eq!(state(&mut memory, &first, now), "new", "repeated");
    for _ in 0..MAX_WAITING {
        assert_eq!(state(&mut memory, &again(&first), now), "runs");
    }
    assert_eq!(state(&mut memory, &again(&first), now), "busy");
    let other = CallId {
        input: [1; 32],
        ..again(&first)
    };
    assert_eq!(state(&mut memory, &other, now), "differs");
    memory.waits_no_more(&first.principal);
    assert_eq!(state(&mut memory, &again(&first), now), "runs");
    memory.end(&again(&first), CallEnding::Forgotten, now);
    assert_eq!(
        state(&mut memory, &again(&first), now),
        "busy",
        "another call ended"
    );
    memory.end(&first, CallEnding::Forgotten, now);
    assert_eq!(state(&mut memory, &again(&first), now), "new");
}

#[test]
fn what_nobody_calls_again_leaves_nothing() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    for number in 0..100 {
        ended(&mut memory, &format!("p{number}"), 10, true, now);
    }
    // Replies become ids first, and the ids are dropped a day later.
    for hours in [1, 27] {
        state(
            &mut memory,
            &new_call("ada"),
            now + Duration::from_hours(hours),
        );
    }
    assert!(memory.shares.len() <= 1, "{}", memory.shares.len());
}
