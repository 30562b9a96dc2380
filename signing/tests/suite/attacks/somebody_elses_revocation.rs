//! A publisher revokes another publisher's keys or bundles to disable them.

use toolward_signing::revocation::{RevocationList, Revocations, RevokedBundle, accept};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::VerifyOptions;

use crate::support::{
    CREATED, by, key, options, publisher, revoked_key, sample_digest, terms, verify_signed,
};

fn both() -> TrustStore {
    TrustStore::from_toml(
        &[
            publisher("acme", &[key(1).public()], 1, &["text"]),
            publisher("rival", &[key(2).public()], 1, &["rival"]),
        ]
        .concat(),
    )
    .unwrap()
}

fn list(publisher: &str) -> RevocationList {
    RevocationList {
        publisher: publisher.to_owned(),
        version: 1,
        created: CREATED.parse().unwrap(),
        expires: None,
        keys: Vec::new(),
        bundles: vec![RevokedBundle {
            digest: sample_digest(),
            id: Some("text.stats".to_owned()),
            reason: "ours is better".to_owned(),
        }],
    }
}

#[test]
fn a_list_in_another_publishers_name_is_refused() {
    let trust = both();
    let acme = trust.publisher("acme").unwrap();
    let forged = by(list("acme").to_envelope(), &[2]);
    let refusal = accept(&forged, acme, &trust, None, &terms()).unwrap_err();
    assert_eq!(refusal.code(), "threshold-not-met");
    let rival = trust.publisher("rival").unwrap();
    let refusal = accept(&forged, rival, &trust, None, &terms()).unwrap_err();
    assert_eq!(refusal.code(), "wrong-publisher");
}

#[test]
fn a_list_that_names_another_publishers_key_is_refused() {
    let trust = both();
    let rival = trust.publisher("rival").unwrap();
    let mut list = list("rival");
    list.keys = vec![revoked_key(1)];
    let bytes = by(list.to_envelope(), &[2]);
    let refusal = accept(&bytes, rival, &trust, None, &terms()).unwrap_err();
    assert_eq!(refusal.code(), "revocation-foreign");
    assert!(refusal.found_text().unwrap().contains("acme"));
}

#[test]
fn a_digest_of_another_publishers_bundle_in_a_list_reaches_nothing() {
    let trust = both();
    let rival = trust.publisher("rival").unwrap();
    let bytes = by(list("rival").to_envelope(), &[2]);
    let mut revocations = Revocations::none();
    let mut accepted = accept(&bytes, rival, &trust, None, &terms())
        .unwrap()
        .into_inner()
        .document;
    revocations.add_list(&accepted);
    // The revocation of another publisher's key has no effect, even if the store learned of the
    // key's owner only later.
    accepted.keys = vec![revoked_key(1)];
    revocations.add_list(&accepted);
    let options = VerifyOptions {
        revocations: Some(&revocations),
        ..options()
    };
    let bundle = verify_signed(&[1], &trust, &options).unwrap();
    revocations.check(&bundle).unwrap();
    assert!(revocations.bundle("rival", &sample_digest()).is_some());
}
