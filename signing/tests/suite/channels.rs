//! The index of a channel: its text, and the keys that may sign it.

use toolward_signing::channel::{
    Channel, ChannelIndex, ListedRelease, ListedTool, VerifiedIndex, accept,
};
use toolward_signing::revocation::Revocations;
use toolward_signing::trust::TrustSettings;
use toolward_signing::verify::Mode;
use toolward_signing::{Digest, Refusal};

use crate::support::{CREATED, by, key, sample_digest, terms};

/// `toolward.toml` with the channel `stable`, pinned to these keys.
pub(crate) fn pinned(keys: &[u8], threshold: usize) -> Channel {
    let keys: Vec<_> = keys
        .iter()
        .map(|number| key(*number).public().to_pem().unwrap())
        .collect();
    let text = format!(
        "[[channel]]\nname = \"stable\"\nsource = \"/srv/stable.channel.json\"\nkeys = {keys:?}\nthreshold = {threshold}\n"
    );
    let settings =
        TrustSettings::from_toml_with(&text, &mut |_| Err(std::io::Error::other("none"))).unwrap();
    settings.channel("stable").unwrap().clone()
}

/// An index that lists the unchanged sample.
pub(crate) fn index(version: u64) -> ChannelIndex {
    ChannelIndex {
        name: "stable".to_owned(),
        version,
        created: CREATED.parse().unwrap(),
        expires: "2026-11-08T12:00:00Z".parse().unwrap(),
        bundles: vec![ListedRelease {
            id: "text.stats".to_owned(),
            version: "1.2.3".parse().unwrap(),
            sequence: 7,
            digest: sample_digest(),
            publisher: "acme".to_owned(),
            name: Some("Text \"statistics\"".to_owned()),
            description: Some("Counts words.".to_owned()),
            tags: vec!["text".to_owned(), "count".to_owned()],
            tools: vec![ListedTool {
                id: "text.stats:count".to_owned(),
                title: None,
                description: "Counts words.".to_owned(),
                tags: Vec::new(),
            }],
        }],
    }
}

pub(crate) fn accepted(index: &ChannelIndex) -> VerifiedIndex {
    accept(&by(index.to_envelope(), &[3]), &pinned(&[3], 1), &terms()).unwrap()
}

fn signed(index: &ChannelIndex, keys: &[u8], channel: &Channel) -> Result<VerifiedIndex, Refusal> {
    accept(&by(index.to_envelope(), keys), channel, &terms())
}

#[test]
fn an_index_reads_back_as_it_was_written_sorted_by_id() {
    let mut index = index(1);
    let mut first = index.bundles[0].clone();
    first.id = "a.first".to_owned();
    (first.name, first.description, first.tags) = (None, None, Vec::new());
    index.bundles.push(first);
    let bytes = index.to_bytes().unwrap();
    let read = ChannelIndex::parse(&bytes).unwrap();
    assert_eq!(read.bundles[0].id, "a.first");
    index.bundles.reverse();
    assert_eq!(read, index);
    assert_eq!(bytes, index.to_bytes().unwrap());
    assert_eq!(read.get("text.stats"), Some(&index.bundles[1]));
    assert_eq!(read.get("text"), None);
}

#[test]
fn the_keys_that_the_operator_pinned_sign_it_and_nobody_else() {
    let channel = pinned(&[3, 4], 2);
    let accepted = signed(&index(1), &[3, 4], &channel).unwrap();
    assert_eq!(accepted.signers.len(), 2);
    assert_eq!((accepted.version, &*accepted.name), (1, "stable"));
    for keys in [&[3][..], &[3, 9], &[1, 2]] {
        let refusal = signed(&index(1), keys, &channel).unwrap_err();
        assert_eq!(refusal.code(), "threshold-not-met", "{keys:?}");
    }
    let mut denied = Revocations::none();
    denied.deny_key(key(3).public().key_id());
    let mut terms = terms();
    terms.revocations = &denied;
    let bytes = by(index(1).to_envelope(), &[3, 4]);
    let refusal = accept(&bytes, &channel, &terms).unwrap_err();
    assert_eq!(refusal.code(), "key-revoked");
}

