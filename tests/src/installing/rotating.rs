//! A publisher's keys change: documents that follow each other, and documents that only seem to.

use toolward_signing::key::SigningKey;

use super::{GRANT, ID, add, installed, is_not_loaded, key, listed, refused, release, runs};
use super::{sequence, ship};
use crate::support::Machine;

/// Runs `publisher next` from one file to another.
fn next(machine: &Machine, from: &str, to: &str, change: &str) {
    machine
        .toolward(&format!("publisher next {from} {change} -o {to}"))
        .ends(0);
}

/// Returns the version of acme's current document.
fn version(machine: &Machine) -> u64 {
    let shown = machine.toolward("trust list --json").ends(0).json();
    shown["version"].as_u64().unwrap()
}

fn id(key: &SigningKey) -> String {
    key.public().key_id().to_string()
}

const FIRST: &str = "acme.publisher.json";

#[test]
fn the_next_document_is_signed_by_the_old_and_the_new_keys() {
    let (machine, one) = installed();
    let two = key(&machine, "two");
    let change = format!("--add two.pub.pem --drop {} --key one.pem", id(&one));
    next(&machine, FIRST, "next.json", &change);
    // Not accepted yet, since the new key has not signed.
    refused(
        &machine,
        "trust update acme next.json",
        3,
        "threshold-not-met",
    );
    assert_eq!(version(&machine), 1);
    machine
        .toolward("publisher sign next.json --key two.pem")
        .ends(0);
    machine.toolward("trust update acme next.json").ends(0);
    assert_eq!(version(&machine), 2);

    // A bundle that the old key signed is still installed but not loaded. A bundle that the new key
    // signs replaces it.
    is_not_loaded(&machine, "unknown-publisher");
    assert_eq!(sequence(&machine), 1);
    ship(&machine, &release(2), &two, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    ship(&machine, &release(3), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 3, "unknown-publisher");
}

#[test]
fn a_publisher_with_one_key_drops_it_first_and_revokes_it_in_the_document_after() {
    let (machine, one) = installed();
    key(&machine, "two");
    let change = format!(
        "--add two.pub.pem --drop {} --key one.pem --key two.pem",
        id(&one)
    );
    next(&machine, FIRST, "2.json", &change);
    machine.toolward("trust update acme 2.json").ends(0);
    let change = format!("--revoke {}=stolen --key two.pem", id(&one));
    next(&machine, "2.json", "3.json", &change);
    machine.toolward("trust update acme 3.json").ends(0);
    assert_eq!(version(&machine), 3);
    is_not_loaded(&machine, "key-revoked");
}

#[test]
fn the_file_of_a_document_is_kept_with_its_whole_path() {
    let (machine, _) = installed();
    let shown = machine.toolward("trust list --json").ends(0).json();
    let source = std::path::Path::new(shown["source"].as_str().unwrap());
    assert_eq!(source, machine.path(FIRST));
}

#[test]
fn a_document_that_only_the_new_keys_signed_is_refused() {
    let (machine, one) = installed();
    key(&machine, "two");
    let change = format!("--add two.pub.pem --drop {} --key two.pem", id(&one));
    next(&machine, FIRST, "next.json", &change);
    refused(
        &machine,
        "trust update acme next.json",
        3,
        "threshold-not-met",
    );
    assert_eq!(version(&machine), 1);
    runs(&machine);
    // The refusal is recorded.
    let shown = machine.toolward("trust show acme --json").ends(0);
    let decisions = shown.json_lines();
    assert!(
        decisions.iter().any(|line| line["action"] == "trust-update"
            && line["verdict"] == "refused"
            && line["code"] == "threshold-not-met"),
        "{decisions:?}"
    );
}

#[test]
fn no_document_is_skipped() {
    let (machine, _) = installed();
    for name in ["two", "three"] {
        key(&machine, name);
    }
    next(&machine, FIRST, "2.json", "--add two.pub.pem --key one.pem");
    next(
        &machine,
        "2.json",
        "3.json",
        "--add three.pub.pem --key one.pem",
    );
    refused(&machine, "trust update acme 3.json", 3, "version-skipped");
    assert_eq!(version(&machine), 1);
    machine.toolward("trust update acme 2.json 3.json").ends(0);
    assert_eq!(version(&machine), 3);
    runs(&machine);
}

#[test]
fn an_earlier_document_and_a_second_one_of_a_version_are_refused() {
    let (machine, _) = installed();
    for name in ["two", "three"] {
        key(&machine, name);
    }
    next(&machine, FIRST, "2.json", "--add two.pub.pem --key one.pem");
    next(
        &machine,
        FIRST,
        "twin.json",
        "--add three.pub.pem --key one.pem",
    );
    machine.toolward("trust update acme 2.json").ends(0);
    let words = format!("trust update acme {FIRST}");
    refused(&machine, &words, 3, "rollback");
    refused(&machine, "trust update acme twin.json", 3, "equivocation");
    assert_eq!(version(&machine), 2);
    // The current document changes nothing.
    machine.toolward("trust update acme 2.json").ends(0);
    assert_eq!(version(&machine), 2);
}

#[test]
fn another_publishers_document_is_no_next_one() {
    let (machine, _) = installed();
    key(&machine, "two");
    super::document(&machine, "zeta", "two");
    let words = "trust update acme zeta.publisher.json";
    refused(&machine, words, 3, "wrong-publisher");
    runs(&machine);
}

/// A machine that trusts acme with the keys `one`, which is stolen later, and `two`. Either key may
/// sign.
fn with_two_keys() -> (Machine, SigningKey, SigningKey) {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let two = key(&machine, "two");
    machine
        .toolward("publisher new acme --public-key one.pub.pem --public-key two.pub.pem")
        .arg("--key=one.pem")
        .arg("--output=acme.publisher.json")
        .ends(0);
    let shown = machine.toolward(&format!("publisher show {FIRST} --json"));
    let shown = shown.ends(0).json();
    add(
        &machine,
        "acme",
        GRANT,
        shown["fingerprint"].as_str().unwrap(),
    )
    .ends(0);
    (machine, one, two)
}

#[test]
fn what_a_revoked_key_signed_is_neither_loaded_nor_installed() {
    let (machine, one, two) = with_two_keys();
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
    let change = format!("--revoke {}=stolen", id(&one));
    // A document that declares a key stolen must not depend on that key.
    next(
        &machine,
        FIRST,
        "bad.json",
        &format!("{change} --key one.pem"),
    );
    let ended = machine.toolward("trust update acme bad.json").ends(3);
    assert!(ended.stderr.contains("error["), "{ended}");
    assert_eq!(version(&machine), 1);
    runs(&machine);

    next(
        &machine,
        FIRST,
        "good.json",
        &format!("{change} --key two.pem"),
    );
    machine.toolward("trust update acme good.json").ends(0);
    is_not_loaded(&machine, "key-revoked");
    ship(&machine, &release(2), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 3, "key-revoked");
    ship(&machine, &release(2), &two, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
}

#[test]
fn sequences_that_a_thief_used_up_are_had_back() {
    let (machine, one, two) = with_two_keys();
    let digest = ship(&machine, &release(1), &two, "one.toolbundle");
    machine.toolward("install one.toolbundle").ends(0);
    let mut stolen = release(2);
    stolen.manifest.sequence = i64::MAX.unsigned_abs();
    ship(&machine, &stolen, &one, "stolen.toolbundle");
    machine.toolward("install stolen.toolbundle").ends(0);
    ship(&machine, &release(2), &two, "two.toolbundle");
    refused(&machine, "install two.toolbundle", 3, "rollback");

    let change = format!("--reset {ID}=1:{digest} --key two.pem");
    // Sequences are reset only after a theft.
    next(&machine, FIRST, "alone.json", &change);
    let words = "trust update acme alone.json";
    refused(&machine, words, 3, "reset-without-revocation");
    let change = format!("--revoke {}=stolen {change}", id(&one));
    next(&machine, FIRST, "next.json", &change);
    machine.toolward("trust update acme next.json").ends(0);
    is_not_loaded(&machine, "key-revoked");
    machine.toolward("install two.toolbundle").ends(0);
    assert_eq!(listed(&machine)[0]["version"], "1.2.0");
    runs(&machine);
    refused(&machine, "install stolen.toolbundle", 3, "key-revoked");
}
