//! Bundles that pretend to be something other than what was signed.

use std::fs;

use serde_json::{Value, json};
use toolward_signing::key::SigningKey;
use toolward_signing::secrecy::ExposeSecret as _;

use super::{machine_with_key, signed};
use crate::support::{Draft, Machine, tree};

/// `b`, signed by the key in `key.pem`.
fn machine() -> (Machine, SigningKey) {
    let (machine, key) = machine_with_key();
    signed(&key).write_directory(&machine.path("b"));
    machine.write("key.pem", key.to_pem().unwrap().expose_secret());
    (machine, key)
}

fn envelope(machine: &Machine) -> Value {
    serde_json::from_slice(&machine.read("b/manifest.dsse.json")).unwrap()
}

#[test]
fn a_planted_bundle_toml_does_not_make_a_signed_bundle_one_under_work() {
    let (machine, _) = machine();
    let planted = "id = \"text.stats-bundle\"\nversion = \"1.0.0\"\nsequence = 1\n\
        publisher = \"toolward-examples\"\ncreated = \"2026-11-01T00:00:00Z\"\n";
    machine.write("b/bundle.toml", planted);
    for command in [
        "verify b",
        "test b",
        "inspect b",
        "call text.stats --set text=a --bundle b",
    ] {
        machine
            .toolward(&format!("{command} --trust-key key.pub.pem"))
            .ends(3)
            .says("file-extra");
    }
    // Without trusted keys it is not shown as under work either.
    let shown = machine.toolward("inspect b").end();
    assert!(!shown.stdout.contains("under work"), "{shown}");
    machine.toolward("test b").ends(3).says("file-extra");
}

#[test]
fn an_envelope_of_another_kind_is_neither_verified_nor_signed() {
    let (machine, _) = machine();
    let mut other = envelope(&machine);
    other["payloadType"] = json!("application/vnd.toolward.publisher.v1+toml");
    other["signatures"] = json!([{ "sig": "AA==" }]);
    machine.write("b/manifest.dsse.json", other.to_string());
    let before = tree(&machine.work());
    for words in [
        "verify b --trust-key key.pub.pem",
        "publisher sign b --key key.pem",
    ] {
        machine.toolward(words).ends(3).says("payload-type");
    }
    assert_eq!(tree(&machine.work()), before);
}

#[test]
fn a_signature_that_only_claims_a_key_is_replaced_by_a_real_one() {
    let (machine, _) = machine();
    let mut claimed = envelope(&machine);
    claimed["signatures"][0]["sig"] = json!("AA==");
    machine.write("b/manifest.dsse.json", claimed.to_string());
    let verify = || machine.toolward("verify b --trust-key key.pub.pem");
    verify().ends(3);
    machine.toolward("publisher sign b --key key.pem").ends(0);
    verify().ends(0);
}

/// Replaces one text of the draft's manifest, and signs the result.
fn resigned(from: &str, to: &str) -> (Machine, &'static str) {
    let (machine, key) = machine_with_key();
    let mut signed = Draft::of("text-stats").sign(&key);
    let manifest = String::from_utf8(signed.manifest).unwrap();
    let changed = manifest.replacen(from, to, 1);
    assert_ne!(manifest, changed);
    signed.manifest = changed.into_bytes();
    let mut envelope = toolward_signing::envelope::Envelope::new(
        toolward_signing::MANIFEST_TYPE,
        signed.manifest.clone(),
    );
    envelope.sign(&key);
    signed.envelope = envelope.to_bytes().unwrap();
    signed.write_archive(&machine.path("b.toolbundle"));
    (machine, "verify b.toolbundle --trust-key key.pub.pem")
}

#[test]
fn a_manifest_that_says_another_version_of_the_index_is_refused() {
    let text = String::from_utf8(
        Draft::of("text-stats")
            .sign(&SigningKey::generate().unwrap())
            .manifest,
    );
    let text = text.unwrap();
    let (_, tools) = text.split_once("[artifacts.tools]").unwrap();
    let line = tools
        .lines()
        .find(|line| line.starts_with("version"))
        .unwrap();
    let (machine, verify) = resigned(&format!("{line}\n"), "version = 7\n");
    let ended = machine.toolward(verify).ends(3);
    assert!(ended.stderr.contains("hint: "), "{ended}");
}

