//! A release continues to run after it was revoked.

use toolward_signing::Digest;
use toolward_signing::revocation::{RevocationList, Revocations, RevokedBundle, accept, stored};
use toolward_signing::verify::VerifyOptions;

use crate::support::{
    CREATED, accepted, acme, by, document, options, sample_digest, store_of, terms, verify_signed,
};

fn list(version: u64, digests: &[Digest]) -> RevocationList {
    RevocationList {
        publisher: "acme".to_owned(),
        version,
        created: CREATED.parse().unwrap(),
        expires: None,
        keys: Vec::new(),
        bundles: digests
            .iter()
            .map(|digest| RevokedBundle {
                digest: *digest,
                id: None,
                reason: "it loses data".to_owned(),
            })
            .collect(),
    }
}

#[test]
fn a_bundle_that_the_operator_denies_is_refused_before_and_while_it_is_in_use() {
    let bundle = verify_signed(&[1], &acme(), &options()).unwrap();
    let mut denied = Revocations::none();
    denied.deny_bundle(Digest::of(b"another"));
    denied.check(&bundle).unwrap();
    denied.deny_bundle(sample_digest());
    assert_eq!(denied.check(&bundle).unwrap_err().code(), "bundle-revoked");
    let options = VerifyOptions {
        revocations: Some(&denied),
        ..options()
    };
    let refusal = verify_signed(&[1], &acme(), &options).unwrap_err();
    assert_eq!(refusal.code(), "bundle-revoked");
}

#[test]
fn a_bundle_that_its_publisher_revoked_is_refused_with_the_publishers_reason() {
    let trust = acme();
    let publisher = trust.publisher("acme").unwrap();
    let bytes = by(list(1, &[sample_digest()]).to_envelope(), &[1]);
    let mut revocations = Revocations::none();
    revocations.add_list(&accept(&bytes, publisher, &trust, None, &terms()).unwrap());
    let options = VerifyOptions {
        revocations: Some(&revocations),
        ..options()
    };
    let refusal = verify_signed(&[1], &trust, &options).unwrap_err();
    assert_eq!(refusal.code(), "bundle-revoked");
    assert!(refusal.found_text().unwrap().contains("it loses data"));
}

#[test]
fn a_later_list_keeps_what_an_earlier_one_revoked() {
    let trust = acme();
    let publisher = trust.publisher("acme").unwrap();
    let other = Digest::of(b"other");
    let first = by(list(5, &[sample_digest()]).to_envelope(), &[1]);
    let first = accept(&first, publisher, &trust, None, &terms()).unwrap();
    let follow = |next: &RevocationList| {
        accept(
            &by(next.to_envelope(), &[1]),
            publisher,
            &trust,
            Some(&first),
            &terms(),
        )
    };
    let code = |next: &RevocationList| follow(next).unwrap_err().code();
    assert_eq!(code(&list(6, &[other])), "revocation-dropped");
    assert_eq!(code(&list(6, &[])), "revocation-dropped");
    assert_eq!(code(&list(4, &[sample_digest()])), "rollback");
    assert_eq!(code(&list(5, &[sample_digest(), other])), "equivocation");
    follow(&list(5, &[sample_digest()])).unwrap();
    follow(&list(6, &[other, sample_digest()])).unwrap();
}

#[test]
fn a_list_that_was_accepted_counts_on_after_its_time_and_after_the_keys_have_changed() {
    let mut list = list(1, &[sample_digest()]);
    list.expires = Some("2026-11-03T00:00:00Z".parse().unwrap());
    let bytes = by(list.to_envelope(), &[1]);
    let before = accepted(&document(1, 1, &[1]), &[1]);
    let trust = store_of(&before);
    let publisher = trust.publisher("acme").unwrap();
    let kept = accept(&bytes, publisher, &trust, None, &terms()).unwrap();
    let again = stored(&bytes, kept.signers.clone()).unwrap();
    assert_eq!((again.version, again.digest), (1, kept.digest));

    // An earlier list still binds after a change of keys, since the old key was not revoked.
    let after = store_of(&accepted(&document(2, 1, &[2]), &[2]));
    let publisher = after.publisher("acme").unwrap();
    let mut next = self::list(2, &[]);
    let follow = |next: &RevocationList| {
        let bytes = by(next.to_envelope(), &[2]);
        accept(&bytes, publisher, &after, Some(&again), &terms()).map(|list| list.version)
    };
    assert_eq!(follow(&next).unwrap_err().code(), "revocation-dropped");
    next.bundles = list.bundles.clone();
    assert_eq!(follow(&next).unwrap(), 2);
}
