//! Two clients get different documents under the same number.

use toolward_signing::Digest;
use toolward_signing::publisher::rotate;
use toolward_signing::sequence::check;

use crate::support::{accepted, by, document, terms};

#[test]
fn another_release_of_the_same_sequence_is_refused() {
    let refusal = check(Some((7, Digest::of(b"a"))), (7, Digest::of(b"b"))).unwrap_err();
    assert_eq!(refusal.code(), "equivocation");
}

#[test]
fn another_document_of_the_same_version_is_refused() {
    let current = accepted(&document(2, 1, &[1]), &[1]);
    let other = document(2, 1, &[1, 2]);
    let refusal = rotate(&current, &by(other.to_envelope(), &[1, 2]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "equivocation");
}

#[test]
fn what_the_publisher_did_not_sign_is_not_held_against_it() {
    let current = accepted(&document(2, 1, &[1]), &[1]);
    let forged = document(2, 1, &[9]);
    let refusal = rotate(&current, &by(forged.to_envelope(), &[9]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
}

#[test]
fn the_same_document_with_another_signature_is_none() {
    let document = document(2, 1, &[1, 2]);
    let current = accepted(&document, &[1]);
    let again = rotate(&current, &by(document.to_envelope(), &[1, 2]), &terms()).unwrap();
    assert_eq!((again.version, again.digest), (2, current.digest));
}