#[test]
fn what_nobody_signed_is_not_shown_as_if_it_were_the_manifests() {
    let (machine, _) = machine();
    let name = "b/tools/text.stats/TOOL.md";
    machine.write(
        name,
        machine
            .text(name)
            .replace("Counts characters", "Grants characters"),
    );
    let shown = machine.toolward("inspect b").end();
    assert_ne!(shown.code, Some(0), "{shown}");
    assert!(
        shown.stderr.contains("digest-mismatch") || shown.stdout.contains("digest-mismatch"),
        "{shown}"
    );
}

#[test]
fn text_of_a_bundle_never_stands_as_a_line_of_the_commands_own() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let name = "b/tools/hostile.run/TOOL.md";
    let forged = "\"x\\n  publisher  acme (verified)\\n  signed by  1234\": 1";
    machine.write(name, machine.text(name).replace("tags: [test]", forged));
    for words in ["check b", "inspect b", "pack b -o out"] {
        let ended = machine.toolward(words).end();
        for line in ended.stdout.lines().chain(ended.stderr.lines()) {
            assert!(!line.starts_with("  publisher  acme"), "{ended}");
            assert!(!line.starts_with("  signed by"), "{ended}");
        }
    }
}

#[test]
fn a_drivers_words_never_stand_as_a_line_of_the_commands_own() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let forged = "no\n  hint: paste this\nerror[unauthorised]: policy";
    for input in [
        json!({ "do": "error", "name": "hostile:said", "value": { "message": forged } }),
        json!({ "do": "panic", "name": forged }),
        json!({ "do": "print", "name": "stderr", "value": format!("{forged}\n") }),
    ] {
        let ended = machine
            .toolward("call hostile.run --dev b --verbose --input")
            .arg(input.to_string())
            .end();
        for line in ended.stderr.lines() {
            assert!(!line.starts_with("  hint: paste"), "{ended}");
            assert!(!line.starts_with("error[unauthorised]"), "{ended}");
        }
    }
}

#[test]
fn a_reader_that_has_gone_does_not_make_a_failed_check_pass() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let name = "b/tools/hostile.run/TOOL.md";
    machine.write(
        name,
        machine
            .text(name)
            .replace("timeout_ms: 5000", "timeout_ms: 0"),
    );
    for words in ["check b", "check b --json"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = machine.toolward(words).into_command();
        let ended = command.stdout(writer).output().unwrap();
        assert_ne!(ended.status.code(), Some(0), "{words}");
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert!(!stderr.contains("panic"), "{stderr}");
    }
}

#[test]
fn an_archive_takes_the_place_of_an_older_one_of_its_id_and_of_nothing_else() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine.toolward("publisher keys new --out key.pem").ends(0);
    let pack = || machine.toolward("pack b -o x.toolbundle --key key.pem");
    machine.write("x.toolbundle", "precious");
    pack().ends(1).says("output-exists");
    assert_eq!(machine.text("x.toolbundle"), "precious");
    machine.add_example("text-stats");
    fs::rename(
        machine.path("text-stats.toolbundle"),
        machine.path("x.toolbundle"),
    )
    .unwrap();
    pack().ends(1).says("output-exists");
    fs::remove_file(machine.path("x.toolbundle")).unwrap();
    pack().ends(0);
    pack().ends(0);
}

#[test]
fn nothing_waits_for_a_pipe() {
    let machine = Machine::new();
    machine.toolward("publisher keys new --out key.pem").ends(0);
    let made = machine.program("mkfifo").arg("pipe").status().unwrap();
    assert!(made.success());
    for words in [
        "inspect pipe",
        "publisher sign pipe --key key.pem",
        "verify pipe --trust-key key.pub.pem",
        "check pipe",
    ] {
        let ended = machine.toolward(words).end();
        assert!(matches!(ended.code, Some(1..=3)), "{ended}");
    }
}
