//! Verifying a bundle again later, against the current state.

use std::time::{Duration, SystemTime};

use toolward_signing::revocation::Revocations;
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};

use crate::support::{
    Sample, accepted, acme, assert_same, document, key, now, options, publisher, store_of,
};

fn bundle(change: impl FnOnce(&mut Sample)) -> Verified<Bundle> {
    let mut sample = Sample::new();
    change(&mut sample);
    sample.sign(&[&key(1)]).verify(&acme()).unwrap()
}

#[track_caller]
fn refused(bundle: &Verified<Bundle>, trust: &TrustStore, options: &VerifyOptions<'_>, code: &str) {
    let refusal = verify::again(bundle, trust, options).unwrap_err();
    assert_eq!(refusal.code(), code, "{refusal}");
}

fn later() -> SystemTime {
    now() + Duration::from_secs(30 * 86_400)
}

fn at_a_later_time() -> VerifyOptions<'static> {
    VerifyOptions {
        now: Some(later()),
        ..options()
    }
}

fn trusting(keys: &[u8], threshold: usize, prefix: &str) -> TrustStore {
    let keys: Vec<_> = keys.iter().map(|number| key(*number).public()).collect();
    TrustStore::from_toml(&publisher("acme", &keys, threshold, &[prefix])).unwrap()
}

#[test]
fn what_still_holds_gives_the_same_bundle() {
    let bundle = bundle(|_| {});
    let again = verify::again(&bundle, &acme(), &at_a_later_time()).unwrap();
    assert_same(&bundle, &again);
}

#[test]
fn what_ends_with_time_is_refused_then() {
    let expiring = bundle(|sample| sample.expires = Some("2026-11-10T00:00:00Z".to_owned()));
    refused(&expiring, &acme(), &at_a_later_time(), "expired");
    verify::again(&expiring, &acme(), &options()).unwrap();

    let young = VerifyOptions {
        max_age: Some(Duration::from_secs(7 * 86_400)),
        ..at_a_later_time()
    };
    refused(&bundle(|_| {}), &acme(), &young, "too-old");

    let mut ending = document(1, 1, &[1]);
    ending.expires = Some(Timestamp::parse("2026-11-10T00:00:00Z").unwrap());
    let trust = store_of(&accepted(&ending, &[1]));
    verify::again(&bundle(|_| {}), &trust, &options()).unwrap();
    refused(
        &bundle(|_| {}),
        &trust,
        &at_a_later_time(),
        "document-expired",
    );
}

#[test]
fn whoever_is_trusted_less_is_refused() {
    let bundle = bundle(|_| {});
    let nobody = TrustStore::empty();
    refused(&bundle, &nobody, &options(), "unknown-publisher");
    let narrower = trusting(&[1], 1, "text.other");
    refused(&bundle, &narrower, &options(), "prefix-not-granted");
    let stricter = trusting(&[1, 2], 2, "text");
    refused(&bundle, &stricter, &options(), "threshold-not-met");
}

#[test]
fn what_is_revoked_or_asked_for_later_is_refused() {
    let bundle = bundle(|_| {});
    let mut revocations = Revocations::none();
    revocations.deny_bundle(bundle.manifest_digest);
    let denying = VerifyOptions {
        revocations: Some(&revocations),
        ..options()
    };
    refused(&bundle, &acme(), &denying, "bundle-revoked");
    let asking = VerifyOptions {
        require_provenance: true,
        ..options()
    };
    refused(&bundle, &acme(), &asking, "provenance-missing");
}
