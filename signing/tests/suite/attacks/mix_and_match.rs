//! A source combines releases that were never current at the same time.

use std::time::Duration;

use toolward_signing::Digest;
use toolward_signing::channel::ChannelIndex;
use toolward_signing::freshness::{Freshness, ReleaseSource};
use toolward_signing::verify::Mode;

use crate::channels::{accepted, index};
use crate::support::{Sample, now, sample_digest};

fn check(index: &ChannelIndex) -> Result<(), &'static str> {
    let index = accepted(index);
    let rule = Freshness {
        origin: ReleaseSource::Remote,
        index: Some(&index),
        max_age: Some(Duration::from_secs(86_400)),
        now: now(),
        mode: Mode::Audit,
    };
    rule.check(&Sample::new().manifest(), &sample_digest())
        .map(drop)
        .map_err(|refusal| refusal.code())
}

#[test]
fn a_release_that_is_not_the_listed_one_is_refused_whatever_else_is_right() {
    check(&index(1)).unwrap();
    let spoiled = |spoil: fn(&mut ChannelIndex)| {
        let mut index = index(1);
        spoil(&mut index);
        check(&index)
    };
    let mismatch = Err("channel-mismatch");
    assert_eq!(spoiled(|index| index.bundles[0].sequence = 8), mismatch);
    assert_eq!(spoiled(|index| index.bundles[0].sequence = 6), mismatch);
    assert_eq!(
        spoiled(|index| index.bundles[0].digest = Digest::of(b"another")),
        mismatch
    );
    assert_eq!(
        spoiled(|index| index.bundles[0].version = "1.2.4".parse().unwrap()),
        mismatch
    );
    assert_eq!(
        spoiled(|index| index.bundles[0].publisher = "other".to_owned()),
        mismatch
    );
}

#[test]
fn a_bundle_that_the_index_does_not_list_is_refused() {
    let mut without = index(1);
    without.bundles[0].id = "text.other".to_owned();
    assert_eq!(check(&without), Err("channel-unlisted"));
    without.bundles.clear();
    assert_eq!(check(&without), Err("channel-unlisted"));
}
