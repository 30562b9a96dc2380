//! The resources behind grants: the place of tools' own data, and the reports of a driver's
//! attempts beyond its grant.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::{dev, under_work};
use crate::support::{Ended, Machine, tree};

fn counter() -> Machine {
    let machine = Machine::new();
    under_work(&machine, "kv-counter");
    let publisher = dev(&machine, "kv-counter");
    machine.configure(&format!(
        "[[grant]]\npublisher = {publisher:?}\nmutates = [\"database:counters\"]\n\
         preapproved = true\n"
    ));
    machine
}

fn add(machine: &Machine, flags: &str) -> u64 {
    let ended = machine
        .toolward(&format!("call kv.counter --dev kv-counter {flags} --input"))
        .arg(json!({ "action": "add", "counter": "visits" }).to_string())
        .ends(0);
    ended.json()["counters"][0]["value"].as_u64().unwrap()
}

#[test]
fn what_a_tool_counts_is_there_in_the_next_call_and_nobody_elses() {
    let machine = counter();
    assert_eq!([add(&machine, ""), add(&machine, "")], [1, 2]);
    // At its own place, and private to its user.
    let state = machine.home().join(".local/state/toolward");
    let mode = fs::metadata(&state).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert_eq!(add(&machine, "--state-dir elsewhere"), 1);
    assert!(machine.path("elsewhere/buckets/buckets.sqlite").is_file());
    assert_eq!(add(&machine, ""), 3);
}

#[test]
fn a_tool_without_buckets_makes_no_store() {
    let machine = Machine::with_example("text-stats");
    machine
        .toolward("call text.stats --bundle text-stats.toolbundle --trust-key example.pub.pem --set text=a")
        .ends(0);
    // Only the record of calls exists.
    let ledger = ".local/state/toolward/ledger";
    let entries = tree(&machine.home()).into_keys();
    let others = entries.filter(|name| !ledger.starts_with(name) && !name.starts_with(ledger));
    assert_eq!(others.count(), 0);
}

#[test]
fn a_store_that_others_can_reach_is_not_used() {
    let machine = counter();
    let folder = machine.path("open/buckets");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    machine
        .toolward("call kv.counter --dev kv-counter --state-dir open --input")
        .arg(json!({ "action": "list" }).to_string())
        .ends(1)
        .says("store-unusable");
}

fn reach_out(machine: &Machine, flags: &str) -> Ended {
    machine
        .toolward(&format!("call hostile.run --dev b {flags} --input"))
        .arg(json!({ "do": "connect", "name": "192.0.2.1:80" }).to_string())
        .end()
}

#[test]
fn what_a_driver_tried_beyond_its_grant_is_shown() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let ended = reach_out(&machine, "");
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.warns("tried what it was not granted");
    let envelope = reach_out(&machine, "--json").json();
    let found = &envelope["meta"]["violations"][0];
    assert_eq!(found["kind"], "socket", "{envelope}");
    assert!(envelope["meta"]["violations_total"].as_u64().unwrap() >= 1);
}

#[test]
fn a_policy_can_end_the_call_at_the_first_attempt() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine.configure("[defaults]\non_violation = \"end\"\n");
    let envelope = reach_out(&machine, "--json").json();
    assert_eq!(
        envelope["error"]["code"], "toolward:sandbox_violation",
        "{envelope}"
    );
    assert_eq!(reach_out(&machine, "").code, Some(1));
}

#[test]
fn a_context_that_no_contract_asks_for_is_not_dropped_in_silence() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let words = "call hostile.run --dev b --set do=echo";
    let ended = machine.toolward(words).arg("--context={}").ends(0);
    ended.warns("--context is not used: hostile.run has no contextSchema");
    // A pinned driver is used.
    let pin = r#"--context={"pinnedProvider":"hostile"}"#;
    for quiet in [machine.toolward(words).arg(pin), machine.toolward(words)] {
        let quiet = quiet.ends(0);
        assert!(!quiet.stderr.contains("--context"), "{quiet}");
    }
}
