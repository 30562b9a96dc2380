//! An attacker writes the next publisher document with the attacker's keys, and signs it with them.

use toolward_signing::publisher::rotate;

use crate::support::{accepted, by, document, terms};

#[test]
fn the_next_document_needs_the_thresholds_of_both() {
    let current = accepted(&document(1, 2, &[1, 2, 3]), &[1, 2]);
    let next = document(2, 2, &[4, 5]);
    for signers in [
        &[4, 5][..],   // the new keys only
        &[1, 2],       // the old keys only
        &[1, 4, 5],    // one of the old keys
        &[1, 2, 4],    // one of the new keys
        &[7, 8, 4, 5], // unknown keys
    ] {
        let refusal = rotate(&current, &by(next.to_envelope(), signers), &terms()).unwrap_err();
        assert_eq!(refusal.code(), "threshold-not-met", "{signers:?}");
    }
    let rotated = rotate(&current, &by(next.to_envelope(), &[2, 3, 4, 5]), &terms()).unwrap();
    assert_eq!(rotated.document, next);
}

#[test]
fn a_key_in_both_documents_counts_for_both() {
    let current = accepted(&document(1, 2, &[1, 2]), &[1, 2]);
    let next = document(2, 2, &[1, 2, 3]);
    rotate(&current, &by(next.to_envelope(), &[1, 2]), &terms()).unwrap();
}

#[test]
fn a_lower_threshold_does_not_help_the_document_that_brings_it() {
    let current = accepted(&document(1, 2, &[1, 2]), &[1, 2]);
    let next = document(2, 1, &[1, 2]);
    let refusal = rotate(&current, &by(next.to_envelope(), &[1]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
}

#[test]
fn another_publishers_document_is_no_next_one() {
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let mut next = document(2, 1, &[1]);
    next.name = "acme-two".to_owned();
    let refusal = rotate(&current, &by(next.to_envelope(), &[1]), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "wrong-publisher");
}
