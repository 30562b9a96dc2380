//! A publisher that the operator knows signs in the name of another.

use toolward_signing::trust::TrustStore;

use crate::support::{Sample, code, key, publisher};

fn store(tables: &[String]) -> TrustStore {
    TrustStore::from_toml(&tables.concat()).unwrap()
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
