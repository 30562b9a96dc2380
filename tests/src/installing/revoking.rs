//! Revocations: by the publisher, by the operator, and by others.

use toolward_signing::key::SigningKey;
use toolward_signing::revocation::RevocationList;

use super::{ID, add, document, installed, is_not_loaded, key, listed, now, refused, release};
use super::{runs, ship};
use crate::support::Machine;

/// The digest of the one installed bundle.
fn digest(machine: &Machine) -> String {
    listed(machine)[0]["digest"].as_str().unwrap().to_owned()
}

/// Makes acme's list `LIST` that revokes the installed bundle.
fn revoke(machine: &Machine, list: &str) -> String {
    let digest = digest(machine);
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {digest}=leaks --key one.pem -o {list}"
        ))
        .ends(0);
    digest
}

/// A machine that trusts zeta, too, whose key is `two`.
fn with_zeta() -> (Machine, SigningKey) {
    let (machine, _) = installed();
    let two = key(&machine, "two");
    let fingerprint = document(&machine, "zeta", "two");
    add(&machine, "zeta", "--prefix zeta", &fingerprint).ends(0);
    (machine, two)
}

#[test]
fn a_bundle_that_its_publisher_revokes_is_neither_loaded_nor_installed() {
    let (machine, one) = installed();
    revoke(&machine, "list.json");
    runs(&machine);
    let told = machine.toolward("trust update acme --revocations list.json --json");
    assert_eq!(told.ends(0).json()["revoked_bundles"], 1);
    is_not_loaded(&machine, "bundle-revoked");
    refused(&machine, "install b.toolbundle", 3, "bundle-revoked");
    refused(&machine, &format!("update {ID}"), 3, "bundle-revoked");
    // The next release is a different bundle.
    ship(&machine, &release(2), &one, "b.toolbundle");
    machine.toolward("install b.toolbundle").ends(0);
    runs(&machine);
}

#[test]
fn what_was_revoked_once_stays_revoked() {
    let (machine, one) = installed();
    revoke(&machine, "list.json");
    let update = "trust update acme --revocations";
    machine.toolward(&format!("{update} list.json")).ends(0);
    let emptied = RevocationList {
        publisher: "acme".to_owned(),
        version: 2,
        created: now(),
        expires: None,
        keys: Vec::new(),
        bundles: Vec::new(),
    };
    let mut envelope = emptied.to_envelope().unwrap();
    envelope.sign(&one);
    machine.write("emptied.json", envelope.to_bytes().unwrap());
    let words = format!("{update} emptied.json");
    refused(&machine, &words, 3, "revocation-dropped");
    is_not_loaded(&machine, "bundle-revoked");
}

#[test]
fn a_list_that_the_publisher_did_not_sign_revokes_nothing() {
    let (machine, _) = with_zeta();
    let digest = digest(&machine);
    machine
        .toolward(&format!(
            "publisher revoke acme --bundle {digest}=competition --key two.pem -o list.json"
        ))
        .ends(0);
    let words = "trust update acme --revocations list.json";
    refused(&machine, words, 3, "threshold-not-met");
    // It is not zeta's list either, although zeta's key signed it.
    let words = "trust update zeta --revocations list.json";
    refused(&machine, words, 3, "wrong-publisher");
    runs(&machine);
}

#[test]
fn a_publisher_revokes_nothing_of_somebody_elses() {
    let (machine, _) = with_zeta();
    let digest = digest(&machine);
    machine
        .toolward(&format!(
            "publisher revoke zeta --bundle {digest}=competition --key two.pem -o list.json"
        ))
        .ends(0);
    // A digest alone does not state whose bundle it is. It is stored, and has no effect.
    machine
        .toolward("trust update zeta --revocations list.json")
        .ends(0);
    runs(&machine);
    let acme = machine
        .toolward("publisher keys show one.pem --json")
        .ends(0)
        .json();
    let acme = acme["key_id"].as_str().unwrap();
    machine
        .toolward(&format!(
            "publisher revoke zeta --after list.json --revoke-key {acme}=competition"
        ))
        .arg("--key=two.pem")
        .arg("--output=keys.json")
        .ends(0);
    let words = "trust update zeta --revocations keys.json";
    refused(&machine, words, 3, "revocation-foreign");
    runs(&machine);
}

#[test]
fn a_bundle_that_the_operator_denies_is_neither_loaded_nor_installed() {
    let (machine, _) = installed();
    let digest = digest(&machine);
    machine.configure(&format!("[trust.deny]\nbundles = [\"{digest}\"]\n"));
    is_not_loaded(&machine, "bundle-revoked");
    refused(&machine, "install b.toolbundle", 3, "bundle-revoked");
    machine.configure("[trust.deny]\nbundles = []\n");
    runs(&machine);
}

#[test]
fn a_key_that_the_operator_denies_signs_nothing() {
    let (machine, one) = installed();
    let id = one.public().key_id();
    machine.configure(&format!("[trust.deny]\nkeys = [\"{id}\"]\n"));
    is_not_loaded(&machine, "key-revoked");
    ship(&machine, &release(2), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 3, "key-revoked");
}

#[test]
fn a_publisher_that_is_trusted_no_more_ships_and_runs_nothing() {
    let (machine, one) = installed();
    machine.configure("# nobody else\n");
    machine.toolward("trust remove acme").ends(0);
    is_not_loaded(&machine, "unknown-publisher");
    ship(&machine, &release(2), &one, "b.toolbundle");
    refused(&machine, "install b.toolbundle", 3, "unknown-publisher");
    refused(&machine, "trust remove acme", 2, "publisher-unknown");
}
