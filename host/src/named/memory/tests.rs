use serde_json::{Value, json};

use super::*;
use crate::api::facts::CallFacts;
use crate::api::result::Output;
use crate::named::{Named, NamedFacts};

fn name(principal: &str, id: &str, input: &Value) -> CallName {
    let named = Named {
        id: id.to_owned(),
        session: None,
    };
    let facts = NamedFacts {
        principal,
        tool: "text.stats@1",
        input,
        context: None,
        resume: None,
    };
    named.check(&facts).unwrap()
}

fn new_name(principal: &str) -> CallName {
    name(principal, &uuid::Uuid::now_v7().to_string(), &json!({}))
}

/// A reply with a text of so many bytes.
fn reply(bytes: usize) -> Option<KeptReply> {
    let output = Output {
        structured: json!("x".repeat(bytes)),
        content: Vec::new(),
    };
    let withdrawals = [Arc::default(), Arc::default()];
    KeptReply::of(&Ok(output), &CallFacts::default(), withdrawals)
}

/// Runs the call of a new name to its end.
fn ended(
    memory: &mut Memory,
    principal: &str,
    bytes: usize,
    remembered: bool,
    now: Instant,
) -> CallName {
    let name = new_name(principal);
    assert_eq!(state(memory, &name, now), "new");
    memory.end(
        &name,
        Ending::Replied(Arc::new(reply(bytes).unwrap()), remembered),
        now,
    );
    name
}

fn state(memory: &mut Memory, name: &CallName, now: Instant) -> &'static str {
    match memory.find(name, now) {
        Found::New(_) => "new",
        Found::Runs(_) => "runs",
        Found::Busy => "busy",
        Found::Replied(_) => "replied",
        Found::Ran => "ran",
        Found::Differs => "differs",
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
    assert!(reply(4 << 20).is_none(), "too large by itself");
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
        let name = new_name(principal);
        assert_eq!(state(memory, &name, now), "new");
        memory.end(&name, Ending::Ran, now);
        name
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
    let id = uuid::Uuid::now_v7().to_string();
    let name_of = |input| name("ada", &id, &input);
    let first = name_of(json!({}));
    let Found::New(running) = memory.find(&first, now) else {
        panic!("not the first");
    };
    for _ in 0..MAX_WAITING {
        assert_eq!(state(&mut memory, &first, now), "runs");
    }
    assert_eq!(state(&mut memory, &first, now), "busy");
    assert_eq!(
        state(&mut memory, &name_of(json!({"n": 1})), now),
        "differs"
    );
    memory.waits_no_more(&first.principal());
    assert_eq!(state(&mut memory, &first, now), "runs");
    memory.end(&first, Ending::Forgotten, now);
    drop(running);
    assert_eq!(state(&mut memory, &first, now), "new");
}

#[test]
fn what_nobody_calls_again_leaves_nothing() {
    let (mut memory, now) = (Memory::default(), Instant::now());
    for number in 0..100 {
        ended(&mut memory, &format!("p{number}"), 10, true, now);
    }
    // Replies become ids first, and those go a day later.
    for hours in [1, 27] {
        state(
            &mut memory,
            &new_name("ada"),
            now + Duration::from_hours(hours),
        );
    }
    assert!(memory.shares.len() <= 1, "{}", memory.shares.len());
}
