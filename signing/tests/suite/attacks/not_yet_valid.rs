//! A bundle states a creation time in the future, to stay valid for longer.

use std::time::Duration;

use toolward_signing::verify::Mode;

use crate::ages::{at, verify};
use crate::support::{Sample, now};

#[test]
fn a_bundle_from_the_future_is_refused_and_a_little_skew_is_not() {
    let sample = Sample::new();
    let created = now() - Duration::from_secs(86_400);
    let skewed = created - Duration::from_secs(500);
    assert_eq!(
        verify(&sample, &at(Some(skewed), Mode::Enforce)),
        Ok(vec![])
    );
    let early = created - Duration::from_secs(700);
    assert_eq!(
        verify(&sample, &at(Some(early), Mode::Enforce)),
        Err("not-yet-valid")
    );
    assert_eq!(
        verify(&sample, &at(Some(early), Mode::Audit))
            .unwrap()
            .len(),
        1
    );
}
