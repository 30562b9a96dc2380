//! Bundles that were changed after they were signed.

use std::fs;
use std::io::Write as _;

use toolward_signing::archive::{self, Contents};
use toolward_signing::secrecy::ExposeSecret as _;

use super::{call_refused, machine_with_key, refused, signed};
use crate::support::machine::toolward;
use crate::support::{Machine, Run, Signed};

const TOOL_MD: &str = "tools/text.stats/TOOL.md";
const DRIVER: &str = "drivers/text-stats/driver.wasm";

/// Positions at the start, at the end, and evenly between.
fn positions(length: usize, count: usize) -> Vec<usize> {
    (0..count).map(|n| n * (length - 1) / (count - 1)).collect()
}

#[test]
fn one_byte_changed_in_a_file_of_an_unpacked_bundle_is_refused() {
    let (machine, key) = machine_with_key();
    let signed = signed(&key);
    signed.write_directory(&machine.path("b"));
    machine.toolward("verify b --trust-key key.pub.pem").ends(0);
    for (name, code) in [
        ("manifest.toml", "manifest-mismatch"),
        ("tools.json", "digest-mismatch"),
        (TOOL_MD, "digest-mismatch"),
        ("drivers/text-stats/DRIVER.md", "digest-mismatch"),
        (DRIVER, "digest-mismatch"),
    ] {
        let path = machine.path("b").join(name);
        let good = fs::read(&path).unwrap();
        for position in positions(good.len(), 4) {
            let mut bad = good.clone();
            bad[position] ^= 1;
            fs::write(&path, bad).unwrap();
            let error = refused(&machine, "b --trust-key key.pub.pem", code);
            assert!(error["place"].as_str().unwrap().contains(name), "{error}");
            call_refused(&machine, "--bundle b --trust-key key.pub.pem", code);
        }
        fs::write(&path, good).unwrap();
    }
    machine.toolward("verify b --trust-key key.pub.pem").ends(0);
}

#[test]
fn one_byte_changed_in_a_file_of_an_archive_is_refused() {
    let (machine, key) = machine_with_key();
    let good = signed(&key);
    for (name, code) in [
        ("manifest.toml", "manifest-mismatch"),
        ("tools.json", "digest-mismatch"),
        (TOOL_MD, "digest-mismatch"),
        (DRIVER, "digest-mismatch"),
    ] {
        let mut bad = good.clone();
        let file = match name {
            "manifest.toml" => &mut bad.manifest,
            name => bad.files.get_mut(name).unwrap(),
        };
        let middle = file.len() / 2;
        file[middle] ^= 1;
        bad.write_archive(&machine.path("bad.toolbundle"));
        refused(&machine, "bad.toolbundle --trust-key key.pub.pem", code);
        call_refused(
            &machine,
            "--bundle bad.toolbundle --trust-key key.pub.pem",
            code,
        );
    }
}

#[test]
fn one_byte_changed_anywhere_in_an_archive_is_refused_or_changes_nothing() {
    let machine = Machine::with_example("text-stats");
    let verify = || {
        let words = "verify bad.toolbundle --trust-key example.pub.pem --json";
        machine.toolward(words).end()
    };
    let good = machine.read("text-stats.toolbundle");
    machine.write("bad.toolbundle", &good);
    let original = verify().json();
    for position in positions(good.len(), 40) {
        let mut bad = good.clone();
        bad[position] ^= 0x10;
        machine.write("bad.toolbundle", bad);
        let ended = verify();
        match ended.code {
            Some(0) => assert_eq!(ended.json(), original, "byte {position}"),
            code => assert_eq!(code, Some(3), "byte {position}: {ended}"),
        }
    }
}

