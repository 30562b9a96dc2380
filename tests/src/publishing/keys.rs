//! `toolward publisher keys`: keys are made once, never overwritten, and never shown.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Machine, tree};

fn mode(machine: &Machine, name: &str) -> u32 {
    fs::metadata(machine.path(name))
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn a_new_key_is_its_owners_alone() {
    let machine = Machine::new();
    let made = machine
        .toolward("publisher keys new --out acme.pem --json")
        .ends(0)
        .json();
    assert_eq!(mode(&machine, "acme.pem"), 0o600);
    assert!(
        machine
            .text("acme.pem")
            .starts_with("-----BEGIN PRIVATE KEY-----")
    );
    assert!(
        machine
            .text("acme.pub.pem")
            .starts_with("-----BEGIN PUBLIC KEY-----")
    );
    for name in ["acme.pem", "acme.pub.pem"] {
        let shown = machine
            .toolward(&format!("publisher keys show {name} --json"))
            .ends(0)
            .json();
        assert_eq!(shown["key_id"], made["key_id"], "{shown}");
        assert_eq!(shown["example"], false);
    }
}

#[test]
fn two_new_keys_differ() {
    let machine = Machine::new();
    machine.toolward("publisher keys new --out a.pem").ends(0);
    machine.toolward("publisher keys new --out b.pem").ends(0);
    assert_ne!(machine.text("a.pem"), machine.text("b.pem"));
    assert_ne!(machine.text("a.pub.pem"), machine.text("b.pub.pem"));
}

#[test]
fn no_key_is_overwritten() {
    let machine = Machine::new();
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    machine.write("other.pub.pem", "mine");
    machine.write("pass.txt", "open sesame\n");
    let before = tree(&machine.work());
    for words in [
        "publisher keys new --out acme.pem",
        // Its public half would overwrite an existing file.
        "publisher keys new --out other.pem",
        "publisher keys public acme.pem --out other.pub.pem",
        "publisher keys encrypt acme.pem --out acme.pem --passphrase-file pass.txt",
    ] {
        let ended = machine.toolward(words).ends(1);
        ended.says("output-exists");
        assert_eq!(tree(&machine.work()), before, "{words}");
    }
}

#[test]
fn an_encrypted_key_opens_with_its_passphrase_only() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine.write("right.txt", "open sesame\n");
    machine.write("wrong.txt", "open barley\n");
    machine.write("empty.txt", "\n");
    machine
        .toolward("publisher keys new --out acme.pem --encrypt --passphrase-file right.txt")
        .ends(0);
    assert_eq!(mode(&machine, "acme.pem"), 0o600);
    assert!(
        machine
            .text("acme.pem")
            .starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    );

    let pack =
        |rest: &str| machine.toolward(&format!("pack b -o b.toolbundle --key acme.pem {rest}"));
    pack("--passphrase-file wrong.txt")
        .ends(1)
        .says("passphrase-wrong");
    pack("--passphrase-file empty.txt").ends(2);
    // No terminal is available for a question.
    pack("").ends(2).says("passphrase-missing");
    assert!(!machine.path("b.toolbundle").exists());
    pack("--passphrase-file right.txt").ends(0);
    machine
        .toolward("verify b.toolbundle --trust-key acme.pub.pem")
        .ends(0);
    // Passed through a descriptor, so that it is in no file.
    pack("--passphrase-fd 0").stdin("open sesame\n").ends(0);
}

#[test]
fn encrypting_keeps_the_key_and_its_id() {
    let machine = Machine::new();
    let made = machine
        .toolward("publisher keys new --out acme.pem --json")
        .ends(0)
        .json();
    machine.write("pass.txt", "open sesame\n");
    machine
        .toolward("publisher keys encrypt acme.pem --out safe.pem --passphrase-file pass.txt")
        .ends(0);
    assert_eq!(mode(&machine, "safe.pem"), 0o600);
    let shown = machine
        .toolward("publisher keys show safe.pem --passphrase-file pass.txt --json")
        .ends(0);
    assert_eq!(shown.json()["key_id"], made["key_id"]);
    assert!(machine.path("acme.pem").exists());
}

