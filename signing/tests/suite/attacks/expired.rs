//! An expired bundle is offered.

use std::time::Duration;

use toolward_signing::verify::Mode;

use crate::ages::{at, verify};
use crate::support::{Sample, now};

#[test]
fn an_expired_bundle_is_refused_and_in_audit_mode_warned_of() {
    let mut sample = Sample::new();
    sample.expires = Some("2026-11-02T12:00:00Z".to_owned());
    let just_before = now() - Duration::from_secs(1);
    assert_eq!(
        verify(&sample, &at(Some(just_before), Mode::Enforce)),
        Ok(vec![])
    );
    assert_eq!(
        verify(&sample, &at(Some(now()), Mode::Enforce)),
        Err("expired")
    );
    assert_eq!(verify(&sample, &at(None, Mode::Enforce)), Ok(vec![]));
    let warnings = verify(&sample, &at(Some(now()), Mode::Audit)).unwrap();
    assert!(warnings[0].contains("expired"), "{warnings:?}");
}
