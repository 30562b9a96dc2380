//! A source keeps showing an old release, so that a fix never arrives.

use std::time::Duration;

use toolward_signing::channel::{VerifiedIndex, accept};
use toolward_signing::freshness::{Freshness, ReleaseSource};
use toolward_signing::sequence;
use toolward_signing::verify::Mode;

use crate::channels::{accepted, index, pinned};
use crate::support::{Sample, by, now, sample_digest, terms};

fn check(rule: &Freshness<'_>) -> Result<usize, &'static str> {
    rule.check(&Sample::new().manifest(), &sample_digest())
        .map(|warnings| warnings.len())
        .map_err(|refusal| refusal.code())
}

fn remote(index: Option<&VerifiedIndex>, max_age: Option<u64>) -> Freshness<'_> {
    Freshness {
        origin: ReleaseSource::Remote,
        index,
        max_age: max_age.map(Duration::from_secs),
        now: now(),
        mode: Mode::Enforce,
    }
}

#[test]
fn a_remote_source_needs_an_index_or_a_maximum_age_at_the_first_install_too() {
    assert_eq!(check(&remote(None, None)), Err("freshness-unknown"));
    let index = accepted(&index(1));
    assert_eq!(check(&remote(Some(&index), None)), Ok(0));
    assert_eq!(check(&remote(None, Some(86_400))), Ok(0));
    assert_eq!(check(&remote(None, Some(86_399))), Err("too-old"));
    let mut audit = remote(None, None);
    audit.mode = Mode::Audit;
    assert_eq!(check(&audit), Err("freshness-unknown"));
    let mut local = remote(None, None);
    local.origin = ReleaseSource::Local;
    assert_eq!(check(&local), Ok(0));
}

#[test]
fn an_index_that_has_expired_is_refused_when_it_is_fetched_and_when_it_is_used() {
    let mut old = index(1);
    old.expires = "2026-11-02T12:00:00Z".parse().unwrap();
    let bytes = by(old.to_envelope(), &[3]);
    let refusal = accept(&bytes, &pinned(&[3], 1), &terms()).unwrap_err();
    assert_eq!(refusal.code(), "document-expired");

    let index = accepted(&index(1));
    let mut later = remote(Some(&index), None);
    later.now = now() + Duration::from_secs(7 * 86_400);
    assert_eq!(check(&later), Err("document-expired"));
    later.mode = Mode::Audit;
    assert_eq!(check(&later), Ok(1));
}

#[test]
fn a_maximum_age_holds_beside_an_index() {
    let index = accepted(&index(1));
    assert_eq!(check(&remote(Some(&index), Some(1))), Err("too-old"));
}

#[test]
fn an_earlier_index_is_refused_though_it_is_still_valid() {
    let seen = accepted(&index(5));
    let replayed = accepted(&index(4));
    let mark = Some((seen.version, seen.digest));
    let refusal = sequence::check(mark, (replayed.version, replayed.digest)).unwrap_err();
    assert_eq!(refusal.code(), "rollback");
    let mut other = index(5);
    other.bundles.clear();
    let other = accepted(&other);
    let refusal = sequence::check(mark, (other.version, other.digest)).unwrap_err();
    assert_eq!(refusal.code(), "equivocation");
}
