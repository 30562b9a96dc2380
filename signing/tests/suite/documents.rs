//! Reading, writing and refusing the text of publisher documents and revocation lists.

use toolward_signing::Refusal;
use toolward_signing::publisher::{PAYLOAD_TYPE, PublisherDocument, Reset, first_use, stored};
use toolward_signing::revocation::{RevocationList, RevokedBundle};
use toolward_signing::timestamp::Timestamp;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::Mode;

use crate::support::{
    CREATED, accepted, by, document, envelope, key, now, publisher, revoked_key, sample_digest,
    store_of, terms, verify_signed,
};

pub(crate) fn full() -> PublisherDocument {
    let mut document = document(3, 2, &[1, 2, 3]);
    document.expires = Some("2027-11-01T12:00:00Z".parse().unwrap());
    let mut revoked = revoked_key(4);
    revoked.since = Some(Timestamp::parse(CREATED).unwrap());
    revoked.reason = "left \"behind\" in C:\\temp".to_owned();
    document.revoked_keys = vec![revoked, revoked_key(5)];
    document.resets = vec![Reset {
        id: "text.stats".to_owned(),
        sequence: 0,
        digest: sample_digest(),
    }];
    document
}

pub(crate) fn list() -> RevocationList {
    RevocationList {
        publisher: "acme".to_owned(),
        version: 1,
        created: Timestamp::parse(CREATED).unwrap(),
        expires: Some("2027-11-01T12:00:00Z".parse().unwrap()),
        keys: vec![revoked_key(4)],
        bundles: vec![RevokedBundle {
            digest: sample_digest(),
            id: Some("text.stats".to_owned()),
            reason: "it loses data".to_owned(),
        }],
    }
}

fn text(document: &PublisherDocument) -> String {
    String::from_utf8(document.to_bytes().unwrap()).unwrap()
}

fn refused(text: &str) -> Refusal {
    let refusal = PublisherDocument::parse(text.as_bytes()).expect_err(text);
    assert!(refusal.place().unwrap().starts_with("publisher document"));
    refusal
}

#[test]
fn documents_read_back_as_they_were_written_and_always_as_the_same_bytes() {
    let document = full();
    let bytes = document.to_bytes().unwrap();
    assert_eq!(PublisherDocument::parse(&bytes).unwrap(), document);
    assert_eq!(bytes, document.to_bytes().unwrap());
    let list = list();
    let bytes = list.to_bytes().unwrap();
    assert_eq!(RevocationList::parse(&bytes).unwrap(), list);
    assert_eq!(bytes, list.to_bytes().unwrap());
}

#[test]
fn unknown_keys_are_refused_prefixes_above_all() {
    let good = text(&full());
    for extra in [
        "prefixes = [\"*\"]\n",
        "key = 1\n",
        "algorithm = \"none\"\n",
    ] {
        let refusal = refused(&format!("{extra}{good}"));
        assert_eq!(refusal.code(), "document-invalid");
        assert_eq!(refusal.place(), Some("publisher document:1:1"));
    }
    let in_key = good.replacen("pem = ", "algorithm = \"none\"\npem = ", 1);
    assert_eq!(refused(&in_key).code(), "document-invalid");
}

#[test]
fn another_schema_has_a_code_of_its_own() {
    let good = text(&full());
    for other in ["schema = 2", "schema = 0", "later = 1\nschema = 2"] {
        let refusal = refused(&good.replacen("schema = 1", other, 1));
        assert_eq!(refusal.code(), "document-schema", "{other}");
    }
}

