//! A publisher's signature over another kind of document is put on a bundle.

use crate::support::{Sample, acme, code, envelope, key};

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
