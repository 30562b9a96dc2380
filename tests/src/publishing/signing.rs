//! `toolward publisher sign`: one signature, and several.

use serde_json::Value;

use crate::support::{Machine, tree};

/// A machine with the bundle `b` under work, and two keys.
fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    for name in ["one", "two"] {
        machine
            .toolward(&format!("publisher keys new --out {name}.pem"))
            .ends(0);
    }
    machine
}

/// Verifies with a configuration that requires both keys.
fn with_both(machine: &Machine, bundle: &str) -> crate::support::Run {
    let publisher = machine.text("b/bundle.toml");
    let publisher = publisher
        .lines()
        .find_map(|line| line.strip_prefix("publisher = "))
        .unwrap();
    let configured = format!(
        "[[publisher]]\nname = {publisher}\nkey_files = [\"one.pub.pem\", \"two.pub.pem\"]\n\
         threshold = 2\nprefixes = [\"*\"]\n"
    );
    machine.write("both.toml", configured);
    machine.toolward(&format!("verify {bundle} --config both.toml --json"))
}

fn code(error: &Value) -> &str {
    error["error"]["code"].as_str().unwrap()
}

#[test]
fn a_packed_directory_is_signed_in_place_and_only_its_envelope_changes() {
    let machine = machine();
    machine.toolward("pack b -o packed").ends(0);
    machine
        .toolward("verify packed --trust-key one.pub.pem")
        .ends(3)
        .says("envelope-missing");
    let before = tree(&machine.path("packed"));
    machine
        .toolward("publisher sign packed --key one.pem")
        .ends(0);
    machine
        .toolward("verify packed --trust-key one.pub.pem")
        .ends(0);
    let mut after = tree(&machine.path("packed"));
    assert!(after.remove("manifest.dsse.json").is_some());
    assert_eq!(after, before);
}

#[test]
fn two_key_holders_sign_one_after_the_other() {
    let machine = machine();
    for (bundle, signed) in [("packed", "packed"), ("p.toolbundle", "p.toolbundle")] {
        machine
            .toolward(&format!("pack b -o {bundle} --key one.pem"))
            .ends(0);
        let error = with_both(&machine, bundle).ends(3).json();
        assert_eq!(code(&error), "threshold-not-met", "{error}");
        // The same key again does not count as a second one.
        let again = machine
            .toolward(&format!("publisher sign {bundle} --key one.pem --json"))
            .ends(0)
            .json();
        assert_eq!(again["signatures"], 1, "{again}");
        with_both(&machine, bundle).ends(3);
        let second = machine
            .toolward(&format!("publisher sign {bundle} --key two.pem --json"))
            .ends(0)
            .json();
        assert_eq!(second["signatures"], 2, "{second}");
        let verified = with_both(&machine, signed).ends(0).json();
        assert_eq!(verified["signers"].as_array().unwrap().len(), 2);
        // Each signature is enough for an operator who trusts only that key.
        for key in ["one", "two"] {
            machine
                .toolward(&format!("verify {bundle} --trust-key {key}.pub.pem"))
                .ends(0);
        }
    }
}

#[test]
fn two_keys_sign_at_once() {
    let machine = machine();
    machine
        .toolward("pack b -o p.toolbundle --key one.pem --key two.pem")
        .ends(0);
    with_both(&machine, "p.toolbundle").ends(0);
}

#[test]
fn signing_into_another_place_leaves_the_first_as_it_was() {
    let machine = machine();
    machine.toolward("pack b -o packed").ends(0);
    let before = tree(&machine.path("packed"));
    machine
        .toolward("publisher sign packed --key one.pem -o signed")
        .ends(0);
    machine
        .toolward("publisher sign packed --key one.pem -o signed.toolbundle")
        .ends(0);
    assert_eq!(tree(&machine.path("packed")), before);
    for bundle in ["signed", "signed.toolbundle"] {
        machine
            .toolward(&format!("verify {bundle} --trust-key one.pub.pem"))
            .ends(0);
    }
}

#[test]
fn the_example_key_signs_with_a_warning() {
    let machine = machine();
    let key = crate::support::root().join("examples/keys/INSECURE-example-signing-key.pem");
    machine.toolward("pack b -o packed").ends(0);
    machine
        .toolward("publisher sign packed --key")
        .arg(key)
        .ends(0)
        .warns("this is the example key");
}
