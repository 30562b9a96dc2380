//! One key holder signs twice, although two must sign.

use toolward_signing::trust::TrustStore;

use crate::support::{Sample, code, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
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

    // Three copies of one signature, one of them under another key id.
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