#[test]
fn wrong_values_are_refused_with_their_place() {
    let good = text(&full());
    for (from, to, code) in [
        ("name = \"acme\"", "name = \"Acme\"", "id-invalid"),
        ("version = 3", "version = 0", "document-invalid"),
        (
            "version = 3",
            "version = 9223372036854775808",
            "document-invalid",
        ),
        ("version = 3", "version = -1", "document-invalid"),
        ("threshold = 2", "threshold = 0", "document-invalid"),
        ("threshold = 2", "threshold = 4", "document-invalid"),
        ("threshold = 2\n", "", "document-invalid"),
        (
            "expires = \"2027-11-01T12:00:00Z\"",
            "expires = \"2026-11-01T12:00:00Z\"",
            "document-invalid",
        ),
        ("T12:00:00Z\"\nexpires", "\"\nexpires", "time-invalid"),
        ("BEGIN PUBLIC", "BEGIN PUBLIK", "key-invalid"),
        ("a laptop was stolen", "a\\u202eb", "document-invalid"),
        ("a laptop was stolen", "a\\nb", "document-invalid"),
        ("a laptop was stolen", " ", "document-invalid"),
        ("a laptop was stolen", "a\u{202e}b", "document-invalid"),
        ("a laptop was stolen", "\\x41", "document-invalid"),
        ("reason = \"a", "reason = \"\"#a", "document-invalid"),
        ("schema = 1\n", "schema = 1\r\n", "document-invalid"),
    ] {
        let spoiled = good.replacen(from, to, 1);
        assert_ne!(spoiled, good, "{from}");
        assert_eq!(refused(&spoiled).code(), code, "{to}");
    }
    let long = good.replace("a laptop was stolen", &"x".repeat(201));
    assert_eq!(refused(&long).code(), "document-invalid");
    let large = format!("{good}#{}", "x".repeat(256 * 1024));
    assert_eq!(refused(&large).code(), "document-invalid");
}

#[test]
fn a_key_stands_once_and_is_not_revoked_at_the_same_time() {
    let mut twice = document(1, 1, &[1, 2]);
    twice.keys.push(key(1).public());
    let mut both = document(1, 1, &[1, 2]);
    both.revoked_keys = vec![revoked_key(1)];
    let mut none = document(1, 1, &[]);
    none.threshold = 0;
    let many = document(1, 1, &(1..=17).collect::<Vec<_>>());
    for wrong in [twice, both, none, many] {
        assert_eq!(wrong.to_bytes().unwrap_err().code(), "document-invalid");
    }
}

#[test]
fn a_list_with_a_slip_is_refused_and_not_read_as_an_empty_one() {
    let good = String::from_utf8(list().to_bytes().unwrap()).unwrap();
    for (from, to) in [
        ("[[keys]]", "[[key]]"),
        ("[[bundles]]", "[[bundle]]"),
        ("digest = ", "manifest = "),
        ("reason = \"it loses data\"\n", ""),
    ] {
        let spoiled = good.replacen(from, to, 1);
        assert_ne!(spoiled, good, "{from}");
        let refusal = RevocationList::parse(spoiled.as_bytes()).expect_err(to);
        assert_eq!(refusal.code(), "document-invalid");
    }
}

#[test]
fn a_first_document_is_signed_by_its_own_threshold() {
    let document = document(5, 2, &[1, 2, 3]);
    let verified = accepted(&document, &[1, 3]);
    assert_eq!(verified.document, document);
    assert_eq!(verified.signers.len(), 2);
    assert!(verified.warnings.is_empty());
    for signers in [&[1][..], &[1, 9], &[9, 8]] {
        let bytes = by(document.to_envelope(), signers);
        assert_eq!(
            first_use(&bytes, &terms()).unwrap_err().code(),
            "threshold-not-met"
        );
        assert_eq!(stored(&bytes).unwrap_err().code(), "threshold-not-met");
    }
}

