//! An unsigned bundle and a closed pipe must not bypass the command's checks.

use std::fs;
use std::process::Stdio;

use crate::support::bundle::new_key;
use crate::support::{Draft, Machine, Signed};

const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const BUNDLE_TOML: &str = "id = \"text.stats-bundle\"\nversion = \"1.0.0\"\nsequence = 1\n\
                           publisher = \"toolward-examples\"\ncreated = \"2026-11-01T00:00:00Z\"\n";

/// A machine with `b`, an unsigned bundle under work, and with `example.pub.pem`.
fn under_work() -> Machine {
    let machine = Machine::with_example("text-stats");
    Signed::of("text-stats").write_directory(&machine.path("b"));
    for packed in [
        "manifest.toml",
        "manifest.dsse.json",
        "provenance.dsse.json",
        "tools.json",
    ] {
        fs::remove_file(machine.path("b").join(packed)).unwrap();
    }
    machine.write("b/bundle.toml", BUNDLE_TOML);
    machine
}

#[test]
fn a_trust_key_is_never_ignored_for_a_directory_under_work() {
    let machine = under_work();
    for command in ["test", "inspect"] {
        let words = format!("{command} b --trust-key example.pub.pem");
        machine.toolward(&words).ends(3).says("envelope-missing");
    }
}

#[test]
fn unsigned_code_is_tested_only_where_dev_names_it_and_that_is_said() {
    let machine = under_work();
    let refused = machine.toolward("test b").ends(2);
    refused.says("bundle-unsigned");
    assert!(refused.stderr.contains("--dev b"), "{refused}");
    let ran = machine.toolward("test --dev b").ends(0);
    assert!(ran.stderr.contains("b: unsigned"), "{ran}");
    assert!(ran.stdout.contains("ok     text.stats@1"), "{ran}");
    machine
        .toolward("test --dev b --trust-key example.pub.pem")
        .ends(2);
}

#[test]
fn every_example_is_run_when_the_reader_goes_after_the_first() {
    let machine = Machine::new();
    let key = new_key(&machine.work(), "key");
    // The last example fails. A closed pipe must not hide that.
    let bundle = Draft::of("text-stats").change(TOOL_MD, |text| {
        let (before, last) = text.rsplit_once("words: 0").unwrap();
        format!("{before}words: 7{last}")
    });
    bundle
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    let words = "test b.toolbundle --trust-key key.pub.pem";
    machine.toolward(words).ends(1);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = machine.toolward(words).into_command();
    let ended = command.stdin(Stdio::null()).stdout(writer).output();
    assert_eq!(ended.unwrap().status.code(), Some(1));
}

#[test]
fn one_passphrase_from_a_pipe_opens_every_key() {
    let machine = under_work();
    for key in ["one", "two"] {
        let made = format!("publisher keys new --out {key}.pem --passphrase-fd 0");
        machine.toolward(&made).stdin("open sesame\n").ends(0);
    }
    let pack = "pack b -o out --key one.pem --key two.pem --passphrase-fd 0";
    machine.toolward(pack).stdin("open sesame\n").ends(0);
    for key in ["one", "two"] {
        let verify = format!("verify out --trust-key {key}.pub.pem");
        machine.toolward(&verify).ends(0);
    }
}
