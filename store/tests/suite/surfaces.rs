//! Updates that change a bundle's surface wait for a person.

use std::fs::File;
use toolward_bundle::libraries::NoLibraries;
use toolward_signing::Digest;
use toolward_signing::revocation::Revocations;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_store::{Acceptance, InstallOptions, InstallOutcome};

use crate::support::{Place, Release, install, now, options, refused, trust_for, verifier};

#[test]
fn an_update_that_changes_a_description_only_is_held_until_it_is_accepted() {
    let place = Place::new();
    let store = place.open();
    let old = install(&store, &Release::new(1));
    let new = Release::described(2, "Reads your mail.");
    let InstallOutcome::Held {
        held,
        current,
        difference,
    } = store
        .install(&new.bundle(), &options(), &NoLibraries)
        .unwrap()
    else {
        panic!("expected it to be held");
    };
    assert_eq!(current, Some(old.clone()));
    assert_eq!(store.list().unwrap(), std::slice::from_ref(&old));
    assert_eq!(
        difference.to_string(),
        "tool demo.greet@1: description: \"Greets.\" → \"Reads your mail.\"\n"
    );
    assert_eq!(store.pending().unwrap(), [(held.clone(), difference)]);
    store.gc().unwrap();
    let (_, bundle) = store.load("demo.greet", &verifier(), now()).unwrap();
    assert_eq!(bundle.manifest_digest, old.digest);

    let error = store
        .accept("demo.greet", &Digest::of(b"other"), &verifier(), now())
        .unwrap_err();
    assert_eq!(error.code(), "surface-mismatch");
    assert_eq!(store.list().unwrap(), [old]);
    let installed = store
        .accept("demo.greet", &held.surface, &verifier(), now())
        .unwrap();
    assert_eq!(installed.acceptance, Acceptance::Accepted);
    assert!(store.pending().unwrap().is_empty());
    let (_, bundle) = store.load("demo.greet", &verifier(), now()).unwrap();
    assert_eq!(bundle.manifest.sequence, 2);
    assert_eq!(
        store
            .accept("demo.greet", &held.surface, &verifier(), now())
            .unwrap_err()
            .code(),
        "not-held"
    );
}

#[test]
fn a_surface_accepted_beforehand_is_installed_and_any_other_is_held() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let new = Release::described(2, "Greets politely.");
    let wrong = InstallOptions {
        accept: Some(Digest::of(b"other")),
        ..options()
    };
    let InstallOutcome::Held { held, .. } =
        store.install(&new.bundle(), &wrong, &NoLibraries).unwrap()
    else {
        panic!("expected it to be held");
    };
    let right = InstallOptions {
        accept: Some(held.surface),
        ..options()
    };
    let outcome = store.install(&new.bundle(), &right, &NoLibraries).unwrap();
    assert!(matches!(outcome, InstallOutcome::Installed { .. }));
    assert!(store.pending().unwrap().is_empty());
}

#[test]
fn a_first_installation_with_another_surface_than_accepted_is_held() {
    let place = Place::new();
    let store = place.open();
    let wrong = InstallOptions {
        accept: Some(Digest::of(b"other")),
        ..options()
    };
    let outcome = store
        .install(&Release::new(1).bundle(), &wrong, &NoLibraries)
        .unwrap();
    let InstallOutcome::Held {
        held,
        current: None,
        difference,
    } = outcome
    else {
        panic!("expected it to be held");
    };
    assert!(!difference.is_empty());
    assert!(store.list().unwrap().is_empty());
    store
        .accept("demo.greet", &held.surface, &verifier(), now())
        .unwrap();
}

#[test]
fn another_bundle_with_the_sequence_of_a_held_one_is_an_equivocation() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    store
        .install(
            &Release::described(2, "One.").bundle(),
            &options(),
            &NoLibraries,
        )
        .unwrap();
    assert_eq!(
        refused(&store, &Release::described(2, "Two.")),
        "equivocation"
    );
}

#[test]
fn the_same_id_from_another_publisher_is_held() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(1));
    let other = Release {
        publisher: "zenith".to_owned(),
        ..Release::new(2)
    };
    let InstallOutcome::Held { difference, .. } = store
        .install(&other.bundle(), &options(), &NoLibraries)
        .unwrap()
    else {
        panic!("expected it to be held");
    };
    assert!(
        difference
            .to_string()
            .contains("bundle: publisher: \"acme\" → \"zenith\"")
    );
}

#[test]
fn an_update_that_was_revoked_while_it_waited_does_not_replace_what_works() {
    let place = Place::new();
    let store = place.open();
    let old = install(&store, &Release::new(1));
    let new = Release::described(2, "Other.");
    let InstallOutcome::Held { held, .. } = store
        .install(&new.bundle(), &options(), &NoLibraries)
        .unwrap()
    else {
        panic!("expected it to be held");
    };
    let mut revocations = Revocations::none();
    revocations.deny_bundle(held.digest);
    let trust = trust_for("acme");
    let verify = |file: &mut File| {
        let options = VerifyOptions {
            now: Some(now()),
            revocations: Some(&revocations),
            ..VerifyOptions::default()
        };
        verify::archive_file(file, &trust, &options)
    };
    let error = store
        .accept("demo.greet", &held.surface, &verify, now())
        .unwrap_err();
    assert_eq!(error.code(), "bundle-revoked");
    assert_eq!(store.list().unwrap(), [old]);
}
