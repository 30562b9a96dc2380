//! Co-signatures and other documents attached to a bundle.

use std::sync::Mutex;

use toolward_registry::{DocumentArtifact, media, merge_signatures};
use toolward_signing::archive::Effort;
use toolward_signing::envelope::Envelope;
use toolward_signing::key::KeyId;
use toolward_signing::manifest::MANIFEST_TYPE;

use crate::pushing::plainly;
use crate::sample::{Sample, by_key_one, client, envelope, key, verified};
use crate::scripted::{Held, Say, Scripted, ok, status};
use crate::server::Server;

/// Returns which of the keys 1 to 9 have a valid signature in an envelope.
fn signers(bytes: &[u8]) -> Vec<KeyId> {
    let envelope = Envelope::parse(bytes).unwrap();
    let signed = envelope.to_be_signed();
    let keys = (1..10).map(|number| key(number).public());
    keys.filter(|key| {
        let mut signatures = envelope.signatures().iter();
        signatures.any(|signature| key.verify(&signed, &signature.sig).is_ok())
    })
    .map(|key| key.key_id())
    .collect()
}

fn cosignature(sample: &Sample, number: u8) -> Vec<u8> {
    envelope(MANIFEST_TYPE, &sample.manifest, &[number])
}

#[tokio::test]
async fn cosignatures_are_added_to_the_envelope_that_is_verified() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(10_000, &[1]);
    let tagged = server.reference("team/a:1");
    let client = client();
    client
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    for number in [2, 3] {
        let own = cosignature(&sample, number);
        client
            .attach(&tagged, DocumentArtifact::Signatures, &own)
            .await
            .unwrap();
        // Attaching it again changes nothing.
        client
            .attach(&tagged, DocumentArtifact::Signatures, &own)
            .await
            .unwrap();
    }
    let listed = client
        .referrers(&tagged, DocumentArtifact::Signatures)
        .await
        .unwrap();
    assert_eq!(listed.len(), 2);
    assert!(
        client
            .referrers(&tagged, DocumentArtifact::Channel)
            .await
            .unwrap()
            .is_empty()
    );

    let downloads = tempfile::tempdir().unwrap();
    let pulled = client
        .pull(&tagged, downloads.path(), None, |bytes| Ok(signers(bytes)))
        .await
        .unwrap();
    assert_eq!(pulled.accepted.len(), 3);
    let archive = pulled.archive(Effort::Exact, Vec::new()).unwrap();
    verified(&archive);
    let all = Sample {
        envelope: envelope(MANIFEST_TYPE, &sample.manifest, &[1, 2, 3]),
        ..sample
    };
    assert!(
        archive == all.archive(),
        "as if all three had signed before it was pushed"
    );
}

#[tokio::test]
async fn without_an_api_referrers_are_under_the_fallback_tag() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(100, &[1]);
    let tagged = server.reference("a:1");
    let pushed = client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let own = cosignature(&sample, 2);
    let attached = client()
        .attach(&tagged, DocumentArtifact::Signatures, &own)
        .await
        .unwrap();
    let path = format!("/v2/a/manifests/sha256-{}", pushed.hex());
    let (code, head, body) = plainly(server.address, &path, media::INDEX);
    assert_eq!(code, 200);
    assert!(head.contains("content-type: application/vnd.oci.image.index.v1+json"));
    let index: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let entries = index["manifests"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["digest"], attached.to_string());
    assert_eq!(
        entries[0]["artifactType"],
        "application/vnd.toolward.bundle.signatures.v1"
    );
    let path = format!("/v2/a/manifests/{attached}");
    let (_, _, body) = plainly(server.address, &path, media::MANIFEST);
    let manifest: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(manifest["subject"]["digest"], pushed.to_string());
    assert_eq!(manifest["subject"]["mediaType"], media::MANIFEST);
}

#[tokio::test]
async fn several_who_attach_at_once_are_all_found() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(100, &[1]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let mut all = tokio::task::JoinSet::new();
    for number in 2..5 {
        let (tagged, own) = (tagged.clone(), cosignature(&sample, number));
        all.spawn(async move {
            // The index can't be updated atomically. A client whose entry was overwritten gets an
            // error or must try again.
            for _ in 0..12 {
                let client = client();
                let digest = client
                    .attach(&tagged, DocumentArtifact::Signatures, &own)
                    .await;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                let found = client
                    .referrers(&tagged, DocumentArtifact::Signatures)
                    .await
                    .unwrap();
                if digest.is_ok_and(|digest| found.contains(&digest)) {
                    return true;
                }
            }
            false
        });
    }
    while let Some(found) = all.join_next().await {
        assert!(found.unwrap());
    }
}

