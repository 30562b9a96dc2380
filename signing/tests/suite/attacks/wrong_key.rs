//! A bundle is signed with a key that the operator does not know.

use toolward_signing::trust::TrustStore;

use crate::support::{Sample, acme, code, key};

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
