//! A publisher's record that is damaged, hostile or incomplete, and the other publishers, which are
//! trusted as before.

use std::fs;
use std::path::PathBuf;

use super::{GRANT, add, document, installed, kept, key, refused, runs};
use crate::support::Machine;

fn trust(machine: &Machine) -> PathBuf {
    machine.home().join(".config/toolward/trust")
}

/// A machine that trusts acme, whose bundle is installed, and zeta.
fn with_zeta() -> Machine {
    let (machine, _) = installed();
    key(&machine, "two");
    let fingerprint = document(&machine, "zeta", "two");
    add(&machine, "zeta", "--prefix zeta", &fingerprint).ends(0);
    machine
}

#[test]
fn a_document_that_takes_another_publishers_key_is_refused_and_all_are_trusted_as_before() {
    let machine = with_zeta();
    machine
        .toolward("publisher next zeta.publisher.json --add one.pub.pem --key two.pem -o 2.json")
        .ends(0);
    machine
        .toolward("publisher sign 2.json --key one.pem")
        .ends(0);
    let ended = refused(&machine, "trust update zeta 2.json", 3, "trust-invalid");
    assert!(ended.stderr.contains("acme"), "{ended}");
    runs(&machine);
    let shown = machine.toolward("trust show zeta --json").ends(0);
    assert_eq!(shown.json_lines()[0]["version"], 1, "{shown}");
}

#[test]
fn a_publisher_that_can_not_be_read_is_not_passed_over_and_can_be_removed() {
    for file in ["grant.toml", "publisher.json"] {
        let machine = with_zeta();
        fs::write(trust(&machine).join("zeta").join(file), "spoilt").unwrap();
        // The damaged record may be the one that revokes the bundle.
        let ended = machine.toolward("install b.toolbundle").end();
        assert!(matches!(ended.code, Some(2 | 3)), "{ended}");
        assert!(ended.stderr.contains("trust remove zeta"), "{ended}");
        let shown = machine.toolward("trust show acme --json").ends(0);
        assert_eq!(shown.json_lines()[0]["name"], "acme", "{file}: {shown}");
        machine.toolward("trust remove zeta").ends(0);
        runs(&machine);
    }
}

#[test]
fn what_a_damaged_publisher_revoked_is_kept_as_far_as_it_can_be_read() {
    let machine = with_zeta();
    let digest = super::listed(&machine)[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {digest}=leaks --key one.pem -o list.json"
        ))
        .ends(0);
    machine
        .toolward("trust update acme --revocations list.json")
        .ends(0);
    fs::write(trust(&machine).join("acme/publisher.json"), "spoilt").unwrap();
    let ended = machine.toolward("trust remove acme").ends(0);
    ended.warns("what acme revoked can't be read");
    let shown = machine.toolward("publisher show acme.publisher.json --json");
    let shown = shown.ends(0).json();
    add(
        &machine,
        "acme",
        GRANT,
        shown["fingerprint"].as_str().unwrap(),
    )
    .ends(0);
    super::is_not_loaded(&machine, "bundle-revoked");
}

#[test]
fn a_name_that_leads_elsewhere_is_no_publishers() {
    let machine = with_zeta();
    let inside = machine.home().join(".config/toolward/elsewhere");
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("file"), "kept").unwrap();
    for name in [
        "../elsewhere",
        "acme/../zeta",
        ".",
        "..",
        ".revoked-acme.toml",
    ] {
        for verb in ["remove", "show", "update", "remove --forget-revocations"] {
            let words = format!("trust {verb} {name}");
            refused(&machine, &words, 2, "publisher-unknown");
        }
    }
    runs(&machine);
}

#[test]
fn an_addition_that_was_killed_is_no_publisher_and_does_not_stand_in_the_way() {
    let machine = Machine::new();
    key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    let new = trust(&machine).join(".new-acme");
    fs::create_dir_all(&new).unwrap();
    fs::write(new.join("publisher.json"), "half").unwrap();
    assert_eq!(machine.toolward("trust list").ends(0).stdout, "");
    add(&machine, "acme", GRANT, &fingerprint).ends(0);
    let left = kept(&machine);
    assert!(!left.keys().any(|name| name.contains(".new-")), "{left:?}");
}

#[test]
fn a_document_that_was_noted_and_not_kept_is_taken_in_again() {
    let machine = with_zeta();
    key(&machine, "three");
    machine
        .toolward("publisher next acme.publisher.json --add three.pub.pem --key one.pem -o 2.json")
        .ends(0);
    let file = trust(&machine).join("acme/publisher.json");
    let before = fs::read(&file).unwrap();
    machine.toolward("trust update acme 2.json").ends(0);
    // Restores the state of a process that was killed between the two steps.
    fs::write(&file, before).unwrap();
    let told = machine.toolward("trust update acme 2.json --json").ends(0);
    assert_eq!(told.json()["version"], 2);
    runs(&machine);
}