#[test]
fn another_channels_index_is_refused_though_the_same_keys_signed_it() {
    let mut other = index(1);
    other.name = "nightly".to_owned();
    let refusal = signed(&other, &[3], &pinned(&[3], 1)).unwrap_err();
    assert_eq!(refusal.code(), "channel-mismatch");
}

#[test]
fn an_index_is_valid_for_ninety_days_at_most() {
    let mut index = index(1);
    index.expires = "2027-01-30T12:00:00Z".parse().unwrap();
    index.to_bytes().unwrap();
    for expires in ["2027-01-30T12:00:01Z", "9999-01-01T00:00:00Z", CREATED] {
        index.expires = expires.parse().unwrap();
        assert_eq!(index.to_bytes().unwrap_err().code(), "document-invalid");
    }
}

#[test]
fn an_index_with_a_slip_in_it_is_refused() {
    let good = String::from_utf8(index(1).to_bytes().unwrap()).unwrap();
    for (from, to, code) in [
        ("[[bundles]]", "[[bundle]]", "document-invalid"),
        ("[[bundles.tools]]", "[[bundles.tool]]", "document-invalid"),
        ("schema = 1", "schema = 2", "document-schema"),
        (
            "expires = \"2026-11-08T12:00:00Z\"\n",
            "",
            "document-invalid",
        ),
        (
            "version = \"1.2.3\"",
            "version = \"1.2\"",
            "document-invalid",
        ),
        ("sequence = 7", "sequence = -7", "document-invalid"),
        ("id = \"text.stats\"", "id = \"Text\"", "id-invalid"),
        ("Counts words.", "Counts \\u202ewords.", "document-invalid"),
        ("Counts words.", "", "document-invalid"),
        ("\"count\"]", "\"count\\n\"]", "document-invalid"),
        ("publisher = \"acme\"\n", "", "document-invalid"),
    ] {
        let spoiled = good.replacen(from, to, 1);
        assert_ne!(spoiled, good, "{from}");
        let refusal = ChannelIndex::parse(spoiled.as_bytes()).expect_err(to);
        assert_eq!(refusal.code(), code, "{to}");
    }
    let mut twice = index(1);
    twice.bundles.push(twice.bundles[0].clone());
    assert_eq!(twice.to_bytes().unwrap_err().code(), "document-invalid");
}

#[test]
fn an_index_may_be_larger_than_a_manifest() {
    let mut large = index(1);
    let entry = large.bundles[0].clone();
    for number in 0..3000 {
        let mut entry = entry.clone();
        entry.id = format!("text.n{number}");
        entry.description = Some("x".repeat(300));
        large.bundles.push(entry);
    }
    let bytes = by(large.to_envelope(), &[3]);
    assert!(bytes.len() > 1024 * 1024);
    assert_eq!(accepted(&large).bundles.len(), 3001);
}

#[test]
fn other_keys_make_a_channel_another_whose_versions_begin_anew() {
    assert_eq!(
        pinned(&[3, 4], 1).fingerprint(),
        pinned(&[4, 3], 1).fingerprint()
    );
    assert_ne!(pinned(&[3], 1).fingerprint(), pinned(&[4], 1).fingerprint());
}

#[test]
fn an_index_in_audit_mode_may_have_expired_and_must_be_signed() {
    let mut old = index(1);
    old.expires = "2026-11-02T12:00:00Z".parse().unwrap();
    let channel = pinned(&[3], 1);
    let mut audit = terms();
    audit.mode = Mode::Audit;
    let accepted = accept(&by(old.to_envelope(), &[3]), &channel, &audit).unwrap();
    assert!(accepted.warnings[0].contains("expired"));
    let refusal = accept(&by(old.to_envelope(), &[9]), &channel, &audit).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
}

#[test]
fn the_digest_of_an_index_is_that_of_the_signed_bytes() {
    let index = index(1);
    assert_eq!(
        accepted(&index).digest,
        Digest::of(&index.to_bytes().unwrap())
    );
}
