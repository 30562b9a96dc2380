//! Time and host version, checked against the caller's values.

use std::time::SystemTime;

use toolward_signing::verify::{self, Mode, VerifyOptions};

use crate::support::{Sample, acme, key, now, options};

pub(crate) fn verify(
    sample: &Sample,
    options: &VerifyOptions<'_>,
) -> Result<Vec<String>, &'static str> {
    let archive = sample.sign(&[&key(1)]).archive();
    verify::archive_bytes(&archive, &acme(), options)
        .map(|bundle| bundle.warnings.clone())
        .map_err(|refusal| refusal.code())
}

pub(crate) fn at(now: Option<SystemTime>, mode: Mode) -> VerifyOptions<'static> {
    VerifyOptions {
        now,
        mode,
        ..options()
    }
}

#[test]
fn audit_mode_relaxes_nothing_but_age() {
    let archive = Sample::new().sign(&[&key(9)]).archive();
    let refusal =
        verify::archive_bytes(&archive, &acme(), &at(Some(now()), Mode::Audit)).unwrap_err();
    assert_eq!(refusal.code(), "unknown-publisher");
}

#[test]
fn a_bundle_that_needs_a_newer_host_is_refused() {
    let mut sample = Sample::new();
    sample.min_host = Some("2.5.0".to_owned());
    let with = |version: Option<&str>| VerifyOptions {
        host_version: version.map(|version| version.parse().unwrap()),
        ..options()
    };
    assert_eq!(verify(&sample, &with(Some("2.4.9"))), Err("host-too-old"));
    assert_eq!(
        verify(&sample, &with(Some("2.5.0-rc.1"))),
        Err("host-too-old")
    );
    assert_eq!(verify(&sample, &with(Some("2.5.0"))), Ok(vec![]));
    assert_eq!(verify(&sample, &with(None)), Ok(vec![]));
}

#[test]
fn nobody_has_to_ask_for_the_checks() {
    let mut sample = Sample::new();
    sample.expires = Some("2026-11-01T12:00:01Z".to_owned());
    assert!(VerifyOptions::default().now.is_some());
    assert!(VerifyOptions::default().host_version.is_some());
    assert_eq!(VerifyOptions::default().mode, Mode::Enforce);
}
