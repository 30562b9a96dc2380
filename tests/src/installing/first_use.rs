//! A publisher that is not known yet: the fingerprint, the prefixes, the names.

use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::publisher::PAYLOAD_TYPE;

use super::{
    GRANT, ID, add, document, kept, key, listed, refused, refused_run, release, runs, ship,
};
use super::{trusting, write_key};
use crate::support::{Machine, root};

/// A machine with a document of acme, and its fingerprint.
fn met() -> (Machine, SigningKey, String) {
    let machine = Machine::new();
    let one = key(&machine, "one");
    let fingerprint = document(&machine, "acme", "one");
    ship(&machine, &release(1), &one, "b.toolbundle");
    (machine, one, fingerprint)
}

#[track_caller]
fn nobody_is_trusted(machine: &Machine) {
    let listed = machine.toolward("trust list --json").ends(0);
    assert_eq!(listed.stdout, "", "{listed}");
    refused(machine, "install b.toolbundle", 2, "nobody-trusted");
}

#[test]
fn a_fingerprint_that_nobody_compared_trusts_nobody() {
    let (machine, _, fingerprint) = met();
    let words = format!("trust add acme.publisher.json {GRANT}");
    let ended = refused(&machine, &words, 3, "fingerprint-unconfirmed");
    assert!(ended.stderr.contains(&fingerprint), "{ended}");
    nobody_is_trusted(&machine);
}

#[test]
fn a_document_with_another_fingerprint_trusts_nobody() {
    let (machine, _, expected) = met();
    // Another publisher's document with the same name is at the place of acme's.
    key(&machine, "thief");
    std::fs::remove_file(machine.path("acme.publisher.json")).unwrap();
    document(&machine, "acme", "thief");
    let run = add(&machine, "acme", GRANT, &expected);
    refused_run(&machine, run, 3, "fingerprint-mismatch");
    nobody_is_trusted(&machine);
}

#[test]
fn a_publisher_whose_fingerprint_was_compared_is_trusted_for_its_prefixes() {
    let (machine, _, fingerprint) = met();
    let told = add(&machine, "acme", GRANT, &fingerprint).arg("--json");
    let told = told.ends(0).json();
    assert_eq!(told["name"], "acme");
    assert_eq!(told["prefixes"], serde_json::json!(["text", "text-stats"]));
    machine.toolward("install b.toolbundle").ends(0);
    let listed = listed(&machine);
    assert_eq!(listed[0]["publisher"], "acme", "{listed:?}");
    runs(&machine);
    let shown = machine.toolward("trust show acme --json").ends(0);
    let decisions = shown.json_lines();
    let added = decisions.iter().find(|line| line["action"] == "trust-add");
    assert_eq!(added.unwrap()["verdict"], "accepted", "{decisions:?}");
}

#[test]
fn a_publisher_ships_nothing_outside_its_prefixes() {
    for grant in ["--prefix csv", "--prefix text.other", "--prefix tex"] {
        let (machine, _, fingerprint) = met();
        add(&machine, "acme", grant, &fingerprint).ends(0);
        refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
        assert!(listed(&machine).is_empty(), "{grant}");
    }
}

#[test]
fn a_contract_outside_the_prefixes_is_not_installed_either() {
    let (machine, _, fingerprint) = met();
    // The bundle's own id is granted, but the ids inside it are not.
    let grant = format!("--prefix {ID}");
    add(&machine, "acme", &grant, &fingerprint).ends(0);
    refused(&machine, "install b.toolbundle", 3, "prefix-not-granted");
}

#[test]
fn a_publisher_with_the_example_key_is_not_trusted() {
    let machine = Machine::new();
    let pem =
        std::fs::read_to_string(root().join("examples/keys/INSECURE-example-signing-key.pem"))
            .unwrap();
    let example = SigningKey::from_pem(&pem, None).unwrap();
    write_key(&machine, "example", &example);
    let public = example.public().to_pem().unwrap();
    machine.write("example.pub.pem", &public);
    machine
        .toolward("publisher new acme --public-key example.pub.pem --key example.pem -o x.json")
        .ends(1)
        .says("trust-example-key");
    assert!(!machine.path("x.json").exists());
    // A document that another tool made is refused as well.
    let text = format!(
        "schema = 1\nname = \"acme\"\nversion = 1\ncreated = \"{}\"\nthreshold = 1\n\n\
         [[keys]]\npem = \"\"\"\n{public}\"\"\"\n",
        super::now()
    );
    let mut envelope = Envelope::new(PAYLOAD_TYPE, text.into_bytes());
    envelope.sign(&example);
    machine.write("acme.publisher.json", envelope.to_bytes().unwrap());
    let words = format!("trust add acme.publisher.json {GRANT}");
    refused(&machine, &words, 3, "trust-example-key");
    assert!(kept(&machine).is_empty());
}

#[test]
fn a_name_is_trusted_once() {
    let (machine, _) = trusting();
    key(&machine, "other");
    std::fs::remove_file(machine.path("acme.publisher.json")).unwrap();
    let fingerprint = document(&machine, "acme", "other");
    let run = add(&machine, "acme", GRANT, &fingerprint);
    refused_run(&machine, run, 2, "publisher-known");
}

#[test]
fn a_key_belongs_to_one_publisher() {
    let (machine, _) = trusting();
    let fingerprint = document(&machine, "zeta", "one");
    let run = add(&machine, "zeta", "--prefix zeta", &fingerprint);
    refused_run(&machine, run, 3, "trust-invalid");
}

#[test]
fn a_name_of_the_configuration_is_not_added_by_a_document() {
    let (machine, _, fingerprint) = met();
    key(&machine, "other");
    let other = machine.text("other.pub.pem");
    machine.configure(&format!(
        "[[publisher]]\nname = \"acme\"\nkeys = [\"\"\"{other}\"\"\"]\nprefixes = [\"text\"]\n"
    ));
    let run = add(&machine, "acme", GRANT, &fingerprint);
    refused_run(&machine, run, 3, "trust-invalid");
}
