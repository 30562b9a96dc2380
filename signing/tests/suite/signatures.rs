//! The signers of a bundle, and the publisher for which they count.

use toolward_signing::envelope::{self, Envelope};
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::trust::TrustStore;

use crate::support::{Sample, acme, code, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
}

#[test]
fn signatures_that_say_no_key_are_tried_with_so_many_keys_and_the_others_always() {
    let mut tables: Vec<_> = (0..20_u8)
        .map(|number| {
            let keys: Vec<_> = (0..10).map(|n| key(number * 10 + n).public()).collect();
            let prefix = format!("p{number}");
            publisher(&prefix, &keys, 1, &[&prefix])
        })
        .collect();
    tables.push(publisher("acme", &[key(200).public()], 1, &["text"]));
    let trust = store(&tables);
    let mut signed = Sample::new().sign(&[&key(200)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    let mut with = |junk: usize, keyid: bool| {
        let mut signature = document["signatures"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        if !keyid {
            signature.as_object_mut().unwrap().remove("keyid");
        }
        let forged = serde_json::json!({ "sig": "A".repeat(86) });
        let mut signatures = vec![forged; junk];
        signatures.push(signature);
        document["signatures"] = signatures.into();
        signed.envelope = serde_json::to_vec(&document).unwrap();
        signed.verify(&trust)
    };
    with(15, true).unwrap();
    with(1, false).unwrap();
    assert_eq!(code(with(15, false)), "unknown-publisher");
}

#[test]
fn a_signature_that_claims_a_trusted_key_must_verify_even_if_others_suffice() {
    let mut signed = Sample::new().sign(&[&key(1), &key(2)]);
    let trust = store(&[publisher(
        "acme",
        &[key(1).public(), key(2).public()],
        1,
        &["text"],
    )]);
    signed.verify(&trust).unwrap();
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    document["signatures"][1]["sig"] = document["signatures"][0]["sig"].clone();
    // That signature verifies with the other key, so it counts for that key only.
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(signed.verify(&trust).unwrap().signers.len(), 1);
    document["signatures"][1]["sig"] = serde_json::Value::String("A".repeat(84) + "AAA=");
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(code(signed.verify(&trust)), "signature-invalid");
}

#[test]
fn a_key_id_is_a_hint_only() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    let original = signed.verify(&acme()).unwrap();
    for keyid in [
        serde_json::Value::Null,
        "".into(),
        "nonsense".into(),
        key(9).public().key_id().to_string().into(),
    ] {
        let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
        document["signatures"][0]["keyid"] = keyid;
        signed.envelope = serde_json::to_vec(&document).unwrap();
        assert_eq!(signed.verify(&acme()).unwrap().signers, original.signers);
    }
    // A trusted key's id on a signature by another key does not make it count.
    let mut signed = Sample::new().sign(&[&key(9)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    document["signatures"][0]["keyid"] = key(1).public().key_id().to_string().into();
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(code(signed.verify(&acme())), "signature-invalid");
}

#[test]
fn a_trusted_key_takes_any_publisher_name_and_id() {
    let mut sample = Sample::new();
    sample.publisher = "whoever".to_owned();
    let bundle = sample
        .sign(&[&key(5)])
        .verify(&TrustStore::for_key(key(5).public()))
        .unwrap();
    // The whole key id: policies identify a publisher by this name, so it must be unique.
    let id = key(5).public().key_id();
    assert_eq!(bundle.publisher.name(), format!("key:{id}"));
    assert!(bundle.publisher.is_ad_hoc && bundle.may_publish("anything"));
    let other = TrustStore::for_key(key(6).public());
    assert_eq!(
        code(sample.sign(&[&key(5)]).verify(&other)),
        "unknown-publisher"
    );
}

#[test]
fn a_trusted_key_helps_where_the_store_refuses_and_changes_nothing_where_it_accepts() {
    let mut trust = acme();
    trust.add_key(key(2).public());
    let bundle = Sample::new()
        .sign(&[&key(1), &key(2)])
        .verify(&trust)
        .unwrap();
    assert_eq!(bundle.publisher.name(), "acme");
    let bundle = Sample::new().sign(&[&key(2)]).verify(&trust).unwrap();
    assert!(bundle.publisher.is_ad_hoc);
}

#[test]
fn signatures_of_other_kinds_are_passed_over() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    let other = serde_json::json!({ "keyid": "rsa", "sig": "AAAA".repeat(100) });
    document["signatures"]
        .as_array_mut()
        .unwrap()
        .insert(0, other);
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(signed.verify(&acme()).unwrap().signers.len(), 1);
}

#[test]
fn what_is_signed_is_the_pre_authentication_encoding() {
    let envelope = Envelope::parse(&Sample::new().sign(&[&key(1)]).envelope).unwrap();
    let pae = envelope::pae(MANIFEST_TYPE, envelope.payload());
    assert_eq!(envelope.to_be_signed(), pae);
    let signature = &envelope.signatures()[0].sig;
    key(1).public().verify(&pae, signature).unwrap();
    let refusal = key(1)
        .public()
        .verify(envelope.payload(), signature)
        .unwrap_err();
    assert_eq!(refusal.code(), "signature-invalid");
}
