//! Bundles that differ from what a trusted publisher signed: refused with exit code 3, a code and a
//! next step. No part of them is run or stored.

mod age;
mod changed;
mod confused;
mod inconsistent;
mod stripped;
mod trust;
mod unfinished;

use serde_json::Value;
use toolward_signing::key::SigningKey;

use crate::support::{Draft, Ended, Machine, Signed, bundle, tree};

/// Runs `verify`, and asserts that it refuses with this code, as text and as JSON. Returns the
/// error.
#[track_caller]
fn refused(machine: &Machine, words: &str, code: &str) -> Value {
    let ended = machine.toolward(&format!("verify {words}")).ends(3);
    ended.says(code);
    let error = machine
        .toolward(&format!("verify {words} --json"))
        .ends(3)
        .json();
    assert_eq!(error["ok"], false, "{error}");
    assert_eq!(error["error"]["code"], code, "{error}");
    for part in ["message", "hint"] {
        assert!(
            !error["error"][part].as_str().unwrap().is_empty(),
            "no {part} in {error}"
        );
    }
    error["error"].clone()
}

/// Serves and calls the tool, and asserts that it is refused before anything is compiled or stored.
#[track_caller]
fn call_refused(machine: &Machine, words: &str, code: &str) -> Ended {
    let before = tree(&machine.home());
    let ended = machine.toolward(&format!("serve {words}")).ends(3);
    ended.says(code);
    assert_eq!(tree(&machine.home()), before, "{ended}");
    let ended = machine
        .toolward(&format!("call text.stats --set text=a {words}"))
        .ends(3);
    ended.says(code);
    assert_eq!(tree(&machine.home()), before, "{ended}");
    ended
}

/// A machine with `key.pub.pem`, and with its own cache. Also returns the key.
fn machine_with_key() -> (Machine, SigningKey) {
    let machine = Machine::new().with_own_cache();
    let key = bundle::new_key(&machine.work(), "key");
    (machine, key)
}

/// `text-stats`, signed by the test's own key.
fn signed(key: &SigningKey) -> Signed {
    Draft::of("text-stats").sign(key)
}
