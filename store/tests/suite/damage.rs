//! Changed files in the store, and bundles that are no longer trusted.

use std::cell::Cell;
use std::fs::File;
use toolward_bundle::libraries::NoLibraries;

use toolward_signing::revocation::Revocations;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_signing::{ErrorKind, Refusal};

use crate::support::{Place, Release, install, now, trust_for, verifier, verifier_for};

#[test]
fn a_file_changed_after_installation_is_refused_at_load_and_recorded() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let path = place.object(&installed.digest);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes
        .windows(9)
        .position(|part| part == b"release 1")
        .unwrap();
    bytes[at] = b'R';
    std::fs::write(&path, bytes).unwrap();
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "digest-mismatch");
    let newest = &store.decisions(&Default::default()).unwrap()[0].decision;
    assert_eq!(newest.action, "load");
    assert_eq!(newest.code.as_deref(), Some("digest-mismatch"));
}

#[test]
fn every_flipped_byte_of_a_file_is_refused_or_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let path = place.object(&installed.digest);
    let good = std::fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(37) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        std::fs::write(&path, bytes).unwrap();
        // A change in the envelope's white space is harmless: the bundle is still the signed one.
        if let Ok((_, bundle)) = store.load("demo.greet", &verifier(), now()) {
            assert_eq!(bundle.manifest_digest, installed.digest);
            assert_eq!(&**bundle.file("icons/payload.bin").unwrap(), b"release 1\n");
        }
    }
}

#[test]
fn an_older_release_in_the_files_place_is_refused_though_it_is_signed() {
    let place = Place::new();
    let store = place.open();
    let old = install(&store, &Release::new(1));
    let new = install(&store, &Release::new(2));
    std::fs::copy(place.object(&old.digest), place.object(&new.digest)).unwrap();
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "object-changed");
}

#[test]
fn a_link_or_pipe_in_the_files_place_is_not_followed_or_waited_for() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let path = place.object(&installed.digest);
    let elsewhere = place.directory.path().join("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "store-io");
    std::fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "store-io");
}

#[test]
fn a_file_replaced_between_hashing_and_use_is_not_what_is_used() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let verify = |file: &mut File| {
        let bundle = verifier()(file)?;
        // The file is hashed; now another file replaces it.
        std::fs::write(place.object(&installed.digest), b"other").unwrap();
        Ok(bundle)
    };
    let (_, bundle) = store.load("demo.greet", &verify, now()).unwrap();
    assert_eq!(&**bundle.file("icons/payload.bin").unwrap(), b"release 1\n");
    let error = store.load("demo.greet", &verifier(), now()).unwrap_err();
    assert_eq!(error.code(), "archive-format");
}

#[test]
fn a_revoked_digest_is_refused_at_load_though_it_is_installed() {
    let place = Place::new();
    let store = place.open();
    let installed = install(&store, &Release::new(1));
    let mut revocations = Revocations::none();
    revocations.deny_bundle(installed.digest);
    let trust = trust_for("acme");
    let verify = |file: &mut File| {
        let options = VerifyOptions {
            now: Some(now()),
            revocations: Some(&revocations),
            ..VerifyOptions::default()
        };
        verify::archive_file(file, &trust, &options)
    };
    let error = store.load("demo.greet", &verify, now()).unwrap_err();
    assert!(
        error.code().contains("revoked") || error.code().contains("denied"),
        "{error}"
    );
    let loaded = store
        .load_all_as(&|file, _| verify(file), &|bundle| bundle, now())
        .unwrap();
    assert!(loaded[0].bundle.is_err());
}

#[test]
fn a_bundle_whose_publisher_is_no_longer_trusted_is_refused_at_load() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let nobody = |file: &mut File| {
        verify::archive_file(file, &TrustStore::empty(), &VerifyOptions::default())
    };
    let error = store.load("demo.greet", &nobody, now()).unwrap_err();
    assert_eq!(error.code(), "unknown-publisher");
    let error = store
        .load("demo.greet", &verifier_for("zenith"), now())
        .unwrap_err();
    assert_eq!(error.code(), "wrong-publisher");
}

#[test]
fn verifying_all_tells_each_result_and_counts_the_refusals() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::named("demo.one", 1));
    let two = install(&store, &Release::named("demo.two", 1));
    std::fs::write(place.object(&two.digest), b"damaged").unwrap();
    let told = Cell::new(0);
    let refusals = store
        .verify_all(&verifier(), &NoLibraries, now(), &mut |checked| {
            told.set(told.get() + 1);
            assert_eq!(checked.result.is_err(), checked.id == "demo.two");
        })
        .unwrap();
    assert_eq!((refusals, told.get()), (1, 2));
}

#[test]
fn a_file_that_can_not_be_read_is_a_fault_of_the_machine_and_no_refused_bundle() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let failing = |_: &mut File| Err(Refusal::new(ErrorKind::Io));
    let error = store.load("demo.greet", &failing, now()).unwrap_err();
    assert_eq!(error.code(), "store-io");
    assert!(error.to_string().contains("a file of the store"), "{error}");
}
