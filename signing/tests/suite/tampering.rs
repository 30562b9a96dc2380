//! A bundle with one changed byte is refused, or gives exactly the same bundle.

use std::io::{Seek as _, SeekFrom};

use toolward_signing::archive::to_stored_bytes;
use toolward_signing::verify::{Bundle, Verified};
use toolward_signing::{Refusal, publisher, verify};

use crate::support::{Sample, acme, compress, key, options, same, tar_of};

/// All positions of a short file; evenly spread positions of a long one.
fn positions(length: usize) -> impl Iterator<Item = usize> {
    let step = (length / 400).max(1);
    (0..length).step_by(step).chain(length.checked_sub(1))
}

#[test]
fn every_single_byte_change_of_a_listed_file_or_the_manifest_is_refused() {
    let signed = Sample::new().sign(&[&key(1)]);
    let directory = signed.directory();
    let trust = acme();
    let verify = || verify::open(directory.path(), &trust, &options());
    verify().unwrap();
    for name in [
        "manifest.toml",
        "tools.json",
        "tools/text.stats/TOOL.md",
        "drivers/text-stats/DRIVER.md",
        "drivers/text-stats/driver.wasm",
    ] {
        let path = directory.path().join(name);
        let good = std::fs::read(&path).unwrap();
        for position in positions(good.len()) {
            for flip in [0x01, 0x20, 0x80] {
                let mut bad = good.clone();
                bad[position] ^= flip;
                std::fs::write(&path, &bad).unwrap();
                let refusal = verify().expect_err(name);
                let expected = match name {
                    "manifest.toml" => "manifest-mismatch",
                    _ => "digest-mismatch",
                };
                assert_eq!(refusal.code(), expected, "{name}, byte {position}");
                assert!(refusal.place().unwrap().contains(name));
            }
        }
        for (bad, what) in [
            (&good[..good.len() - 1], "shortened"),
            (&[&good[..], b"\n"].concat(), "lengthened"),
        ] {
            std::fs::write(&path, bad).unwrap();
            assert!(verify().is_err(), "{name} {what}");
        }
        std::fs::write(&path, &good).unwrap();
    }
    verify().unwrap();
}

#[test]
fn every_single_byte_change_inside_the_tar_archive_is_refused_or_only_of_the_envelope() {
    let mut sample = Sample::new();
    sample
        .files
        .get_mut("drivers/text-stats/driver.wasm")
        .unwrap()
        .truncate(700);
    let signed = sample.sign(&[&key(1)]);
    let good = tar_of(&signed.archive());
    let trust = acme();
    let original = verify::archive_bytes(&compress(&good), &trust, &options()).unwrap();
    let envelope = 512..512 + signed.envelope.len();
    for position in 0..good.len() {
        let mut bad = good.clone();
        bad[position] ^= 0x01;
        match verify::archive_bytes(&compress(&bad), &trust, &options()) {
            Err(refusal) => assert!(!refusal.code().is_empty()),
            Ok(bundle) => {
                assert!(
                    envelope.contains(&position),
                    "byte {position} does not matter"
                );
                assert!(same(&bundle, &original), "byte {position}");
            }
        }
    }
}

