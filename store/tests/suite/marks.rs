//! Sequences of releases and versions of documents, which may not fall.

use toolward_bundle::libraries::NoLibraries;
use toolward_signing::Digest;
use toolward_signing::publisher::Reset;
use toolward_store::rollback::{NextDocument, VersionedDocument};
use toolward_store::{InstallOptions, InstallOutcome};

use crate::support::{Place, Release, install, now, options, refused};

#[test]
fn a_lower_sequence_is_refused_even_after_removal() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(5));
    let files = place.files();
    assert_eq!(refused(&store, &Release::new(4)), "rollback");
    assert_eq!(place.files(), files);
    store.remove("demo.greet", now()).unwrap();
    assert_eq!(refused(&store, &Release::new(4)), "rollback");
    install(&store, &Release::new(5));
}

#[test]
fn two_bundles_with_one_sequence_are_an_equivocation_whatever_is_allowed() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(5));
    let other = Release {
        payload: b"another".to_vec(),
        ..Release::new(5)
    };
    assert_eq!(refused(&store, &other), "equivocation");
    let allowed = InstallOptions {
        allow_rollback: Some("a test".to_owned()),
        ..options()
    };
    install(&store, &Release::new(6));
    let error = store
        .install(&other.bundle(), &allowed, &NoLibraries)
        .unwrap_err();
    assert_eq!(error.code(), "equivocation");
}

#[test]
fn going_back_takes_a_reason_and_the_mark_stays() {
    let place = Place::new();
    let store = place.open();
    install(&store, &Release::new(5));
    let allowed = InstallOptions {
        allow_rollback: Some("5 breaks".to_owned()),
        ..options()
    };
    let outcome = store
        .install(&Release::new(4).bundle(), &allowed, &NoLibraries)
        .unwrap();
    assert!(matches!(outcome, InstallOutcome::Installed { .. }));
    assert_eq!(store.highest_sequence("acme", "demo.greet").unwrap(), 5);
    let newest = &store.decisions(&Default::default()).unwrap()[0];
    assert!(newest.decision.reason.contains("5 breaks"), "{newest:?}");
    assert_eq!(refused(&store, &Release::new(3)), "rollback");
    install(&store, &Release::new(5));
}

#[test]
fn a_stolen_keys_highest_sequence_is_taken_back_by_the_publishers_document() {
    let place = Place::new();
    let store = place.open();
    let genuine = install(&store, &Release::new(1));
    let stolen = install(&store, &Release::new(i64::MAX as u64));
    assert_eq!(refused(&store, &Release::new(2)), "rollback");
    let reset = Reset {
        id: "demo.greet".to_owned(),
        sequence: 1,
        digest: genuine.digest,
    };
    let resets = std::slice::from_ref(&reset);
    let document = |publisher| store.follow(publisher, &[following(2, resets)], now());
    assert!(document("zenith").unwrap().is_empty());
    assert_eq!(refused(&store, &Release::new(2)), "rollback");
    let changed = document("acme").unwrap();
    assert_eq!(
        changed,
        [("demo.greet".to_owned(), stolen.sequence, stolen.digest)]
    );
    let other = Release {
        payload: b"another".to_vec(),
        ..Release::new(1)
    };
    assert_eq!(refused(&store, &other), "equivocation");
    install(&store, &Release::new(2));
    assert_eq!(store.highest_sequence("acme", "demo.greet").unwrap(), 2);
}

/// A document with this version and these resets.
fn following(version: u64, resets: &[Reset]) -> NextDocument<'_> {
    NextDocument {
        version,
        digest: Digest::of(&version.to_be_bytes()),
        resets,
    }
}

#[test]
fn the_resets_of_a_document_are_applied_once_and_with_its_version_or_not_at_all() {
    let place = Place::new();
    let store = place.open();
    let genuine = install(&store, &Release::new(1));
    install(&store, &Release::new(9));
    let reset = Reset {
        id: "demo.greet".to_owned(),
        sequence: 1,
        digest: genuine.digest,
    };
    let resets = std::slice::from_ref(&reset);
    let highest = || store.highest_sequence("acme", "demo.greet").unwrap();
    // A chain is refused as a whole if its last document is older than the recorded one.
    store.follow("acme", &[following(4, &[])], now()).unwrap();
    let chain = [following(5, resets), following(3, &[])];
    let error = store.follow("acme", &chain, now()).unwrap_err();
    assert_eq!(error.code(), "rollback");
    assert_eq!(highest(), 9);

    let chain = [following(5, resets), following(6, &[])];
    assert_eq!(store.follow("acme", &chain, now()).unwrap().len(), 1);
    assert_eq!(highest(), 1);
    // The call is repeated, as after a crash before the newest document was stored.
    install(&store, &Release::new(7));
    assert!(store.follow("acme", &chain, now()).unwrap().is_empty());
    assert_eq!(highest(), 7);
}

#[test]
fn a_document_goes_neither_back_nor_two_ways() {
    let place = Place::new();
    let store = place.open();
    let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
    let see = |version, digest| {
        store.see_document(VersionedDocument::Channel, "stable", version, digest, now())
    };
    see(3, one).unwrap();
    see(3, one).unwrap();
    assert_eq!(see(3, two).unwrap_err().code(), "equivocation");
    assert_eq!(see(2, two).unwrap_err().code(), "rollback");
    assert_eq!(
        store
            .document(VersionedDocument::Channel, "stable")
            .unwrap(),
        Some((3, one))
    );
    assert_eq!(
        store
            .document(VersionedDocument::Publisher, "stable")
            .unwrap(),
        None
    );
    see(4, two).unwrap();
}
