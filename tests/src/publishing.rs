//! A publisher's steps: from nothing to a signed bundle that a user calls.

mod checking;
mod keys;
mod packing;
mod signing;
mod stale;
mod unserved;
mod without_std;

use std::process::Command;

use serde_json::json;

use crate::mcp::names::listed;
use crate::mcp::raw::Raw;
use crate::support::machine::guest_cargo;
use crate::support::outside::{have, openssl_key, output, skipped};
use crate::support::{Machine, copy, root, tree};

/// The target directory of all guests, so that their dependencies are compiled only once.
const GUEST_TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/e2e-guests");

/// Makes a new bundle `greeter`. The dependencies of its driver have the versions that the examples
/// pin.
fn new_bundle(machine: &Machine) {
    new_bundle_of(machine, "text.greet");
}

/// Makes a new bundle `greeter` with this id.
fn new_bundle_of(machine: &Machine, id: &str) {
    let new = format!("new greeter --id {id} --publisher acme --json");
    let ended = machine.toolward(&new).ends(0).json();
    assert_eq!(ended["id"], id);
    for file in ended["files"].as_array().unwrap() {
        assert!(
            machine
                .path("greeter")
                .join(file.as_str().unwrap())
                .is_file(),
            "{ended}"
        );
    }
    // With these versions no network is needed, and later releases can't break the test.
    copy(
        &root().join("examples/Cargo.lock"),
        &machine.path("greeter/driver/Cargo.lock"),
    );
}

#[test]
fn a_new_bundle_is_checked_built_tested_packed_signed_verified_and_called() {
    let machine = Machine::new();
    new_bundle(&machine);
    // Before the build, the only finding is that nothing is built.
    machine.toolward("check greeter").ends(0);

    let Some(cargo) = guest_cargo() else {
        skipped("no guest toolchain; `cargo xtask guests` sets it up");
        return;
    };
    let built = machine
        .toolward("build greeter --offline --json")
        .env("TOOLWARD_GUEST_CARGO", cargo)
        .env("CARGO_TARGET_DIR", GUEST_TARGET)
        .ends(0)
        .json();
    let component = built["built"][0]["output"].as_str().unwrap();
    assert!(machine.path("greeter").join(component).is_file(), "{built}");
    let compiler = built["compiler"].as_str().unwrap();
    assert!(compiler.starts_with("rustc 1."), "{built}");
    let checked = machine
        .toolward("check greeter --deny-warnings --json")
        .ends(0);
    assert_eq!(checked.stdout, "");

    let tested = machine
        .toolward("test --dev greeter --json")
        .ends(0)
        .json_lines();
    assert_eq!(tested.len(), 2, "{tested:?}");
    assert!(tested.iter().all(|test| test["ok"] == true), "{tested:?}");

    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    let pack = "pack greeter -o greeter.toolbundle --key acme.pem --json --provenance";
    let packed = machine.toolward(pack).arg(compiler).ends(0).json();
    let verified = machine
        .toolward("verify greeter.toolbundle --trust-key acme.pub.pem --json")
        .ends(0)
        .json();
    assert_eq!(verified["id"], "text.greet");
    assert_eq!(verified["manifest_digest"], packed["manifest_digest"]);
    assert_eq!(verified["signers"], packed["signers"]);

    let inspected = machine
        .toolward("inspect greeter.toolbundle --trust-key acme.pub.pem --json")
        .ends(0)
        .json();
    assert_eq!(inspected["verified"], true);
    assert_eq!(inspected["tools"][0]["id"], "text.greet");
    assert_eq!(inspected["provenance"]["compiler"], compiler);

    let value = machine
        .toolward(
            "call text.greet --bundle greeter.toolbundle --trust-key acme.pub.pem --set name=Grace",
        )
        .ends(0)
        .json();
    assert_eq!(value, json!({ "greeting": "Hello, Grace!" }));
    // The same tool runs from the directory under work.
    let value = machine.toolward("call text.greet --dev greeter --set name=Grace --set times=2");
    assert_eq!(
        value.ends(0).json(),
        json!({ "greeting": "Hello, Grace! Hello, Grace!" })
    );
    // The name is valid for agents' clients.
    let serve = machine.toolward("serve --dev greeter").into_command();
    let listed = listed(&mut Raw::open(serve, json!({})));
    assert_eq!(listed[0]["name"], "text_greet");
}

