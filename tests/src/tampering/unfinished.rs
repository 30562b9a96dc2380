//! Commands that fail leave everything unchanged.

use std::fs;

use toolward_signing::key::SigningKey;
use toolward_signing::secrecy::ExposeSecret as _;

use super::signed;
use crate::support::{Ended, Machine, tree};

/// Runs the command, and asserts that it fails with this exit code and changes nothing.
#[track_caller]
fn changes_nothing(machine: &Machine, words: &str, exit: i32, code: &str) -> Ended {
    let before = (tree(&machine.work()), tree(&machine.home()));
    let ended = machine.toolward(words).ends(exit);
    assert!(
        ended.stderr.contains(&format!("error[{code}]")),
        "no {code} in {ended}"
    );
    let after = (tree(&machine.work()), tree(&machine.home()));
    assert_eq!(after, before, "`{words}` left something behind");
    ended
}

/// A bundle under work, with `key.pem`. Its passphrase is in `right.txt`, and `wrong.txt` has
/// another one.
fn machine() -> Machine {
    let machine = Machine::new().with_own_cache();
    crate::hostile::add(&machine, "b");
    let key = SigningKey::generate().unwrap();
    let pem = key.to_encrypted_pem(&"open sesame".into()).unwrap();
    machine.write("key.pem", pem.expose_secret());
    machine.write("right.txt", "open sesame\n");
    machine.write("wrong.txt", "open barley\n");
    chmod(&machine, "key.pem", 0o600);
    machine
}

fn chmod(machine: &Machine, name: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(machine.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_pack_that_fails_leaves_nothing() {
    let machine = machine();
    let key = "--key key.pem --passphrase-file right.txt";
    let contract = machine.text("b/tools/hostile.run/TOOL.md");
    let pack = format!("pack b --output out.toolbundle {key}");

    let wrong = contract.replace("timeout_ms: 5000", "timeout_ms: -1");
    machine.write("b/tools/hostile.run/TOOL.md", wrong);
    let before = tree(&machine.work());
    let ended = machine.toolward(&pack).ends(1);
    assert!(ended.stderr.contains("TOOL.md:"), "{ended}");
    assert_eq!(tree(&machine.work()), before);
    machine.write("b/tools/hostile.run/TOOL.md", contract);

    fs::rename(
        machine.path("b/drivers/hostile/driver.wasm"),
        machine.path("away.wasm"),
    )
    .unwrap();
    changes_nothing(&machine, &pack, 1, "component-missing");
}

#[test]
fn a_pack_with_a_key_that_does_not_open_leaves_nothing() {
    let machine = machine();
    let pack = "pack b --key key.pem";
    for output in ["out.toolbundle", "out"] {
        let words = format!("{pack} --output {output} --passphrase-file wrong.txt");
        changes_nothing(&machine, &words, 1, "passphrase-wrong");
    }
    changes_nothing(
        &machine,
        &format!("{pack} --output out"),
        2,
        "passphrase-missing",
    );
    changes_nothing(&machine, "pack b --output out.toolbundle", 2, "key-missing");
    changes_nothing(
        &machine,
        "pack b --output out --key gone.pem",
        2,
        "file-unreadable",
    );
}

#[test]
fn pack_overwrites_no_directory() {
    let machine = machine();
    fs::create_dir(machine.path("out")).unwrap();
    machine.write("out/precious.txt", "mine");
    changes_nothing(&machine, "pack b --output out", 1, "output-exists");
    machine.write("file", "mine");
    changes_nothing(&machine, "pack b --output file", 1, "output-exists");
}

#[test]
fn a_sign_that_fails_leaves_the_bundle_as_it_was() {
    let machine = machine();
    machine.toolward("pack b --output packed").ends(0);
    let sign = "publisher sign packed --key key.pem";
    let words = format!("{sign} --passphrase-file wrong.txt");
    changes_nothing(&machine, &words, 1, "passphrase-wrong");
    // Exactly the files on the disk are signed, or nothing.
    let name = "packed/drivers/hostile/driver.wasm";
    let mut bytes = machine.read(name);
    bytes[100] ^= 1;
    machine.write(name, bytes);
    let words = format!("{sign} --passphrase-file right.txt");
    changes_nothing(&machine, &words, 3, "digest-mismatch");
    for output in ["other", "other.toolbundle"] {
        changes_nothing(
            &machine,
            &format!("{words} --output {output}"),
            3,
            "digest-mismatch",
        );
    }
}

#[test]
fn a_changed_archive_is_not_signed() {
    let machine = machine();
    let mut bundle = signed(&SigningKey::generate().unwrap());
    bundle.files.get_mut("tools.json").unwrap()[0] = b' ';
    bundle.write_archive(&machine.path("bad.toolbundle"));
    let sign = "publisher sign bad.toolbundle --key key.pem --passphrase-file right.txt";
    changes_nothing(&machine, sign, 3, "digest-mismatch");
    machine.write("bad.toolbundle", "no archive");
    changes_nothing(&machine, sign, 3, "archive-format");
}

#[test]
fn a_directory_that_is_no_bundle_is_neither_packed_nor_signed() {
    let machine = machine();
    fs::create_dir(machine.path("empty")).unwrap();
    let key = "--key key.pem --passphrase-file right.txt";
    changes_nothing(
        &machine,
        "pack empty --output out",
        1,
        "bundle-toml-missing",
    );
    changes_nothing(
        &machine,
        &format!("publisher sign empty {key}"),
        3,
        "manifest-missing",
    );
}

#[test]
fn new_overwrites_nothing() {
    let machine = machine();
    changes_nothing(&machine, "new b --id text.greet", 1, "output-exists");
    changes_nothing(&machine, "new fresh --id No.Id", 1, "id-invalid");
}

#[test]
fn a_refused_bundle_leaves_nothing() {
    let (machine, key) = super::machine_with_key();
    let mut bundle = signed(&key);
    bundle.files.get_mut("tools.json").unwrap()[0] = b' ';
    bundle.write_archive(&machine.path("bad.toolbundle"));
    let given = "bad.toolbundle --trust-key key.pub.pem";
    for command in [
        "verify",
        "inspect",
        "call text.stats --set text=a --bundle",
        "test",
    ] {
        let words = format!("{command} {given}");
        changes_nothing(&machine, &words, 3, "digest-mismatch");
    }
}
