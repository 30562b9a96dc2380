//! Bundle directories: the set of files must be exact, and only regular files are accepted.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use toolward_signing::verify::{self, VerifyOptions, VerifyProgress};

use crate::support::{Sample, acme, code, key, options};

fn refused(spoil: impl FnOnce(&Path)) -> &'static str {
    let directory = Sample::new().sign(&[&key(1)]).directory();
    spoil(directory.path());
    code(verify::open(directory.path(), &acme(), &options()))
}

#[test]
fn a_signed_directory_verifies_and_gives_its_bytes() {
    let sample = Sample::new();
    let bundle = sample.sign(&[&key(1)]).verify(&acme()).unwrap();
    assert_eq!(bundle.manifest.id, "text.stats");
    assert_eq!(bundle.publisher.name(), "acme");
    assert_eq!(bundle.signers, [key(1).public().key_id()]);
    assert_eq!(bundle.files.len(), sample.files.len());
    for (path, bytes) in &sample.files {
        assert_eq!(&**bundle.file(path).unwrap(), bytes.as_slice());
    }
    assert!(bundle.warnings.is_empty());
    assert!(bundle.may_publish("text") && !bundle.may_publish("texts"));
    assert_eq!(
        bundle.refuse_id("mail.send").unwrap().code(),
        "prefix-not-granted"
    );
}

#[test]
fn a_missing_file_is_refused() {
    assert_eq!(
        refused(|at| fs::remove_file(at.join("README.md")).unwrap()),
        "file-missing"
    );
    assert_eq!(
        refused(|at| fs::remove_file(at.join("tools.json")).unwrap()),
        "file-missing"
    );
    assert_eq!(
        refused(|at| fs::remove_dir_all(at.join("drivers")).unwrap()),
        "file-missing"
    );
    assert_eq!(
        refused(|at| fs::remove_file(at.join("manifest.toml")).unwrap()),
        "manifest-missing"
    );
    assert_eq!(
        refused(|at| fs::remove_file(at.join("manifest.dsse.json")).unwrap()),
        "envelope-missing"
    );
}

#[test]
fn an_extra_file_or_folder_is_refused() {
    assert_eq!(
        refused(|at| fs::write(at.join("extra"), "").unwrap()),
        "file-extra"
    );
    assert_eq!(
        refused(|at| fs::write(at.join("tools/text.stats/.hidden"), "").unwrap()),
        "file-extra"
    );
    assert_eq!(
        refused(|at| fs::create_dir(at.join("empty")).unwrap()),
        "file-extra"
    );
    assert_eq!(
        refused(|at| fs::write(at.join("tools/manifest.toml"), "").unwrap()),
        "file-extra"
    );
}

#[test]
fn a_renamed_file_is_refused() {
    let code = refused(|at| fs::rename(at.join("README.md"), at.join("readme.md")).unwrap());
    assert!(["file-extra", "file-missing"].contains(&code), "{code}");
}

#[test]
fn swapped_files_of_one_size_are_refused() {
    let code = refused(|at| {
        let path = at.join("tools/text.stats/TOOL.md");
        let bytes = fs::read(&path).unwrap();
        let swapped: Vec<u8> = bytes.iter().rev().copied().collect();
        fs::write(path, swapped).unwrap();
    });
    assert_eq!(code, "digest-mismatch");
}

#[test]
fn a_file_of_another_size_is_refused_before_it_is_read() {
    let code = refused(|at| {
        let file = fs::File::create(at.join("README.md")).unwrap();
        // The file is sparse; reading all of it would take long and much memory.
        file.set_len(1 << 40).unwrap();
    });
    assert_eq!(code, "size-mismatch");
}

#[test]
fn a_huge_manifest_or_envelope_is_refused_before_it_is_read() {
    for name in [
        "manifest.toml",
        "manifest.dsse.json",
        "provenance.dsse.json",
    ] {
        let code = refused(|at| {
            let file = fs::File::create(at.join(name)).unwrap();
            file.set_len(1 << 40).unwrap();
        });
        assert_eq!(code, "too-large", "{name}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_refused_and_not_followed() {
    use std::os::unix::fs::symlink;

    let secret = tempfile::tempdir().unwrap();
    let outside = secret.path().join("TOOL.md");
    for name in [
        "README.md",
        "manifest.toml",
        "manifest.dsse.json",
        "tools.json",
    ] {
        let code = refused(|at| {
            fs::rename(at.join(name), &outside).unwrap();
            symlink(&outside, at.join(name)).unwrap();
        });
        assert_eq!(code, "file-type", "{name}");
    }
    // A link to a folder inside the bundle would lead to the right bytes.
    let code = refused(|at| {
        fs::rename(at.join("tools"), at.join("drivers/tools")).unwrap();
        symlink("drivers/tools", at.join("tools")).unwrap();
    });
    assert!(["file-type", "file-extra"].contains(&code), "{code}");
    let code = refused(|at| {
        fs::remove_file(at.join("README.md")).unwrap();
        let status = std::process::Command::new("mkfifo")
            .arg(at.join("README.md"))
            .status()
            .unwrap();
        assert!(status.success());
    });
    assert_eq!(code, "file-type");
    let code = refused(|at| {
        fs::remove_file(at.join("manifest.toml")).unwrap();
        let status = std::process::Command::new("mkfifo")
            .arg(at.join("manifest.toml"))
            .status()
            .unwrap();
        assert!(status.success());
    });
    assert_eq!(code, "file-type");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;

    let code = refused(|at| {
        fs::write(at.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    });
    assert_eq!(code, "path-invalid");
}

#[test]
fn what_is_neither_directory_nor_archive_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert_eq!(code(verify::open(&missing, &acme(), &options())), "io");
    let file = directory.path().join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(
        code(verify::open(&file, &acme(), &options())),
        "archive-format"
    );
    assert_eq!(
        code(verify::open(directory.path(), &acme(), &options())),
        "envelope-missing"
    );
}

#[test]
fn progress_rises_to_the_total_in_both_forms() {
    let signed = Sample::new().sign(&[&key(1)]);
    let directory = signed.directory();
    let last = Cell::new(VerifyProgress { done: 0, total: 1 });
    let calls = Cell::new(0);
    let tell = |progress: VerifyProgress| {
        assert!(progress.done >= last.get().done || last.get().done == last.get().total);
        last.set(progress);
        calls.set(calls.get() + 1);
    };
    let options = VerifyOptions {
        progress: Some(&tell),
        ..options()
    };
    verify::open(directory.path(), &acme(), &options).unwrap();
    assert_eq!(last.get().done, last.get().total);
    verify::archive_bytes(&signed.archive(), &acme(), &options).unwrap();
    assert_eq!(last.get().done, last.get().total);
    assert!(calls.get() > 6);
}
