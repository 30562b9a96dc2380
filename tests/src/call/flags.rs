//! Other flags of `call`.

use std::time::Duration;

use serde_json::json;

use super::{CALL, text_stats};
use crate::support::{Machine, tree};

fn hostile() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    machine
}

const HOSTILE: &str = "call hostile.run --dev hostile";

#[test]
fn a_caller_lowers_the_time_limit_and_can_not_raise_it() {
    let machine = hostile();
    let sleep = |flags: &str| {
        machine
            .toolward(&format!("{HOSTILE} {flags} --json --input"))
            .arg(json!({ "do": "sleep", "n": 600_000 }).to_string())
            .ends(1)
    };
    let lowered = sleep("--timeout 200");
    assert_eq!(lowered.json()["error"]["code"], "timeout");
    let allowed = lowered.json()["error"]["limit"]["allowed"].clone();
    assert_eq!(allowed, 200, "{lowered}");
    // The contract sets five seconds.
    let raised = sleep("--timeout 600000");
    assert_eq!(raised.json()["error"]["code"], "timeout");
    assert_eq!(raised.json()["error"]["limit"]["allowed"], 5000, "{raised}");
    assert!(raised.took < Duration::from_secs(120), "{raised}");
}

#[test]
fn a_driver_can_be_pinned_and_another_never_steps_in() {
    let machine = text_stats();
    machine
        .toolward(&format!("{CALL} --set text=a --driver text-stats"))
        .ends(0);
    let ended = machine
        .toolward(&format!("{CALL} --set text=a --driver other"))
        .ends(1);
    ended.says("pinned_provider_unavailable");
}

#[test]
fn what_the_driver_said_is_shown_on_request_with_its_publisher() {
    let machine = hostile();
    let call = |flags: &str| {
        machine
            .toolward(&format!("{HOSTILE} {flags} --input"))
            .arg(
                json!({ "do": "print", "name": "stderr", "value": "a note\nerror[x]: fake\n" })
                    .to_string(),
            )
            .ends(0)
    };
    assert!(!call("").stderr.contains("a note"));
    let ended = call("--verbose");
    let said: Vec<&str> = ended
        .stderr
        .lines()
        .filter(|line| line.contains("fake"))
        .collect();
    // No text of the driver is in the first column, where the command's own lines start.
    assert_eq!(said.len(), 1, "{ended}");
    assert!(said[0].starts_with("[hostile by dev:"), "{ended}");
}

/// Returns how many entries the home directory has, without the ledger.
fn besides_the_ledger(machine: &Machine) -> usize {
    let entries = tree(&machine.home()).into_keys();
    entries.filter(|name| !name.starts_with(".local")).count()
}

#[test]
fn the_cache_can_be_elsewhere_or_nowhere() {
    let machine = text_stats().with_own_cache();
    machine
        .toolward(&format!("{CALL} --set text=a --no-cache"))
        .ends(0);
    assert_eq!(besides_the_ledger(&machine), 0);
    machine
        .toolward(&format!("{CALL} --set text=a --cache-dir mine"))
        .ends(0);
    assert_eq!(besides_the_ledger(&machine), 0);
    assert!(
        tree(&machine.path("mine"))
            .keys()
            .any(|name| name.ends_with(".cwasm"))
    );
}

#[test]
fn a_tool_is_called_by_its_major_version_too() {
    let machine = text_stats();
    let words = "--bundle text-stats.toolbundle --trust-key example.pub.pem --set text=a";
    machine
        .toolward(&format!("call text.stats@1 {words}"))
        .ends(0);
    machine
        .toolward(&format!("call text.stats@2 {words}"))
        .ends(1)
        .says("not_found");
}

#[test]
fn a_setting_takes_the_type_that_the_contract_gives_it() {
    let machine = text_stats();
    // A text that looks like a number stays a text.
    let value = machine
        .toolward(&format!("{CALL} --set text=123"))
        .ends(0)
        .json();
    assert_eq!(value["characters"], 3);
    let ended = machine
        .toolward(&format!("{CALL} --set text=a --set top=many"))
        .ends(2);
    assert!(
        ended.stderr.contains("top") && ended.stderr.contains("many"),
        "{ended}"
    );
    machine
        .toolward(&format!("{CALL} --set text"))
        .ends(2)
        .says("setting-invalid");
}

#[test]
fn calls_at_once_share_an_empty_cache() {
    let machine = text_stats().with_own_cache();
    std::thread::scope(|scope| {
        let call = || {
            machine
                .toolward(&format!("{CALL} --set text=one,two"))
                .ends(0)
                .json()
        };
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(call)).collect();
        for call in calls {
            assert_eq!(call.join().unwrap()["words"], 2);
        }
    });
    let mut left: Vec<String> = tree(&machine.cache()).into_keys().collect();
    left.retain(|name| !name.ends_with('/'));
    let [artefact, private, public] = &*left else {
        panic!("{left:?}");
    };
    assert!(artefact.starts_with("artefacts/") && artefact.ends_with(".cwasm"));
    assert_eq!([private, public], ["private/key.pem", "public-key.pem"]);
}

#[test]
fn a_call_has_an_id_that_is_a_uuid_of_version_7() {
    let machine = hostile();
    let call = |id: &str| {
        machine
            .toolward(&format!("{HOSTILE} --json --id {id} --input"))
            .arg(json!({ "do": "call" }).to_string())
            .end()
    };
    let refused = call("0190f5fe-7c00-4a00-8000-000000000000");
    assert_eq!(refused.json()["error"]["code"], "input_invalid");
    // The driver's idempotency key is the same each time, and differs from the id.
    let id = uuid::Uuid::now_v7().to_string();
    let keys = [0, 1].map(|_| {
        let value = call(&id).json()["value"]["value"].clone();
        assert!(value["idempotency_key"] != value["id"], "{value}");
        value["idempotency_key"].as_str().unwrap().to_owned()
    });
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], id);
    assert_ne!(
        call(&uuid::Uuid::now_v7().to_string()).json()["value"]["value"]["idempotency_key"],
        keys[0]
    );
}