#[test]
fn a_document_of_another_kind_is_refused_though_its_signature_is_right() {
    let bytes = document(1, 1, &[1]).to_bytes().unwrap();
    first_use(&envelope(PAYLOAD_TYPE, &bytes, &[&key(1)]), &terms()).unwrap();
    for kind in [
        toolward_signing::MANIFEST_TYPE,
        toolward_signing::revocation::PAYLOAD_TYPE,
        "application/vnd.toolward.publisher.v2+toml",
        "",
    ] {
        let refusal = first_use(&envelope(kind, &bytes, &[&key(1)]), &terms()).unwrap_err();
        assert_eq!(refusal.code(), "payload-type", "{kind}");
    }
}

#[test]
fn documents_out_of_their_time_are_refused_and_in_audit_mode_warned_of() {
    let mut old = document(1, 1, &[1]);
    old.expires = Some("2026-11-02T12:00:00Z".parse().unwrap());
    let mut early = document(1, 1, &[1]);
    early.created = "2026-11-02T12:11:00Z".parse().unwrap();
    for (document, code) in [(old, "document-expired"), (early, "document-not-yet-valid")] {
        let bytes = by(document.to_envelope(), &[1]);
        assert_eq!(first_use(&bytes, &terms()).unwrap_err().code(), code);
        let mut audit = terms();
        audit.mode = Mode::Audit;
        assert_eq!(first_use(&bytes, &audit).unwrap().warnings.len(), 1);
        let mut unsigned = audit;
        unsigned.now = now();
        let refusal = first_use(&by(document.to_envelope(), &[9]), &unsigned).unwrap_err();
        assert_eq!(refusal.code(), "threshold-not-met");
    }
}

#[test]
fn what_is_kept_is_read_again_whatever_its_time_and_refuses_the_bundles_of_its_publisher() {
    let mut document = document(1, 1, &[1]);
    document.expires = Some("2026-11-02T12:00:00Z".parse().unwrap());
    let bytes = by(document.to_envelope(), &[1]);
    let verified = stored(&bytes).unwrap();
    assert_eq!(*verified.envelope_bytes, *bytes);
    let trust = store_of(&verified);
    let mut options = crate::support::options();
    let refusal = verify_signed(&[1], &trust, &options).unwrap_err();
    assert_eq!(refusal.code(), "document-expired");
    options.mode = Mode::Audit;
    let bundle = verify_signed(&[1], &trust, &options).unwrap();
    assert!(bundle.warnings[0].contains("acme"), "{:?}", bundle.warnings);
}

#[test]
fn a_document_takes_its_publisher_into_the_store_for_the_prefixes_that_the_operator_grants() {
    let verified = accepted(&document(2, 1, &[1]), &[1]);
    let trust = store_of(&verified);
    let acme = trust.publisher("acme").unwrap();
    assert_eq!(acme.fingerprint(), verified.fingerprint());
    let bundle = verify_signed(&[1], &trust, &crate::support::options()).unwrap();
    assert_eq!(bundle.publisher.name(), "acme");
    assert!(!bundle.may_publish("mail"));

    let mut empty = TrustStore::empty();
    assert_eq!(
        empty.add_document(&verified, vec![]).unwrap_err().code(),
        "trust-invalid"
    );
    assert_eq!(empty.publishers().count(), 0);
}

#[test]
fn a_document_takes_neither_the_name_nor_a_key_of_a_publisher_that_is_there() {
    let prefixes = || vec![toolward_signing::id::Prefix::parse("text").unwrap()];
    let table = |name: &str, number: u8| {
        TrustStore::from_toml(&publisher(name, &[key(number).public()], 1, &["x"])).unwrap()
    };
    let verified = accepted(&document(1, 1, &[1]), &[1]);
    for mut trust in [table("acme", 2), table("other", 1)] {
        let before = trust.clone();
        let refusal = trust.add_document(&verified, prefixes()).unwrap_err();
        assert_eq!(refusal.code(), "trust-invalid");
        assert!(trust.publishers().eq(before.publishers()));
    }
    let mut trust = table("other", 2);
    trust.add_document(&verified, prefixes()).unwrap();
    assert_eq!(trust.publishers().count(), 2);
}
