//! An older release, or an older document, is shown as the current one.

use toolward_signing::Digest;
use toolward_signing::publisher::{rotate, rotate_through};
use toolward_signing::sequence::{Advance, check, check_allowing_rollback};

use crate::support::{accepted, by, document, terms};

#[test]
fn a_lower_sequence_is_refused_and_a_higher_one_goes_on() {
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    let refusal = check(Some((7, new)), (6, old)).unwrap_err();
    assert_eq!(refusal.code(), "rollback");
    assert!(refusal.hint().unwrap().contains("--allow-rollback"));
    assert_eq!(check(Some((6, old)), (7, new)).unwrap(), Advance::Newer);
    assert_eq!(check(Some((7, new)), (7, new)).unwrap(), Advance::Same);
    assert_eq!(check(None, (0, old)).unwrap(), Advance::First);
}

#[test]
fn going_back_takes_the_operators_word_and_says_so() {
    let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
    assert_eq!(
        check_allowing_rollback(Some((7, new)), (6, old)).unwrap(),
        Advance::Back
    );
    assert_eq!(
        check_allowing_rollback(Some((7, new)), (8, old)).unwrap(),
        Advance::Newer
    );
    let refusal = check_allowing_rollback(Some((7, new)), (7, old)).unwrap_err();
    assert_eq!(refusal.code(), "equivocation");
}

#[test]
fn an_earlier_publisher_document_is_refused_though_its_keys_are_still_in_use() {
    let first = by(document(1, 1, &[1]).to_envelope(), &[1]);
    let current = accepted(&document(2, 1, &[1]), &[1]);
    let refusal = rotate(&current, &first, &terms()).unwrap_err();
    assert_eq!(refusal.code(), "rollback");
    let refusal = rotate_through(&current, &[&first], &terms()).unwrap_err();
    assert_eq!(refusal.code(), "rollback");
}