#[test]
fn the_tests_of_a_new_driver_pass_without_a_host() {
    let machine = Machine::new();
    new_bundle(&machine);
    let mut cargo = machine.program("cargo");
    cargo
        .current_dir(machine.path("greeter/driver"))
        .env("CARGO_TARGET_DIR", GUEST_TARGET)
        .args(["test", "--offline", "--quiet"]);
    let printed = String::from_utf8(output(&mut cargo)).unwrap();
    assert!(printed.contains("2 passed"), "{printed}");
}

#[test]
fn a_driver_that_does_not_compile_is_not_built_and_nothing_is_left() {
    let Some(cargo) = guest_cargo() else {
        skipped("no guest toolchain; `cargo xtask guests` sets it up");
        return;
    };
    let machine = Machine::new();
    new_bundle(&machine);
    machine.write("greeter/driver/src/lib.rs", "fn broken( {}\n");
    let ended = machine
        .toolward("build greeter --offline")
        .env("TOOLWARD_GUEST_CARGO", cargo)
        .env("CARGO_TARGET_DIR", GUEST_TARGET)
        .ends(1);
    assert!(ended.stderr.contains("error["), "{ended}");
    assert!(ended.stderr.contains("src/lib.rs:1"), "{ended}");
    let left = tree(&machine.path("greeter"));
    assert!(!left.keys().any(|name| name.ends_with(".wasm")), "{left:?}");
}

#[test]
fn a_guest_toolchain_that_is_none_is_named_with_the_way_to_one() {
    let machine = Machine::new();
    new_bundle(&machine);
    let missing = machine.path("no-cargo").display().to_string();
    let ended = machine
        .toolward("build greeter --guest-cargo /bin/false")
        .ends(1);
    assert!(ended.stderr.contains("hint: "), "{ended}");
    let ended = machine
        .toolward(&format!("build greeter --guest-cargo {missing}"))
        .ends(1);
    ended.says("cargo-unusable");
    assert!(ended.stderr.contains(&missing), "{ended}");
}

#[test]
fn a_key_that_openssl_made_signs() {
    if !have("openssl", &["version"]) {
        return;
    }
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    openssl_key(&machine.work(), "acme");
    machine
        .toolward("pack b -o b.toolbundle --key acme.pem")
        .ends(0);
    machine
        .toolward("verify b.toolbundle --trust-key acme.pub.pem")
        .ends(0);
    let words = "call hostile.run --bundle b.toolbundle --trust-key acme.pub.pem --set do=echo";
    machine.toolward(words).ends(0);
    // The key's id is also what OpenSSL computes: SHA-256 of the DER.
    let der = output(Command::new("openssl").current_dir(machine.work()).args([
        "pkey",
        "-pubin",
        "-in",
        "acme.pub.pem",
        "-outform",
        "DER",
    ]));
    machine.write("acme.der", der);
    let digest = output(
        Command::new("openssl")
            .current_dir(machine.work())
            .args(["dgst", "-sha256", "-r", "acme.der"]),
    );
    let shown = machine
        .toolward("publisher keys show acme.pem --json")
        .ends(0)
        .json();
    let id = shown["key_id"].as_str().unwrap();
    assert!(
        String::from_utf8(digest).unwrap().starts_with(id),
        "{shown}"
    );
}

#[test]
fn test_fails_where_an_example_and_a_driver_disagree() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine.toolward("test --dev b").ends(0);
    let name = "b/tools/hostile.run/TOOL.md";
    let changed = machine.text(name).replace(
        "output: { did: echo, value: [1, two, null] }",
        "output: { did: echo, value: [1, three, null] }",
    );
    machine.write(name, changed);
    let ended = machine.toolward("test --dev b").ends(1);
    assert!(ended.stdout.contains("FAILED"), "{ended}");
    assert!(
        ended.stdout.contains("three") && ended.stdout.contains("two"),
        "{ended}"
    );
    let lines = machine.toolward("test --dev b --json").ends(1).json_lines();
    assert_eq!(lines[0]["ok"], false);
}
