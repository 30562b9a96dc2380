//! Reading a bundle without verifying signatures: as strict about bytes as verification.

use toolward_signing::Refusal;
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::verify::{self, UnsignedBundle};

use crate::support::{Sample, Signed, acme, compress, envelope, key, options, tar_of};

fn archive(bytes: &[u8]) -> Result<UnsignedBundle, Refusal> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    verify::unsigned(file.path())
}

/// Reads a bundle in both forms, which must agree.
fn read(bundle: &Signed) -> Result<UnsignedBundle, &'static str> {
    let in_directory = verify::unsigned(bundle.directory().path());
    let in_archive = archive(&bundle.archive());
    match (in_directory, in_archive) {
        (Ok(one), Ok(other)) => {
            assert_eq!(one.files, other.files);
            assert_eq!(one.manifest_digest, other.manifest_digest);
            assert_eq!(one.envelope, other.envelope);
            Ok(one)
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.code(), other.code(), "{one:?} {other:?}");
            Err(one.code())
        }
        (one, other) => panic!("directory: {one:?}, archive: {other:?}"),
    }
}

#[test]
fn whoever_signed_it_a_bundle_that_is_what_its_manifest_says_is_read() {
    let stranger = Sample::new().sign(&[&key(9)]);
    let bundle = read(&stranger).unwrap();
    assert_eq!(bundle.manifest.publisher, "acme");
    assert_eq!(bundle.files.len(), stranger.files.len());
    assert!(verify::archive_bytes(&stranger.archive(), &acme(), &options()).is_err());
}

#[test]
fn a_directory_without_signatures_is_read_and_an_archive_always_has_an_envelope() {
    let signed = Sample::new().sign(&[&key(1)]);
    let directory = signed.directory();
    std::fs::remove_file(directory.path().join("manifest.dsse.json")).unwrap();
    let bundle = verify::unsigned(directory.path()).unwrap();
    assert!(bundle.envelope.is_none());

    let tar = tar_of(&signed.archive());
    let without = &tar[512 + signed.envelope.len().div_ceil(512) * 512..];
    let refusal = archive(&compress(without)).unwrap_err();
    assert_eq!(refusal.code(), "archive-order");
}

#[test]
fn a_file_that_is_not_the_one_listed_is_refused_whoever_signed() {
    let change = |change: &dyn Fn(&mut Signed)| {
        let mut bundle = Sample::new().sign(&[&key(9)]);
        change(&mut bundle);
        read(&bundle).unwrap_err()
    };
    let tool = "tools/text.stats/TOOL.md";
    assert_eq!(
        change(&|bundle| bundle.files.get_mut(tool).unwrap()[5] ^= 1),
        "digest-mismatch"
    );
    assert_eq!(
        change(&|bundle| bundle.files.get_mut(tool).unwrap().push(b'\n')),
        "size-mismatch"
    );
    assert_eq!(
        change(&|bundle| drop(bundle.files.insert("zzz".to_owned(), vec![1]))),
        "file-extra"
    );
    assert_eq!(
        change(&|bundle| drop(bundle.files.remove(tool))),
        "file-missing"
    );
    assert_eq!(
        change(&|bundle| bundle.manifest.push(b'\n')),
        "manifest-mismatch"
    );
}

#[test]
fn an_envelope_over_another_kind_of_document_is_refused_whoever_signed() {
    let mut bundle = Sample::new().sign(&[&key(9)]);
    let other = MANIFEST_TYPE.replace("manifest", "publisher");
    bundle.envelope = envelope(&other, &bundle.manifest, &[&key(9)]);
    assert_eq!(read(&bundle).unwrap_err(), "payload-type");
}

#[test]
fn an_archive_that_nobody_vouches_for_expands_no_further_than_its_manifest_and_the_ratio_allow() {
    let mut sample = Sample::new();
    let bomb = sample.sign(&[&key(9)]);
    // A file that is not in the manifest is refused at its header.
    let mut extra = bomb.clone();
    extra
        .files
        .insert("zzz".to_owned(), vec![0; 64 * 1024 * 1024]);
    assert_eq!(archive(&extra.archive()).unwrap_err().code(), "file-extra");
    // A listed file is refused by the ratio of the listed sizes to the archive's size.
    sample
        .files
        .insert("zzz".to_owned(), vec![0; 64 * 1024 * 1024]);
    let listed = sample.sign(&[&key(9)]);
    assert_eq!(
        archive(&listed.archive()).unwrap_err().code(),
        "archive-ratio"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert_eq!(verify::unsigned(&pipe).unwrap_err().code(), "not-a-bundle");
    assert_eq!(
        verify::unsigned(&directory.path().join("missing"))
            .unwrap_err()
            .code(),
        "io"
    );
}