#[tokio::test]
async fn wrong_attachments_neither_help_nor_hinder() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(100, &[1]);
    let other = Sample::new(200, &[1]);
    let tagged = server.reference("a:1");
    let client = client();
    client
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    // A signature over another manifest, and a document that has only the start of an envelope.
    let foreign = cosignature(&other, 2);
    let broken = format!("{{\"payloadType\":\"{MANIFEST_TYPE}\"}}");
    for own in [foreign, broken.into_bytes(), cosignature(&sample, 3)] {
        client
            .attach(&tagged, DocumentArtifact::Signatures, &own)
            .await
            .unwrap();
    }
    let downloads = tempfile::tempdir().unwrap();
    let pulled = client
        .pull(&tagged, downloads.path(), None, |bytes| Ok(signers(bytes)))
        .await
        .unwrap();
    assert_eq!(pulled.accepted.len(), 2);
}

#[tokio::test]
async fn what_is_no_document_of_its_kind_is_not_sent() {
    let sample = Sample::new(100, &[1]);
    let server = Scripted::start(|_| status(500));
    let target = server.reference("a:1");
    let large = vec![b' '; 800_000];
    for (kind, bytes) in [
        (DocumentArtifact::Publisher, sample.envelope.as_slice()),
        (DocumentArtifact::Signatures, b"not json"),
        (DocumentArtifact::Signatures, &large),
    ] {
        let failure = client().attach(&target, kind, bytes).await.unwrap_err();
        assert_eq!(failure.code(), "registry-attachment-invalid");
        let failure = client()
            .push_document(kind, bytes, &target)
            .await
            .unwrap_err();
        assert_eq!(failure.code(), "registry-attachment-invalid");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_registry_with_the_api_is_not_given_a_fallback_tag() {
    let sample = Sample::new(100, &[1]);
    let held = Held::new(&sample);
    let stored: Mutex<Vec<u8>> = Mutex::new(Vec::new());
    let own = cosignature(&sample, 2);
    let (signature, digest) = (own.clone(), held.digest);
    let server = Scripted::start(move |asked| {
        let mut stored = stored.lock().unwrap();
        let attached = toolward_registry::BlobDigest::of(&stored);
        match asked.method.as_str() {
            "HEAD" => status(200),
            "PUT" => {
                stored.clone_from(&asked.body);
                let subject = ("OCI-Subject".to_owned(), digest.to_string());
                Say::Answer(201, vec![subject], Vec::new())
            }
            _ if asked.target.contains("/referrers/") => ok(serde_json::json!({
                "schemaVersion": 2, "mediaType": media::INDEX, "manifests": [{
                    "mediaType": media::MANIFEST, "digest": attached.to_string(),
                    "size": stored.len(),
                    "artifactType": DocumentArtifact::Signatures.artifact_type(),
                }, {
                    "mediaType": media::MANIFEST, "digest": "sha512:00", "size": 1,
                    "artifactType": DocumentArtifact::Signatures.artifact_type(),
                }]
            })
            .to_string()),
            _ if asked.target.ends_with(&attached.to_string()) => ok(stored.clone()),
            _ if asked
                .target
                .ends_with(&toolward_registry::BlobDigest::of(&signature).to_string()) =>
            {
                ok(signature.clone())
            }
            _ => held.answer(asked),
        }
    });
    let tagged = server.reference("a:1");
    client()
        .attach(&tagged, DocumentArtifact::Signatures, &own)
        .await
        .unwrap();
    assert_eq!(server.count("PUT", "/manifests/"), 1);
    let downloads = tempfile::tempdir().unwrap();
    let pulled = client()
        .pull(&tagged, downloads.path(), None, |bytes| Ok(signers(bytes)))
        .await
        .unwrap();
    assert_eq!(pulled.accepted.len(), 2);
    assert_eq!(server.count("GET", "/manifests/sha256-"), 0);
}

#[test]
fn merging_adds_each_signature_once_and_changes_nothing_needlessly() {
    let sample = Sample::new(100, &[1]);
    let none: [&[u8]; 0] = [];
    assert_eq!(
        merge_signatures(&sample.envelope, &none).unwrap(),
        sample.envelope
    );
    let same = merge_signatures(&sample.envelope, &[&sample.envelope]).unwrap();
    assert_eq!(same, sample.envelope);
    let many: Vec<Vec<u8>> = (2..40).map(|number| cosignature(&sample, number)).collect();
    let merged = merge_signatures(&sample.envelope, &many).unwrap();
    let envelope = Envelope::parse(&merged).unwrap();
    assert_eq!(
        envelope.signatures().len(),
        16,
        "more is refused by everybody"
    );
    by_key_one(&merged).expect("its own signatures are kept");
}
