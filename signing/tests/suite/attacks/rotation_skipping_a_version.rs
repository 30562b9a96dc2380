//! A publisher document skips a version, so that the skipped one is never seen.

use toolward_signing::publisher::{rotate, rotate_through};

use crate::support::{accepted, by, document, revoking, terms};

#[test]
fn a_document_after_the_next_is_refused_though_both_thresholds_signed_it() {
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let third = by(document(3, 1, &[1]).to_envelope(), &[1]);
    assert_eq!(
        rotate(&current, &third, &terms()).unwrap_err().code(),
        "version-skipped"
    );
    let last = by(document(i64::MAX as u64, 1, &[1]).to_envelope(), &[1]);
    assert_eq!(
        rotate(&current, &last, &terms()).unwrap_err().code(),
        "version-skipped"
    );
}

#[test]
fn a_chain_of_all_documents_leads_there_and_one_with_a_gap_nowhere() {
    let first = by(document(1, 1, &[1]).to_envelope(), &[1]);
    let second = by(document(2, 1, &[2]).to_envelope(), &[1, 2]);
    let third = by(document(3, 1, &[3]).to_envelope(), &[2, 3]);
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let steps = rotate_through(&current, &[&first, &second, &third], &terms()).unwrap();
    let versions: Vec<_> = steps.iter().map(|step| step.version).collect();
    assert_eq!(versions, [2, 3]);
    for chain in [&[&first[..], &third][..], &[&third], &[&third, &second]] {
        let refusal = rotate_through(&current, chain, &terms()).unwrap_err();
        assert_eq!(refusal.code(), "version-skipped");
    }
}

#[test]
fn a_document_in_between_may_have_expired_and_the_last_may_not() {
    let mut second = document(2, 1, &[1]);
    second.expires = Some("2026-11-02T00:00:00Z".parse().unwrap());
    let second = by(second.to_envelope(), &[1]);
    let third = by(document(3, 1, &[1]).to_envelope(), &[1]);
    let current = accepted(&document(1, 1, &[1]), &[1]);
    let steps = rotate_through(&current, &[&second, &third], &terms()).unwrap();
    assert_eq!(steps.len(), 2);
    let refusal = rotate_through(&current, &[&second], &terms()).unwrap_err();
    assert_eq!(refusal.code(), "document-expired");
}

#[test]
fn a_revocation_in_between_can_not_be_stepped_over() {
    let current = accepted(&document(1, 1, &[1, 2]), &[1]);
    let second = by(revoking(document(2, 1, &[1, 2]), &[1]).to_envelope(), &[2]);
    let third = by(document(3, 1, &[1, 2]).to_envelope(), &[1, 2]);
    let refusal = rotate_through(&current, &[&second, &third], &terms()).unwrap_err();
    assert_eq!(refusal.code(), "revocation-dropped");
}
