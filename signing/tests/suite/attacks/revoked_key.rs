//! A stolen key signs after it was revoked.

use toolward_signing::key::PublicKey;
use toolward_signing::publisher::{first_use, rotate};
use toolward_signing::revocation::{RevocationList, Revocations, accept};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::VerifyOptions;

use crate::support::{
    CREATED, accepted, by, document, key, options, publisher, revoked_key, revoking, store_of,
    terms, verify_signed,
};

fn denying(number: u8) -> Revocations {
    let mut revocations = Revocations::none();
    revocations.deny_key(key(number).public().key_id());
    revocations
}

fn with(revocations: &Revocations) -> VerifyOptions<'_> {
    VerifyOptions {
        revocations: Some(revocations),
        ..options()
    }
}

fn two_keys(threshold: usize) -> TrustStore {
    let keys: Vec<PublicKey> = [1, 2].map(|number| key(number).public()).into();
    TrustStore::from_toml(&publisher("acme", &keys, threshold, &["text"])).unwrap()
}

#[test]
fn a_signature_by_a_denied_key_does_not_count() {
    let denied = denying(1);
    let refusal = verify_signed(&[1], &two_keys(1), &with(&denied)).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    let refusal = verify_signed(&[1, 2], &two_keys(2), &with(&denied)).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    let bundle = verify_signed(&[1, 2], &two_keys(1), &with(&denied)).unwrap();
    assert_eq!(bundle.signers, [key(2).public().key_id()]);
    let ad_hoc = TrustStore::for_key(key(1).public());
    assert!(verify_signed(&[1], &ad_hoc, &with(&denied)).is_err());
}

#[test]
fn a_bundle_in_use_is_refused_once_its_key_is_revoked() {
    let bundle = verify_signed(&[1], &two_keys(1), &options()).unwrap();
    Revocations::none().check(&bundle).unwrap();
    assert_eq!(denying(1).check(&bundle).unwrap_err().code(), "key-revoked");
    denying(2).check(&bundle).unwrap();
}

#[test]
fn a_list_of_the_publisher_revokes_its_own_key() {
    let trust = two_keys(1);
    let acme = trust.publisher("acme").unwrap();
    let list = RevocationList {
        publisher: "acme".to_owned(),
        version: 1,
        created: CREATED.parse().unwrap(),
        expires: None,
        keys: vec![revoked_key(1)],
        bundles: Vec::new(),
    };
    // A stolen key counts for a list that revokes it, since a list only removes permissions.
    for signer in [1, 2] {
        let bytes = by(list.to_envelope(), &[signer]);
        let list = accept(&bytes, acme, &trust, None, &terms()).unwrap();
        let mut revocations = Revocations::none();
        revocations.add_list(&list);
        let refusal = verify_signed(&[1], &trust, &with(&revocations)).unwrap_err();
        assert_eq!(refusal.code(), "key-revoked");
        verify_signed(&[2], &trust, &with(&revocations)).unwrap();
    }
}

#[test]
fn a_document_that_revokes_a_key_does_not_rest_on_it() {
    let current = accepted(&document(1, 2, &[1, 2, 3]), &[1, 2]);
    let next = revoking(document(2, 2, &[1, 2, 3, 4]), &[1]);
    let refusal = rotate(&current, &by(next.to_envelope(), &[1, 2, 4]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    let rotated = rotate(&current, &by(next.to_envelope(), &[2, 3]), &terms()).unwrap();
    let trust = store_of(&rotated);
    let refusal = verify_signed(&[1], &trust, &options()).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    let refusal = verify_signed(&[1, 2], &trust, &options()).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
    verify_signed(&[2, 3], &trust, &options()).unwrap();
}

#[test]
fn a_denied_key_does_not_write_the_next_document() {
    let current = accepted(&document(1, 1, &[1, 2]), &[1]);
    let denied = denying(1);
    let mut terms = terms();
    terms.revocations = &denied;
    let next = document(2, 1, &[9]);
    let refusal = rotate(&current, &by(next.to_envelope(), &[1, 9]), &terms).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    rotate(&current, &by(next.to_envelope(), &[2, 9]), &terms).unwrap();
    let first = by(document(1, 1, &[1]).to_envelope(), &[1]);
    assert_eq!(first_use(&first, &terms).unwrap_err().code(), "key-revoked");
}

#[test]
fn whoever_has_one_key_only_leaves_it_out_first_and_revokes_it_then() {
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let at_once = revoking(document(2, 1, &[1, 2]), &[1]);
    let refusal = rotate(&current, &by(at_once.to_envelope(), &[1, 2]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
    let left_out = by(document(2, 1, &[2]).to_envelope(), &[1, 2]);
    let second = rotate(&current, &left_out, &terms()).unwrap();
    let mut third = document(3, 1, &[2]);
    third.revoked_keys = vec![revoked_key(1)];
    let third = rotate(&second, &by(third.to_envelope(), &[2]), &terms()).unwrap();
    assert!(third.revokes(&key(1).public().key_id()));
}

#[test]
fn a_revoked_key_does_not_come_back() {
    let revoked = revoking(document(2, 1, &[1, 2]), &[1]);
    let current = accepted(&revoked, &[2]);
    let next = document(3, 1, &[1, 2]);
    let refusal = rotate(&current, &by(next.to_envelope(), &[1, 2]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "revocation-dropped");
}
