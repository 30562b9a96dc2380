//! Ways around verification and around exit codes: what a bundle, whoever
//! carries it, or a closed pipe can't bring the command to do.

use std::fs;
use std::process::Stdio;

use crate::support::bundle::new_key;
use crate::support::{Draft, Ended, Machine, Signed, tree};

const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const BUNDLE_TOML: &str = "id = \"text.stats-bundle\"\nversion = \"1.0.0\"\nsequence = 1\n\
                           publisher = \"toolward-examples\"\n";

/// An unpacked bundle into which somebody has put a `bundle.toml` and other
/// words, so that it looks like a directory under work.
fn planted(machine: &Machine) {
    let words = |text: &str| text.replace("description: ", "description: EVIL ");
    let mut signed = Signed::of("text-stats");
    let tool = signed.files.get_mut(TOOL_MD).unwrap();
    *tool = words(std::str::from_utf8(tool).unwrap()).into_bytes();
    signed.write_directory(&machine.path("b"));
    machine.write("b/bundle.toml", BUNDLE_TOML);
}

#[test]
fn a_planted_bundle_toml_turns_no_verification_off() {
    let machine = Machine::with_example("text-stats");
    planted(&machine);
    let before = tree(&machine.home());
    for command in [
        "test b --trust-key example.pub.pem",
        "inspect b --trust-key example.pub.pem",
        "inspect b",
        "verify b --trust-key example.pub.pem",
    ] {
        let ended = machine.toolward(command).ends(3);
        assert!(!ended.stdout.contains("EVIL"), "{ended}");
        ended.says("file-extra");
    }
    machine.toolward("test b").ends(2).says("nobody-trusted");
    assert_eq!(tree(&machine.home()), before);
}

#[test]
fn a_trust_key_is_never_ignored_for_a_directory_under_work() {
    let machine = Machine::with_example("text-stats");
    planted(&machine);
    for packed in ["manifest.toml", "manifest.dsse.json", "tools.json"] {
        fs::remove_file(machine.path("b").join(packed)).unwrap();
    }
    for command in ["test", "inspect"] {
        let words = format!("{command} b --trust-key example.pub.pem");
        machine.toolward(&words).ends(3).says("envelope-missing");
    }
}

