//! Which publishers an operator trusts, and for which ids.

use super::{call_refused, machine_with_key, refused, signed};
use crate::support::{Machine, bundle};

/// One `[[publisher]]` of a `toolward.toml`, with the key in `key.pub.pem`.
fn publisher(machine: &Machine, name: &str, prefixes: &str) -> String {
    let key = machine.text("key.pub.pem");
    format!("[[publisher]]\nname = \"{name}\"\nkeys = [\"\"\"{key}\"\"\"]\nprefixes = {prefixes}\n")
}

#[test]
fn another_key_than_the_one_that_signed_trusts_nothing() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    bundle::new_key(&machine.work(), "other");
    machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem")
        .ends(0);
    refused(
        &machine,
        "b.toolbundle --trust-key other.pub.pem",
        "unknown-publisher",
    );
    let words = "--bundle b.toolbundle --trust-key other.pub.pem";
    call_refused(&machine, words, "unknown-publisher");
}

#[test]
fn a_configuration_says_whom_to_trust_and_with_what() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    let configured = publisher(&machine, "toolward-examples", r#"["text", "text-stats"]"#);
    machine.write("mine.toml", &configured);
    let verified = machine
        .toolward("verify b.toolbundle --config mine.toml --json")
        .ends(0);
    assert_eq!(verified.json()["publisher"], "toolward-examples");
    // The user's own configuration is read by default.
    machine
        .toolward("verify b.toolbundle")
        .ends(2)
        .says("nobody-trusted");
    machine.configure(&configured);
    machine.toolward("verify b.toolbundle").ends(0);
    machine
        .toolward("call text.stats --bundle b.toolbundle --set text=a")
        .ends(0);
}

#[test]
fn a_configuration_in_the_current_directory_or_the_bundle_is_none() {
    let (machine, key) = machine_with_key();
    signed(&key).write_directory(&machine.path("b"));
    let configured = publisher(&machine, "toolward-examples", r#"["*"]"#);
    machine.write("toolward.toml", &configured);
    machine.write(".config/toolward/toolward.toml", &configured);
    machine.toolward("verify b").ends(2).says("nobody-trusted");
    machine
        .toolward("call text.stats --bundle b --set text=a")
        .ends(2)
        .says("nobody-trusted");
}

#[test]
fn a_publisher_nobody_named_is_unknown() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    bundle::new_key(&machine.work(), "key");
    machine.write(
        "mine.toml",
        publisher(&machine, "toolward-examples", r#"["*"]"#),
    );
    refused(
        &machine,
        "b.toolbundle --config mine.toml",
        "unknown-publisher",
    );
    call_refused(
        &machine,
        "--bundle b.toolbundle --config mine.toml",
        "unknown-publisher",
    );
}

#[test]
fn a_key_that_belongs_to_another_publisher_than_the_manifest_names_is_refused() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    machine.write(
        "mine.toml",
        publisher(&machine, "somebody-else", r#"["*"]"#),
    );
    refused(
        &machine,
        "b.toolbundle --config mine.toml",
        "wrong-publisher",
    );
}

#[test]
fn an_id_outside_the_granted_prefixes_is_refused_whatever_brings_it() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    // The bundle `text.stats-bundle`, its contract `text.stats`, its driver `text-stats`.
    for (prefixes, id) in [
        (r#"["json"]"#, "text.stats-bundle"),
        (r#"["text.stats", "text-stats"]"#, "text.stats-bundle"),
        (r#"["text.stats-bundle", "text-stats"]"#, "text.stats"),
        (r#"["text"]"#, "text-stats"),
        (r#"["tex", "text-stats"]"#, "text.stats"),
    ] {
        machine.write(
            "mine.toml",
            publisher(&machine, "toolward-examples", prefixes),
        );
        let error = refused(
            &machine,
            "b.toolbundle --config mine.toml",
            "prefix-not-granted",
        );
        assert!(error.to_string().contains(id), "{prefixes}: {error}");
        call_refused(
            &machine,
            "--bundle b.toolbundle --config mine.toml",
            "prefix-not-granted",
        );
    }
}

#[test]
fn an_empty_list_of_prefixes_is_a_mistake_and_never_everything() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    machine.write("mine.toml", publisher(&machine, "toolward-examples", "[]"));
    machine
        .toolward("verify b.toolbundle --config mine.toml")
        .ends(2)
        .says("trust-invalid");
}

#[test]
fn the_longest_prefix_decides_between_publishers() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    let broad = publisher(&machine, "toolward-examples", r#"["text", "text-stats"]"#);
    bundle::new_key(&machine.work(), "key");
    let narrow = publisher(&machine, "owner-of-stats", r#"["text.stats"]"#);
    machine.write("mine.toml", format!("{broad}\n{narrow}"));
    let error = refused(
        &machine,
        "b.toolbundle --config mine.toml",
        "prefix-not-granted",
    );
    assert!(error.to_string().contains("text.stats"), "{error}");
}

#[test]
fn a_threshold_of_two_is_not_met_by_one() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    let second = bundle::new_key(&machine.work(), "second")
        .public()
        .to_pem()
        .unwrap();
    let one = publisher(&machine, "toolward-examples", r#"["*"]"#);
    let two = one.replace(
        "keys = [",
        &format!("threshold = 2\nkeys = [\"\"\"{second}\"\"\", "),
    );
    machine.write("mine.toml", two);
    refused(
        &machine,
        "b.toolbundle --config mine.toml",
        "threshold-not-met",
    );
}

#[test]
fn keys_that_are_none_are_wrong_usage() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    // The identity point, for which every message has a valid signature.
    let weak = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
        -----END PUBLIC KEY-----\n";
    machine.write("weak.pem", weak);
    machine.write("text.pem", "no key");
    machine.write("private.pem", key.to_pem().unwrap().expose());
    for (name, code) in [
        ("weak.pem", "key-weak"),
        ("text.pem", "key-invalid"),
        ("private.pem", "key-invalid"),
    ] {
        let words = format!("verify b.toolbundle --trust-key {name}");
        machine.toolward(&words).ends(2).says(code);
    }
    machine
        .toolward("verify b.toolbundle --trust-key gone.pem")
        .ends(2);
}

/// The text of a secret.
trait Expose {
    fn expose(&self) -> &str;
}

impl Expose for toolward_signing::secrecy::SecretString {
    fn expose(&self) -> &str {
        toolward_signing::secrecy::ExposeSecret::expose_secret(self)
    }
}
