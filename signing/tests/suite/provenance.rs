//! `provenance.dsse.json`: optional, but only of the same publisher and about the same manifest.

use toolward_signing::Digest;
use toolward_signing::provenance::{PAYLOAD_TYPE, Provenance, SourceSet, source_digest};
use toolward_signing::verify::VerifyOptions;

use crate::support::{Sample, Signed, acme, code, envelope, key, options};

fn claim() -> Provenance {
    Provenance::new(
        vec![SourceSet {
            name: "driver".to_owned(),
            digest: source_digest([("src/lib.rs", b"fn main() {}".as_slice())]),
        }],
        "rustc 1.95.0".to_owned(),
        "wasm32-wasip2".to_owned(),
    )
}

fn with(change: impl FnOnce(&Signed) -> Vec<u8>) -> Signed {
    let mut signed = Sample::new().sign(&[&key(1)]);
    signed.provenance = Some(change(&signed));
    signed
}

#[test]
fn provenance_by_the_publisher_about_this_manifest_is_read() {
    let signed = with(|signed| {
        envelope(
            PAYLOAD_TYPE,
            &claim().statement(&signed.manifest).unwrap(),
            &[&key(1)],
        )
    });
    let bundle = signed.verify(&acme()).unwrap();
    assert_eq!(bundle.provenance, Some(claim()));
    assert_eq!(
        bundle.provenance_bytes.as_deref(),
        signed.provenance.as_deref()
    );
    let archive = toolward_signing::archive::to_bytes(&bundle.contents().unwrap()).unwrap();
    assert_eq!(archive, signed.archive());
}

#[test]
fn a_bundle_without_provenance_has_none() {
    let bundle = Sample::new().sign(&[&key(1)]).verify(&acme()).unwrap();
    assert!(bundle.provenance.is_none() && bundle.provenance_bytes.is_none());
}

/// A signed bundle whose manifest announces the provenance that comes with it.
fn announced() -> Signed {
    let sample = Sample {
        announces_provenance: true,
        ..Sample::new()
    };
    let mut signed = sample.sign(&[&key(1)]);
    let statement = claim().statement(&signed.manifest).unwrap();
    signed.provenance = Some(envelope(PAYLOAD_TYPE, &statement, &[&key(1)]));
    signed
}

#[test]
fn announced_provenance_can_not_be_taken_out() {
    let mut signed = announced();
    let bundle = signed.verify(&acme()).unwrap();
    assert!(bundle.manifest.provenance && bundle.provenance.is_some());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b.toolbundle");
    std::fs::write(&file, signed.archive()).unwrap();
    toolward_signing::verify::unsigned(&file).unwrap();

    signed.provenance = None;
    let refusal = signed.verify(&acme()).unwrap_err();
    assert_eq!(refusal.code(), "provenance-missing");
    assert!(refusal.hint().unwrap().contains("changed"), "{refusal:?}");
    std::fs::write(&file, signed.archive()).unwrap();
    let refusal = toolward_signing::verify::unsigned(&file).unwrap_err();
    assert_eq!(refusal.code(), "provenance-missing");
}

#[test]
fn where_provenance_is_demanded_the_manifest_has_to_announce_it() {
    let demanding = VerifyOptions {
        require_provenance: true,
        ..options()
    };
    let verify = |signed: &Signed| {
        toolward_signing::verify::archive_bytes(&signed.archive(), &acme(), &demanding)
    };
    verify(&announced()).unwrap();
    // If the manifest does not announce the provenance, its removal would go unnoticed.
    let loose = with(|signed| {
        let statement = claim().statement(&signed.manifest).unwrap();
        envelope(PAYLOAD_TYPE, &statement, &[&key(1)])
    });
    assert_eq!(code(verify(&loose)), "provenance-missing");
    // The refusal comes before anything but the envelope is fetched.
    let early = toolward_signing::verify::envelope(&loose.envelope, &acme(), &demanding);
    assert_eq!(early.unwrap_err().code(), "provenance-missing");
}

#[test]
fn provenance_by_somebody_else_is_refused() {
    let signed = with(|signed| {
        envelope(
            PAYLOAD_TYPE,
            &claim().statement(&signed.manifest).unwrap(),
            &[&key(2)],
        )
    });
    assert_eq!(code(signed.verify(&acme())), "provenance-unsigned");
}

#[test]
fn provenance_about_another_manifest_is_refused() {
    let signed = with(|_| {
        envelope(
            PAYLOAD_TYPE,
            &claim().statement(b"another").unwrap(),
            &[&key(1)],
        )
    });
    assert_eq!(code(signed.verify(&acme())), "provenance-mismatch");
    let one_digest = with(|signed| {
        let statement = claim().statement(&signed.manifest).unwrap();
        let mut statement: serde_json::Value = serde_json::from_slice(&statement).unwrap();
        statement["subject"][0]["digest"] =
            serde_json::json!({ "blake3": Digest::of(&signed.manifest) });
        envelope(
            PAYLOAD_TYPE,
            &serde_json::to_vec(&statement).unwrap(),
            &[&key(1)],
        )
    });
    assert_eq!(code(one_digest.verify(&acme())), "provenance-mismatch");
}

#[test]
fn what_is_no_statement_is_refused() {
    let signed = with(|_| b"{}".to_vec());
    assert_eq!(code(signed.verify(&acme())), "envelope-invalid");
    let signed = with(|signed| {
        let statement = claim().statement(&signed.manifest).unwrap();
        envelope("text/plain", &statement, &[&key(1)])
    });
    assert_eq!(code(signed.verify(&acme())), "payload-type");
    let signed = with(|_| envelope(PAYLOAD_TYPE, b"{}", &[&key(1)]));
    assert_eq!(code(signed.verify(&acme())), "provenance-invalid");
    for (field, value) in [
        ("/_type", "https://in-toto.io/Statement/v0.1"),
        ("/predicateType", "https://example.com/other"),
        ("/predicate/buildDefinition/externalParameters", ""),
        ("/subject", ""),
    ] {
        let signed = with(|signed| {
            let statement = claim().statement(&signed.manifest).unwrap();
            let mut statement: serde_json::Value = serde_json::from_slice(&statement).unwrap();
            *statement.pointer_mut(field).unwrap() = value.into();
            envelope(
                PAYLOAD_TYPE,
                &serde_json::to_vec(&statement).unwrap(),
                &[&key(1)],
            )
        });
        assert_eq!(
            code(signed.verify(&acme())),
            "provenance-invalid",
            "{field}"
        );
    }
}

#[test]
fn another_build_type_is_taken_without_particulars() {
    let signed = with(|signed| {
        let statement = claim().statement(&signed.manifest).unwrap();
        let mut statement: serde_json::Value = serde_json::from_slice(&statement).unwrap();
        statement["predicate"]["buildDefinition"]["buildType"] = "https://example.com/b".into();
        envelope(
            PAYLOAD_TYPE,
            &serde_json::to_vec(&statement).unwrap(),
            &[&key(1)],
        )
    });
    let provenance = signed.verify(&acme()).unwrap().provenance.clone().unwrap();
    assert_eq!(provenance.build_type, "https://example.com/b");
    assert!(provenance.sources.is_empty());
}

#[test]
fn a_statement_is_the_same_bytes_each_time() {
    assert_eq!(
        claim().statement(b"m").unwrap(),
        claim().statement(b"m").unwrap()
    );
}