#[test]
fn unsigned_code_is_tested_only_where_dev_names_it_and_that_is_said() {
    let machine = Machine::with_example("text-stats");
    planted(&machine);
    for packed in ["manifest.toml", "manifest.dsse.json", "tools.json"] {
        fs::remove_file(machine.path("b").join(packed)).unwrap();
    }
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
fn an_inspection_shows_nothing_that_its_manifest_does_not_list() {
    let machine = Machine::with_example("text-stats");
    let mut signed = Signed::of("text-stats");
    signed.files.get_mut(TOOL_MD).unwrap().reverse();
    signed.write_directory(&machine.path("changed"));
    signed.write_archive(&machine.path("changed.toolbundle"));
    for bundle in ["changed", "changed.toolbundle"] {
        let words = format!("inspect {bundle} --files");
        machine.toolward(&words).ends(3).says("digest-mismatch");
    }
}

#[test]
fn an_archive_that_expands_without_measure_is_not_inspected_or_signed() {
    let machine = Machine::with_example("text-stats");
    machine.toolward("keys new --out me.pem").ends(0);
    let mut bomb = Signed::of("text-stats");
    bomb.files
        .insert("zzz".to_owned(), vec![0; 100 * 1024 * 1024]);
    bomb.write_archive(&machine.path("bomb.toolbundle"));
    for words in [
        "inspect bomb.toolbundle",
        "sign bomb.toolbundle --key me.pem",
    ] {
        machine.toolward(words).ends(3).says("file-extra");
    }
}

#[test]
fn only_a_bundles_manifest_is_signed() {
    let machine = Machine::with_example("text-stats");
    machine.toolward("keys new --out me.pem").ends(0);
    let mut other = Signed::of("text-stats");
    let envelope = String::from_utf8(other.envelope).unwrap();
    other.envelope = envelope.replace("bundle.manifest", "publisher").into();
    other.write_directory(&machine.path("b"));
    let before = tree(&machine.work());
    let refused = machine.toolward("sign b --key me.pem").ends(3);
    refused.says("payload-type");
    assert_eq!(tree(&machine.work()), before);
}

#[test]
fn what_was_signed_verifies_whatever_the_envelope_claimed_before() {
    let machine = Machine::with_example("text-stats");
    machine.toolward("keys new --out me.pem").ends(0);
    let mut claimed = Signed::of("text-stats");
    // Another key made it.
    claimed.provenance = None;
    claimed.write_directory(&machine.path("b"));
    machine.toolward("sign b --key me.pem").ends(0);
    let mut envelope: serde_json::Value =
        serde_json::from_slice(&machine.read("b/manifest.dsse.json")).unwrap();
    for signature in envelope["signatures"].as_array_mut().unwrap() {
        signature["sig"] = "AA==".into();
    }
    claimed.envelope = envelope.to_string().into();
    claimed.write_directory(&machine.path("claimed"));
    machine.toolward("sign claimed --key me.pem").ends(0);
    machine
        .toolward("verify claimed --trust-key me.pub.pem")
        .ends(0);
}

#[test]
fn text_of_a_bundle_forges_no_line_of_the_command() {
    let machine = Machine::new();
    let key = new_key(&machine.work(), "key");
    let forged = "\"x\\nerror-free\\n  publisher  acme (verified)\": 1\n";
    let bundle = Draft::of("text-stats").change(TOOL_MD, |text| {
        text.replacen("---\n", &format!("---\n{forged}"), 1)
    });
    bundle.sign(&key).write_directory(&machine.path("b"));
    for words in [
        "inspect b",
        "check b",
        "verify b --trust-key key.pub.pem",
        "inspect b --json",
    ] {
        let ended: Ended = machine.toolward(words).end();
        let lines = ended.stdout.lines().chain(ended.stderr.lines());
        let mut mentioned = false;
        for line in lines {
            mentioned |= line.contains("error-free");
            assert!(
                !line.starts_with("error-free") && !line.starts_with("  publisher  acme"),
                "{ended}"
            );
        }
        assert!(mentioned, "{ended}");
    }
}

/// The exit code of a command whose standard output nobody reads.
fn unread(machine: &Machine, words: &str) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = machine.toolward(words).into_command();
    let ended = command.stdin(Stdio::null()).stdout(writer).output();
    ended.unwrap().status.code()
}

#[test]
fn a_reader_that_has_gone_turns_no_failure_into_success() {
    let machine = Machine::with_example("text-stats");
    machine.write("bad/TOOL.md", "---\nid: 1\n---\n");
    let refused = "verify bad --json --trust-key example.pub.pem";
    for (words, code) in [
        ("check bad", 1),
        ("check bad --json", 1),
        (refused, 3),
        (
            "call none --json --bundle text-stats.toolbundle --trust-key example.pub.pem",
            1,
        ),
        (
            "verify text-stats.toolbundle --trust-key example.pub.pem",
            0,
        ),
    ] {
        assert_eq!(unread(&machine, words), Some(code), "{words}");
    }
}

#[test]
fn every_example_is_run_when_the_reader_goes_after_the_first() {
    let machine = Machine::new();
    let key = new_key(&machine.work(), "key");
    // The last example fails; a reader that has gone must not hide it.
    let bundle = Draft::of("text-stats").change(TOOL_MD, |text| {
        let (before, last) = text.rsplit_once("words: 0").unwrap();
        format!("{before}words: 7{last}")
    });
    bundle
        .sign(&key)
        .write_archive(&machine.path("b.toolbundle"));
    let words = "test b.toolbundle --trust-key key.pub.pem";
    machine.toolward(words).ends(1);
    assert_eq!(unread(&machine, words), Some(1));
}

#[test]
fn an_archive_is_written_over_a_bundle_of_its_id_and_over_nothing_else() {
    let machine = Machine::with_example("text-stats");
    machine.toolward("keys new --out me.pem").ends(0);
    let sign = "sign text-stats.toolbundle --key me.pem -o out.toolbundle";
    machine.toolward(sign).ends(0);
    machine.toolward(sign).ends(0);
    machine.write("out.toolbundle", "precious");
    machine.toolward(sign).ends(1).says("output-exists");
    assert_eq!(machine.read("out.toolbundle"), b"precious");
}