#[test]
fn one_byte_changed_in_the_envelope_is_refused_or_changes_nothing() {
    let (machine, key) = machine_with_key();
    let good = signed(&key);
    good.write_directory(&machine.path("b"));
    let verify = || {
        machine
            .toolward("verify b --trust-key key.pub.pem --json")
            .end()
    };
    let original = verify().json();
    let mut refused = 0;
    for position in positions(good.envelope.len(), 40) {
        let mut bad = good.envelope.clone();
        bad[position] ^= 1;
        machine.write("b/manifest.dsse.json", bad);
        let ended = verify();
        match ended.code {
            Some(0) => assert_eq!(ended.json(), original, "byte {position}"),
            code => {
                assert_eq!(code, Some(3), "byte {position}: {ended}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20, "{refused} of 40");
}

#[test]
fn the_readmes_changed_byte_is_refused() {
    let machine = Machine::with_example("text-stats");
    let mut archive = machine.read("text-stats.toolbundle");
    let middle = archive.len() / 2;
    archive[middle] = !archive[middle];
    machine.write("text-stats.toolbundle", archive);
    let words = "call text.stats --bundle text-stats.toolbundle --trust-key example.pub.pem";
    let ended = machine.toolward(&format!("{words} --set text=a")).ends(3);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("error["), "{ended}");
    assert!(ended.stderr.contains("hint: "), "{ended}");
}

/// Changes a bundle, and asserts that it is refused as a directory and as an archive.
#[track_caller]
fn both_refuse(code: &str, change: impl Fn(&mut Signed)) {
    let (machine, key) = machine_with_key();
    let mut bundle = signed(&key);
    change(&mut bundle);
    bundle.write_directory(&machine.path("b"));
    refused(&machine, "b --trust-key key.pub.pem", code);
    call_refused(&machine, "--bundle b --trust-key key.pub.pem", code);
    bundle.write_archive(&machine.path("b.toolbundle"));
    refused(&machine, "b.toolbundle --trust-key key.pub.pem", code);
    call_refused(
        &machine,
        "--bundle b.toolbundle --trust-key key.pub.pem",
        code,
    );
}

#[test]
fn a_missing_file_is_refused() {
    both_refuse("file-missing", |bundle| {
        bundle.files.remove(DRIVER).unwrap();
    });
}

#[test]
fn an_extra_file_is_refused() {
    both_refuse("file-extra", |bundle| {
        bundle
            .files
            .insert("tools/text.stats/notes.md".to_owned(), b"hello".to_vec());
    });
}

#[test]
fn a_renamed_file_is_refused() {
    let (machine, key) = machine_with_key();
    let mut bundle = signed(&key);
    let bytes = bundle.files.remove(TOOL_MD).unwrap();
    for new in ["tools/text.stats/TOOL2.md", "tools/text.stats/Tool.md"] {
        let mut bundle = bundle.clone();
        bundle.files.insert(new.to_owned(), bytes.clone());
        let _ = fs::remove_dir_all(machine.path("b"));
        bundle.write_directory(&machine.path("b"));
        bundle.write_archive(&machine.path("b.toolbundle"));
        for name in ["b", "b.toolbundle"] {
            let words = format!("verify {name} --trust-key key.pub.pem --json");
            let error = machine.toolward(&words).ends(3).json();
            let code = error["error"]["code"].as_str().unwrap();
            // Either half of a renaming may be found first.
            let codes = ["file-missing", "file-extra", "path-conflict"];
            assert!(codes.contains(&code), "{new}: {error}");
        }
    }
}

#[test]
fn two_files_with_each_others_content_are_refused() {
    let (machine, key) = machine_with_key();
    let mut bundle = signed(&key);
    let one = bundle.files[TOOL_MD].clone();
    let other = bundle.files.insert("tools.json".to_owned(), one).unwrap();
    bundle.files.insert(TOOL_MD.to_owned(), other);
    bundle.write_directory(&machine.path("b"));
    let words = "verify b --trust-key key.pub.pem --json";
    let error = machine.toolward(words).ends(3).json();
    let code = error["error"]["code"].as_str().unwrap();
    assert!(
        ["size-mismatch", "digest-mismatch"].contains(&code),
        "{error}"
    );
}

#[test]
fn a_link_is_no_file() {
    let (machine, key) = machine_with_key();
    signed(&key).write_directory(&machine.path("b"));
    let path = machine.path("b").join(DRIVER);
    fs::rename(&path, machine.path("elsewhere.wasm")).unwrap();
    std::os::unix::fs::symlink(machine.path("elsewhere.wasm"), &path).unwrap();
    refused(&machine, "b --trust-key key.pub.pem", "file-type");
}

#[test]
fn a_file_that_comes_twice_is_refused() {
    let (machine, key) = machine_with_key();
    let bundle = signed(&key);
    bundle.write_archive(&machine.path("b.toolbundle"));
    let tar = zstd::stream::decode_all(machine.read("b.toolbundle").as_slice()).unwrap();
    // The last entry again: its header and content, before the two empty blocks.
    let end = tar.len() - 1024;
    let (name, bytes) = bundle.files.last_key_value().unwrap();
    let length = 512 + bytes.len().div_ceil(512) * 512;
    let last = &tar[end - length..end];
    assert!(last.starts_with(name.as_bytes()));
    let twice = [&tar[..end], last, &tar[end..]].concat();
    machine.write(
        "b.toolbundle",
        zstd::stream::encode_all(twice.as_slice(), 3).unwrap(),
    );
    let error = machine
        .toolward("verify b.toolbundle --trust-key key.pub.pem --json")
        .ends(3);
    let code = error.json()["error"]["code"].as_str().unwrap().to_owned();
    assert!(
        ["file-duplicate", "archive-order"].contains(&code.as_str()),
        "{error}"
    );
}

#[test]
fn what_follows_an_archive_or_is_cut_off_is_refused() {
    let (machine, key) = machine_with_key();
    signed(&key).write_archive(&machine.path("b.toolbundle"));
    let good = machine.read("b.toolbundle");
    machine.write("b.toolbundle", [&good[..], b"more"].concat());
    refused(
        &machine,
        "b.toolbundle --trust-key key.pub.pem",
        "archive-trailing-data",
    );
    machine.write("b.toolbundle", &good[..good.len() / 2]);
    refused(
        &machine,
        "b.toolbundle --trust-key key.pub.pem",
        "archive-truncated",
    );
    machine.write("b.toolbundle", b"no archive");
    refused(
        &machine,
        "b.toolbundle --trust-key key.pub.pem",
        "archive-format",
    );
}

#[test]
fn a_manifest_of_other_files_under_the_same_envelope_is_refused() {
    let (machine, key) = machine_with_key();
    let good = signed(&key);
    let other = super::Draft::of("json-query").sign(&key);
    let files = other
        .files
        .iter()
        .map(|(name, bytes)| {
            (
                toolward_signing::path::BundlePath::parse(name).unwrap(),
                bytes.as_slice(),
            )
        })
        .collect();
    let contents = Contents {
        envelope: &good.envelope,
        manifest: &other.manifest,
        provenance: None,
        files,
    };
    machine.write("b.toolbundle", archive::to_bytes(&contents).unwrap());
    refused(
        &machine,
        "b.toolbundle --trust-key key.pub.pem",
        "manifest-mismatch",
    );
}

/// An archive of one file of zeros.
fn zeros(name: &str, mebibytes: usize) -> Vec<u8> {
    let size = mebibytes << 20;
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[108..116].copy_from_slice(b"0000000\0");
    header[116..124].copy_from_slice(b"0000000\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].fill(b' ');
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    archive.write_all(&header).unwrap();
    let mebibyte = vec![0; 1 << 20];
    for _ in 0..mebibytes {
        archive.write_all(&mebibyte).unwrap();
    }
    archive.write_all(&[0; 1024]).unwrap();
    archive.finish().unwrap()
}

#[test]
fn an_archive_that_expands_without_measure_is_not_expanded() {
    let (machine, key) = machine_with_key();
    machine.write("key.pem", key.to_pem().unwrap().expose_secret());
    for name in ["zeros", "manifest.dsse.json"] {
        let archive = zeros(name, 1000);
        assert!(archive.len() < 1 << 20);
        machine.write("b.toolbundle", archive);
        for words in [
            "verify b.toolbundle --trust-key key.pub.pem",
            // These two commands read unsigned content.
            "inspect b.toolbundle",
            "publisher sign b.toolbundle --key key.pem",
        ] {
            // With 500 MB of address space, expanding it would abort.
            let mut shell = machine.program("sh");
            shell.args(["-c", "ulimit -v 500000 && exec \"$0\" \"$@\""]);
            shell.arg(toolward()).args(words.split(' '));
            let ended = Run::new(shell).end();
            assert!(matches!(ended.code, Some(1 | 3)), "{ended}");
            assert!(
                ended.stderr.contains("error[") && ended.stderr.contains("hint: "),
                "{ended}"
            );
        }
    }
}
