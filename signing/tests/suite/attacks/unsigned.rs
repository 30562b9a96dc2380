//! A bundle comes without an envelope, without signatures, or with an empty signature.

use toolward_signing::verify;

use crate::support::{Sample, acme, key, options};

#[test]
fn a_bundle_without_an_envelope_is_refused() {
    let signed = Sample::new().sign(&[&key(1)]);
    let directory = signed.directory();
    std::fs::remove_file(directory.path().join("manifest.dsse.json")).unwrap();
    let refusal = verify::open(directory.path(), &acme(), &options()).unwrap_err();
    assert_eq!(refusal.code(), "envelope-missing");
}

#[test]
fn an_envelope_without_signatures_is_refused() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    let mut document: serde_json::Value = serde_json::from_slice(&signed.envelope).unwrap();
    document["signatures"] = serde_json::json!([]);
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(
        signed.verify(&acme()).unwrap_err().code(),
        "envelope-invalid"
    );
    document["signatures"] = serde_json::json!([{ "sig": "" }]);
    signed.envelope = serde_json::to_vec(&document).unwrap();
    assert_eq!(
        signed.verify(&acme()).unwrap_err().code(),
        "unknown-publisher"
    );
}
