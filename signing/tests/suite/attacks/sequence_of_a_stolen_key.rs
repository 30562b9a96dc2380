//! A thief releases a bundle with the highest possible sequence, so that no genuine release is
//! newer. The publisher recovers with a reset.

use toolward_signing::Digest;
use toolward_signing::manifest::Manifest;
use toolward_signing::publisher::{PublisherDocument, Reset, rotate};
use toolward_signing::sequence::{self, Advance};

use crate::support::{
    Sample, accepted, by, document, options, revoking, sample_digest, store_of, terms,
    verify_signed,
};

const LAST: u64 = i64::MAX as u64;

fn with_reset(mut document: PublisherDocument) -> PublisherDocument {
    document.resets = vec![Reset {
        id: "text.stats".to_owned(),
        sequence: 7,
        digest: sample_digest(),
    }];
    document
}

#[test]
fn no_manifest_has_a_sequence_that_toml_can_not_say() {
    let mut manifest = Sample::new().manifest();
    manifest.sequence = LAST;
    let text = String::from_utf8(manifest.to_bytes().unwrap()).unwrap();
    for sequence in ["18446744073709551615", "9223372036854775808"] {
        let spoiled = text.replace(&LAST.to_string(), sequence);
        let refusal = Manifest::parse(spoiled.as_bytes()).unwrap_err();
        assert_eq!(refusal.code(), "manifest-field");
    }
    manifest.sequence = u64::MAX;
    assert_eq!(manifest.to_bytes().unwrap_err().code(), "manifest-field");
}

#[test]
fn the_document_that_revokes_the_key_names_the_last_genuine_release() {
    let thiefs = (LAST, Digest::of(b"the thief's"));
    let genuine = (7, sample_digest());
    let refusal = sequence::check(Some(thiefs), (8, Digest::of(b"the next"))).unwrap_err();
    assert_eq!(refusal.code(), "rollback");

    let current = accepted(&document(1, 2, &[1, 2, 3]), &[1, 2]);
    let next = with_reset(revoking(document(2, 2, &[1, 2, 3, 4]), &[1]));
    let next = rotate(&current, &by(next.to_envelope(), &[2, 3]), &terms()).unwrap();
    let after = sequence::reset(thiefs, &next.resets[0]);
    assert_eq!(after, genuine);
    assert_eq!(
        sequence::check(Some(after), (8, Digest::of(b"the next"))).unwrap(),
        Advance::Newer
    );
    // Releases before the last genuine one are still refused, and the thief's no longer verifies.
    assert!(sequence::check(Some(after), (6, Digest::of(b"before"))).is_err());
    let refusal = verify_signed(&[1, 2], &store_of(&next), &options()).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
}

#[test]
fn a_host_that_saw_nothing_of_the_thief_stays_where_it_is() {
    let reset = &with_reset(document(1, 1, &[1])).resets[0];
    let lower = (5, Digest::of(b"five"));
    assert_eq!(sequence::reset(lower, reset), lower);
    assert_eq!(
        sequence::reset((7, sample_digest()), reset),
        (7, sample_digest())
    );
    let forged = (7, Digest::of(b"the thief's seventh"));
    assert_eq!(sequence::reset(forged, reset), (7, sample_digest()));
}

#[test]
fn a_document_that_revokes_no_key_lowers_nothing() {
    let current = accepted(&document(1, 1, &[1, 2]), &[1]);
    let next = with_reset(document(2, 1, &[1, 2]));
    let refusal = rotate(&current, &by(next.to_envelope(), &[1]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "reset-without-revocation");

    // A document that only repeats an earlier revocation is refused, too.
    let revoked = revoking(document(2, 1, &[1, 2]), &[1]);
    let second = rotate(&current, &by(revoked.to_envelope(), &[2]), &terms()).unwrap();
    let third = with_reset(revoking(document(3, 1, &[1, 2]), &[1]));
    let refusal = rotate(&second, &by(third.to_envelope(), &[2]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "reset-without-revocation");
}
