//! Revocations stay in effect when their publisher is removed, and naming a revoked key directly
//! does not avoid them.

use super::{GRANT, add, installed, is_not_loaded, listed, refused, release, runs, ship};
use crate::support::Machine;

/// Makes acme's list `1.json`, which revokes a bundle that is not installed, and `2.json`, which
/// also revokes the installed one.
fn lists(machine: &Machine) {
    let digest = listed(machine)[0]["digest"].as_str().unwrap().to_owned();
    let other = toolward_signing::Digest::of(b"another bundle");
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {other}=old --key one.pem -o 1.json"
        ))
        .ends(0);
    machine
        .toolward(&format!(
            "publisher revoke acme --after 1.json --bundle {digest}=leaks --key one.pem -o 2.json"
        ))
        .ends(0);
}

/// Adds acme again, by its current document.
fn again(machine: &Machine, document: &str) {
    let shown = machine.toolward(&format!("publisher show {document} --json"));
    let shown = shown.ends(0).json();
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    std::fs::copy(machine.path(document), machine.path("again.publisher.json")).unwrap();
    add(machine, "again", GRANT, fingerprint).ends(0);
}

#[test]
fn a_bundle_stays_revoked_though_its_publisher_is_removed_and_added_again() {
    let (machine, _) = installed();
    lists(&machine);
    let update = "trust update acme --revocations";
    machine.toolward(&format!("{update} 2.json")).ends(0);
    let told = machine.toolward("trust remove acme --json").ends(0).json();
    assert_eq!(told["revoked"], 2, "{told}");
    again(&machine, "acme.publisher.json");
    is_not_loaded(&machine, "bundle-revoked");
    refused(&machine, "install b.toolbundle", 3, "bundle-revoked");
    // An older list does not count, although no list is stored now.
    refused(&machine, &format!("{update} 1.json"), 3, "rollback");

    // The operator can override this with a separate flag.
    machine
        .toolward("trust remove acme --forget-revocations")
        .ends(0);
    let words = "trust remove acme --forget-revocations";
    refused(&machine, words, 2, "publisher-unknown");
    again(&machine, "acme.publisher.json");
    runs(&machine);
}

#[test]
fn what_is_revoked_twice_over_is_kept_through_a_second_removal() {
    let (machine, _) = installed();
    lists(&machine);
    machine
        .toolward("trust update acme --revocations 2.json")
        .ends(0);
    for _ in 0..2 {
        machine.toolward("trust remove acme").ends(0);
        again(&machine, "acme.publisher.json");
    }
    is_not_loaded(&machine, "bundle-revoked");
}

#[test]
fn a_key_stays_revoked_though_its_publisher_is_removed_and_added_again() {
    let (machine, one) = installed();
    super::key(&machine, "two");
    let id = one.public().key_id();
    for (words, file) in [
        (
            format!("acme.publisher.json --add two.pub.pem --drop {id} --key one.pem"),
            "2.json",
        ),
        (format!("2.json --revoke {id}=stolen"), "3.json"),
    ] {
        machine
            .toolward(&format!("publisher next {words} --key two.pem -o {file}"))
            .ends(0);
    }
    machine.toolward("trust update acme 2.json 3.json").ends(0);
    machine.toolward("trust remove acme").ends(0);
    // The document from before the theft, in a file with a name that the thief chose.
    std::fs::copy(
        machine.path("acme.publisher.json"),
        machine.path("old.publisher.json"),
    )
    .unwrap();
    let shown = machine.toolward("publisher show acme.publisher.json --json");
    let shown = shown.ends(0).json();
    let run = add(
        &machine,
        "old",
        GRANT,
        shown["fingerprint"].as_str().unwrap(),
    );
    super::refused_run(&machine, run, 3, "key-revoked");
    again(&machine, "3.json");
    is_not_loaded(&machine, "key-revoked");
    // The removed publisher's key is also revoked when it is named directly.
    machine.toolward("trust remove acme").ends(0);
    let words = "verify b.toolbundle --trust-key one.pub.pem";
    machine.toolward(words).ends(3).says("key-revoked");
}

#[test]
fn a_key_named_by_itself_is_still_held_to_what_its_publisher_revokes() {
    let (machine, one) = installed();
    lists(&machine);
    let install = "install b.toolbundle --trust-key one.pub.pem";
    let verify = "verify b.toolbundle --trust-key one.pub.pem";
    machine.toolward(verify).ends(0);
    machine
        .toolward("trust update acme --revocations 2.json")
        .ends(0);
    machine.toolward(verify).ends(3).says("bundle-revoked");
    refused(&machine, install, 3, "bundle-revoked");
    // The revocation stays in effect after acme is removed.
    machine.toolward("trust remove acme").ends(0);
    machine.toolward(verify).ends(3).says("bundle-revoked");
    // Another bundle of the key is not revoked.
    ship(&machine, &release(2), &one, "b.toolbundle");
    machine.toolward(verify).ends(0);
}

#[test]
fn a_publisher_that_is_refused_after_its_fingerprint_was_compared_is_no_lasting_change() {
    let machine = Machine::new();
    super::key(&machine, "one");
    super::key(&machine, "two");
    let fingerprint = super::document(&machine, "acme", "one");
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    machine
        .toolward(
            "publisher next acme.publisher.json --add two.pub.pem --key one.pem --key two.pem -o 2.json",
        )
        .ends(0);
    machine.toolward("trust update acme 2.json").ends(0);
    machine.toolward("trust remove acme").ends(0);
    let lines = || {
        let doctor = machine.toolward("doctor").end();
        doctor.stdout.matches("`trust add` trusts acme").count()
    };
    assert_eq!(lines(), 1);
    // The publisher's first document verifies, but its second one was seen already.
    let run = add(&machine, "acme", GRANT, &fingerprint);
    super::refused_run(&machine, run, 3, "rollback");
    assert_eq!(lines(), 1);
    again(&machine, "2.json");
    assert_eq!(lines(), 2);
}

#[test]
fn nobody_is_trusted_where_the_lasting_change_cannot_be_kept() {
    let machine = Machine::new();
    super::key(&machine, "one");
    let fingerprint = super::document(&machine, "acme", "one");
    let kept = machine.home().join(".local/state/toolward/changes.jsonl");
    std::fs::create_dir_all(kept.parent().unwrap()).unwrap();
    std::fs::write(&kept, "no line of ours\n").unwrap();
    let run = add(&machine, "acme", GRANT, &fingerprint).end();
    assert_ne!(run.code, Some(0), "{run}");
    assert!(!machine.toolward("trust list").end().stdout.contains("acme"));
    std::fs::remove_file(&kept).unwrap();
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
}
