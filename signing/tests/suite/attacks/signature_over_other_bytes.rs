//! A genuine signature comes with other bytes than the signed ones.

use toolward_signing::manifest::MANIFEST_TYPE;

use crate::support::{Sample, acme, code, envelope, key};

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
fn the_loose_manifest_must_be_the_signed_one() {
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.manifest.push(b'\n');
    assert_eq!(code(signed.verify(&acme())), "manifest-mismatch");
}