#[test]
fn the_private_key_is_never_printed() {
    let machine = Machine::new();
    let made = machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    let pem = machine.text("acme.pem");
    let secret = pem.lines().nth(1).unwrap();
    let mut texts = vec![made.stdout, made.stderr];
    for words in [
        "publisher keys show acme.pem",
        "publisher keys show acme.pem --json",
        "publisher keys public acme.pem",
    ] {
        let ended = machine.toolward(words).ends(0);
        texts.extend([ended.stdout, ended.stderr]);
    }
    // A private key in place of a public one is a mistake, and must not be quoted.
    machine.add_example("text-stats");
    let ended = machine
        .toolward("verify text-stats.toolbundle --trust-key acme.pem")
        .ends(2);
    texts.extend([ended.stdout, ended.stderr]);
    let (_, half) = secret.split_at(24);
    for text in texts {
        assert!(!text.contains(secret) && !text.contains(half), "{text}");
    }
    let public = machine
        .toolward("publisher keys public acme.pem")
        .ends(0)
        .stdout;
    assert_eq!(public.trim_end(), machine.text("acme.pub.pem").trim_end());
}

#[test]
fn a_private_key_that_others_can_read_is_warned_of() {
    let machine = Machine::new();
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    fs::set_permissions(machine.path("acme.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    machine
        .toolward("publisher keys show acme.pem")
        .ends(0)
        .warns("others can read this private key");
}

#[test]
fn the_example_key_is_named_for_what_it_is() {
    let machine = Machine::new();
    let folder = crate::support::root().join("examples/keys");
    for name in ["example.pub.pem", "INSECURE-example-signing-key.pem"] {
        let run = || {
            machine
                .toolward("publisher keys show")
                .arg(folder.join(name))
        };
        assert!(run().ends(0).stdout.contains("trust nothing"), "{name}");
        assert_eq!(
            run().arg("--json").ends(0).json()["example"],
            true,
            "{name}"
        );
    }
}

#[test]
fn a_file_is_not_taken_for_a_publishers_name() {
    let machine = Machine::new();
    machine
        .toolward("publisher keys new --out mine.pem")
        .ends(0);
    let new = "publisher new acme --public-key mine.pub.pem --key mine.pem -o acme.publisher.json";
    machine.toolward(new).ends(0);
    for command in [
        "publisher revoke acme.publisher.json --key mine.pem -o list.json",
        "publisher new acme.publisher.json --public-key mine.pub.pem --key mine.pem -o list.json",
    ] {
        let refused = machine.toolward(command).ends(2);
        refused.says("setting-invalid");
        assert!(
            refused.stderr.contains("its publisher is acme"),
            "{refused}"
        );
        assert!(!machine.path("list.json").exists());
    }
}

#[test]
fn a_new_bundle_without_a_publisher_reports_the_one_that_it_has() {
    let machine = Machine::new();
    let made = machine.toolward("new text.greet").ends(0);
    assert!(made.stderr.contains("the publisher is `local`"), "{made}");
    let made = machine.toolward("new text.meet --publisher acme").ends(0);
    assert!(!made.stderr.contains("the publisher is"), "{made}");
}

#[test]
fn a_file_that_is_no_component_is_called_what_it_is() {
    let machine = Machine::new();
    for (bytes, kind) in [
        (&b"{\"a\": 1}"[..], "this is JSON"),
        (b"PK\x03\x04rest", "this is a ZIP archive"),
        (b"\x89PNG\r\n\x1a\n", "this is a PNG image"),
        (b"", "this is an empty file"),
    ] {
        machine.write("driver.wasm", bytes);
        let refused = machine.toolward("inspect driver.wasm").end();
        assert_ne!(refused.code, Some(0), "{refused}");
        let shown = format!("{}{}", refused.stdout, refused.stderr);
        assert!(shown.contains(kind), "{kind}: {shown}");
        assert!(!shown.contains("0x"), "{shown}");
    }
}