#[test]
fn every_single_byte_change_of_the_envelope_is_refused_or_verifies_to_the_same_bytes_and_signers() {
    let signed = Sample::new().sign(&[&key(1), &key(2)]);
    let directory = signed.directory();
    let trust = toolward_signing::trust::TrustStore::from_toml(&crate::support::publisher(
        "acme",
        &[key(1).public(), key(2).public()],
        1,
        &["text"],
    ))
    .unwrap();
    let verify = || verify::open(directory.path(), &trust, &options());
    let original = verify().unwrap();
    assert_eq!(original.signers.len(), 2);
    let path = directory.path().join("manifest.dsse.json");
    let (mut accepted, mut refused) = (0, 0);
    for position in 0..signed.envelope.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut bad = signed.envelope.clone();
            bad[position] ^= flip;
            std::fs::write(&path, &bad).unwrap();
            match verify() {
                Ok(bundle) => {
                    assert!(same(&bundle, &original), "byte {position}, flip {flip:#x}");
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    // Both happen: changed hints and white space are accepted, every other change is refused.
    assert!(
        accepted > 0 && refused > accepted,
        "{accepted} and {refused}"
    );
}

#[test]
fn every_single_byte_change_of_the_archives_encoding_is_refused_or_verifies_to_the_same_bytes_and_signers()
 {
    let mut sample = Sample::new();
    sample
        .files
        .get_mut("drivers/text-stats/driver.wasm")
        .unwrap()
        .truncate(3000);
    let good = sample.sign(&[&key(1)]).archive();
    let trust = acme();
    let original = verify::archive_bytes(&good, &trust, &options()).unwrap();
    for position in 0..good.len() {
        for flip in [0x01, 0x10, 0x80] {
            let mut bad = good.clone();
            bad[position] ^= flip;
            if let Ok(bundle) = verify::archive_bytes(&bad, &trust, &options()) {
                assert!(same(&bundle, &original), "byte {position}, flip {flip:#x}");
            }
        }
    }
    for length in 0..good.len() {
        assert!(
            verify::archive_bytes(&good[..length], &trust, &options()).is_err(),
            "cut to {length} bytes"
        );
    }
}

/// The bundle, or the code of the refusal.
fn outcome(result: Result<Verified<Bundle>, Refusal>) -> Result<Verified<Bundle>, &'static str> {
    result.map_err(|refusal| refusal.code())
}

#[test]
fn a_file_that_is_read_as_it_is_verified_comes_to_what_its_content_comes_to_when_compressed() {
    let mut sample = Sample::new();
    // Three blocks of the frame.
    let driver = sample.files.get_mut("drivers/text-stats/driver.wasm");
    driver.unwrap().resize(300_000, 7);
    let trust = acme();
    let bundle = verify::archive_bytes(&sample.sign(&[&key(1)]).archive(), &trust, &options());
    let bundle = bundle.unwrap();
    let good = to_stored_bytes(&bundle.contents().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("object");
    let check = |bytes: &[u8], what: &str| {
        std::fs::write(&path, bytes).unwrap();
        let mut file = std::fs::File::open(&path).unwrap();
        // The archive is read from its start, not from the file's position.
        file.seek(SeekFrom::Start(9)).unwrap();
        let found = outcome(verify::archive_file(&mut file, &trust, &options()));
        let read = outcome(verify::archive_bytes(bytes, &trust, &options()));
        let agree = match (&found, &read) {
            (Ok(one), Ok(other)) => same(one, other),
            (Err(one), Err(other)) => one == other,
            _ => false,
        };
        assert!(agree, "{what}: {found:?}, in memory {read:?}");
        match zstd::decode_all(bytes) {
            // If a decoder finds a tar archive in it, the result depends on that archive.
            Ok(tar) => match (
                &found,
                outcome(verify::archive_bytes(&compress(&tar), &trust, &options())),
            ) {
                (Ok(one), Ok(other)) => assert!(same(one, &other), "{what}"),
                (Err(one), Err(other)) => assert_eq!(*one, other, "{what}"),
                (Err(one), Ok(_)) => assert_eq!(*one, "archive-trailing-data", "{what}"),
                (Ok(_), Err(other)) => panic!("{what}: accepted, and compressed {other}"),
            },
            Err(_) => assert!(found.is_err(), "{what}"),
        }
        found.is_ok()
    };
    assert!(check(&good, "as it is"));
    assert!(check(&compress(&tar_of(&good)), "compressed"));
    let blocks = (0..3).map(|block| 14 + block * (128 * 1024 + 3));
    let headers = (0..14).chain(blocks.flat_map(|start| start..start + 3));
    let ends = positions(good.len()).step_by(10);
    for position in headers.chain(ends) {
        for flip in [0x01, 0x02, 0x08, 0x80] {
            let mut bad = good.clone();
            bad[position] ^= flip;
            check(&bad, &format!("byte {position}, flip {flip:#x}"));
        }
        assert!(!check(&good[..position], &format!("cut to {position}")));
    }
    for rest in [&b"x"[..], &good] {
        assert!(!check(&[&good[..], rest].concat(), "with more behind it"));
    }
    // A zstd decoder skips a skippable frame; here it is refused as data after the frame.
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 7];
    assert!(!check(
        &[&good[..], &skippable].concat(),
        "and a skippable frame"
    ));
}

#[test]
fn every_single_byte_change_of_a_signed_document_is_refused_or_verifies_to_the_same_document() {
    let document = crate::support::document(1, 2, &[1, 2]);
    let good = crate::support::by(document.to_envelope(), &[1, 2]);
    let original = publisher::stored(&good).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for position in 0..good.len() {
        for flip in [0x01, 0x20, 0x80] {
            let mut bad = good.clone();
            bad[position] ^= flip;
            match publisher::stored(&bad) {
                Ok(read) => {
                    assert_eq!(read.document, original.document);
                    assert_eq!(
                        (read.digest, &read.signers),
                        (original.digest, &original.signers)
                    );
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(
        accepted > 0 && refused > accepted,
        "{accepted} and {refused}"
    );
}
