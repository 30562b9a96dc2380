//! A trust store names the example key, whose private half is public.

use toolward_signing::key::SigningKey;
use toolward_signing::publisher::{PAYLOAD_TYPE, first_use};
use toolward_signing::trust::TrustStore;

use crate::support::{document, envelope, key, publisher, terms};

fn example() -> SigningKey {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/keys/INSECURE-example-signing-key.pem"
    );
    SigningKey::from_pem(&std::fs::read_to_string(path).unwrap(), None).unwrap()
}

#[test]
fn a_table_with_the_example_key_is_refused() {
    let text = publisher("acme", &[key(1).public(), example().public()], 1, &["acme"]);
    let refusal = TrustStore::from_toml(&text).unwrap_err();
    assert_eq!(refusal.code(), "trust-example-key");
}

#[test]
fn a_document_with_the_example_key_is_refused_on_first_use() {
    let mut document = document(1, 1, &[1]);
    let text = String::from_utf8(document.to_bytes().unwrap()).unwrap();
    document.keys = vec![example().public()];
    assert_eq!(document.to_bytes().unwrap_err().code(), "trust-example-key");
    let text = text.replace(
        &key(1).public().to_pem().unwrap(),
        &example().public().to_pem().unwrap(),
    );
    let bytes = envelope(PAYLOAD_TYPE, text.as_bytes(), &[&example()]);
    assert_eq!(
        first_use(&bytes, &terms()).unwrap_err().code(),
        "trust-example-key"
    );
}
