//! Who signed, and for whom it counts.

use toolward_signing::envelope::{self, Envelope};
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::trust::TrustStore;

use crate::support::{Sample, acme, code, envelope, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
}

#[test]
fn a_bundle_signed_by_another_key_is_refused() {
    let signed = Sample::new().sign(&[&key(9)]);
    let refusal = signed.verify(&acme()).unwrap_err();
    assert_eq!(refusal.code(), "unknown-publisher");
    let keyid = key(9).public().key_id().to_string();
    assert!(refusal.found_text().unwrap().contains(&keyid));
    assert_eq!(
        code(signed.verify(&TrustStore::empty())),
        "unknown-publisher"
    );
}

#[test]
fn a_signature_over_something_else_is_refused() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    let mut other = Sample::new();
    other.id = "text.other".to_owned();
    let manifest = other.manifest().to_bytes().unwrap();
    let mut forged: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    let unsigned: serde_json::Value =
        serde_json::from_slice(&envelope(MANIFEST_TYPE, &manifest, &[&key(9)])).unwrap();
    forged["payload"] = unsigned["payload"].clone();
    signed.envelope = serde_json::to_vec(&forged).unwrap();
    signed.manifest = manifest;
    assert_eq!(code(signed.verify(&acme())), "signature-invalid");
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
    // A trusted key's id on somebody else's signature gives it nothing.
    let mut signed = Sample::new().sign(&[&key(9)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    document["signatures"][0]["keyid"] = key(1).public().key_id().to_string().into();
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(code(signed.verify(&acme())), "signature-invalid");
}

#[test]
fn a_payload_of_another_type_is_refused_though_its_signature_is_right() {
    for kind in [
        "application/vnd.in-toto+json",
        "application/vnd.toolward.bundle.manifest.v2+toml",
        "",
    ] {
        let mut signed = Sample::new().sign(&[&key(1)]);
        signed.envelope = envelope(kind, &signed.manifest, &[&key(1)]);
        assert_eq!(code(signed.verify(&acme())), "payload-type");
    }
}

#[test]
fn an_envelope_can_not_choose_the_algorithm() {
    let signed = Sample::new().sign(&[&key(1)]);
    let original = signed.verify(&acme()).unwrap();
    let forged = Sample::new().sign(&[&key(9)]);
    for field in [
        r#""alg": "none","#,
        r#""algorithm": "HS256","#,
        r#""scheme": {"kty": "oct"},"#,
    ] {
        for (signed, genuine) in [(&signed, true), (&forged, false)] {
            let text = String::from_utf8(signed.envelope.clone()).unwrap();
            for text in [
                text.replace("\"keyid\"", &format!("{field}\"keyid\"")),
                text.replacen('{', &format!("{{{field}"), 1),
            ] {
                let mut spoiled = signed.clone();
                spoiled.envelope = text.into_bytes();
                match spoiled.verify(&acme()) {
                    Ok(bundle) => assert!(genuine && crate::support::same(&bundle, &original)),
                    Err(refusal) => {
                        assert!(!genuine, "{refusal:?}");
                        assert_eq!(refusal.code(), "unknown-publisher");
                    }
                }
            }
        }
    }
}

#[test]
fn the_loose_manifest_must_be_the_signed_one() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.manifest.push(b'\n');
    assert_eq!(code(signed.verify(&acme())), "manifest-mismatch");
}

#[test]
fn a_threshold_counts_distinct_keys() {
    let keys = [key(1).public(), key(2).public(), key(3).public()];
    let trust = store(&[publisher("acme", &keys, 2, &["text"])]);
    assert_eq!(
        code(Sample::new().sign(&[&key(1)]).verify(&trust)),
        "threshold-not-met"
    );
    let bundle = Sample::new()
        .sign(&[&key(1), &key(3)])
        .verify(&trust)
        .unwrap();
    assert_eq!(bundle.signers.len(), 2);

    // The same key twice, with and without its id, and twice over.
    let mut signed = Sample::new().sign(&[&key(1)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    let mut again = document["signatures"][0].clone();
    document["signatures"]
        .as_array_mut()
        .unwrap()
        .push(again.clone());
    again["keyid"] = "another".into();
    document["signatures"].as_array_mut().unwrap().push(again);
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(code(signed.verify(&trust)), "threshold-not-met");

    // A key of somebody else does not count.
    let trust = store(&[
        publisher("acme", &keys[..2], 2, &["text"]),
        publisher("other", &keys[2..], 1, &["other"]),
    ]);
    let signed = Sample::new().sign(&[&key(1), &key(3)]);
    assert_eq!(code(signed.verify(&trust)), "threshold-not-met");
}

#[test]
fn a_publisher_can_not_sign_for_another() {
    let trust = store(&[
        publisher("acme", &[key(1).public()], 1, &["text"]),
        publisher("evil", &[key(2).public()], 1, &["text", "evil"]),
    ]);
    let refusal = Sample::new().sign(&[&key(2)]).verify(&trust).unwrap_err();
    assert_eq!(refusal.code(), "wrong-publisher");
    assert!(refusal.expected_text().unwrap().contains("evil"));
    let mut sample = Sample::new();
    sample.publisher = "nobody".to_owned();
    assert_eq!(
        code(sample.sign(&[&key(2)]).verify(&trust)),
        "wrong-publisher"
    );
}

#[test]
fn an_id_outside_the_publishers_prefixes_is_refused() {
    for prefixes in [
        &["mail"][..],
        &["texts"],
        &["tex"],
        &["text.stat"],
        &["text.stats.sub"],
    ] {
        let trust = store(&[publisher("acme", &[key(1).public()], 1, prefixes)]);
        let refusal = Sample::new().sign(&[&key(1)]).verify(&trust).unwrap_err();
        assert_eq!(refusal.code(), "prefix-not-granted", "{prefixes:?}");
    }
}

#[test]
fn the_longest_prefix_decides_and_ends_the_search() {
    let trust = store(&[
        publisher("acme", &[key(1).public()], 1, &["text"]),
        publisher("deep", &[key(2).public()], 1, &["text.stats"]),
    ]);
    let refusal = Sample::new().sign(&[&key(1)]).verify(&trust).unwrap_err();
    assert_eq!(refusal.code(), "prefix-not-granted");
    assert!(refusal.found_text().unwrap().contains("deep"));
    let mut sample = Sample::new();
    sample.publisher = "deep".to_owned();
    let bundle = sample.sign(&[&key(2)]).verify(&trust).unwrap();
    assert!(bundle.may_publish("text.stats.more") && !bundle.may_publish("text.other"));
}

#[test]
fn a_trusted_key_takes_any_publisher_name_and_id() {
    let mut sample = Sample::new();
    sample.publisher = "whoever".to_owned();
    let bundle = sample
        .sign(&[&key(5)])
        .verify(&TrustStore::for_key(key(5).public()))
        .unwrap();
    let short = key(5).public().key_id().short();
    assert_eq!(bundle.publisher.name(), format!("key:{short}"));
    assert!(bundle.publisher.is_ad_hoc() && bundle.may_publish("anything"));
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
    assert!(bundle.publisher.is_ad_hoc());
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
