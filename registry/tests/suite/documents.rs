//! Publisher documents, revocation lists and channels: from registries, files and the web.

use toolward_registry::{DocumentArtifact, Source};

use crate::sample::{builder, client, envelope, reference};
use crate::scripted::{Say, Scripted, ok};
use crate::server::Server;

const MAX: u64 = 1024 * 1024;

fn document(kind: DocumentArtifact) -> Vec<u8> {
    envelope(kind.payload_type(), b"schema = 1\n", &[1])
}

#[tokio::test]
async fn every_kind_of_document_has_its_place_in_a_registry() {
    let Some(server) = Server::start() else {
        return;
    };
    let base = server.reference("team");
    for (kind, repository) in [
        (DocumentArtifact::Publisher, "team/toolward-publisher"),
        (DocumentArtifact::Revocations, "team/toolward-revocations"),
        (DocumentArtifact::Channel, "team/toolward-channel"),
    ] {
        let bytes = document(kind);
        let latest = kind.reference(&base, "acme", None).unwrap();
        let numbered = kind.reference(&base, "acme", Some(3)).unwrap();
        assert_eq!(latest.repository(), repository);
        assert_eq!(
            (latest.tag(), numbered.tag()),
            (Some("acme"), Some("acme__3"))
        );
        let digest = client().push_document(kind, &bytes, &latest).await.unwrap();
        let again = client()
            .push_document(kind, &bytes, &numbered)
            .await
            .unwrap();
        assert_eq!(digest, again);
        for target in [latest.clone(), numbered, latest.with_digest(digest)] {
            let source = Source::Registry(target);
            let found = client().fetch_document(&source, kind, MAX).await.unwrap();
            assert_eq!(found, bytes);
        }
    }
    let source = Source::Registry(base.with_tag("acme").unwrap());
    let failure = client()
        .fetch_document(&source, DocumentArtifact::Channel, MAX)
        .await;
    assert_eq!(failure.unwrap_err().code(), "registry-not-found");
}

#[tokio::test]
async fn a_document_of_another_kind_is_not_taken_for_the_one_wanted() {
    let Some(server) = Server::start() else {
        return;
    };
    let kind = DocumentArtifact::Publisher;
    let target = kind
        .reference(&server.reference("team"), "acme", None)
        .unwrap();
    client()
        .push_document(kind, &document(kind), &target)
        .await
        .unwrap();
    let source = Source::Registry(target);
    for other in [
        DocumentArtifact::Revocations,
        DocumentArtifact::Channel,
        DocumentArtifact::Signatures,
    ] {
        let failure = client()
            .fetch_document(&source, other, MAX)
            .await
            .unwrap_err();
        assert_eq!(failure.code(), "registry-artifact-unsupported");
    }
    let failure = client()
        .fetch_document(&source, kind, 10)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "blob-too-large");
}

#[test]
fn a_place_by_convention_needs_a_name_that_makes_one() {
    let base = reference("oci://registry.example/team");
    for name in ["", "a b", "acme__3", "a/b", ".a"] {
        let failure = DocumentArtifact::Publisher
            .reference(&base, name, None)
            .expect_err(name);
        assert_eq!(failure.code(), "reference-invalid");
    }
    assert!(
        DocumentArtifact::Signatures
            .reference(&base, "acme", None)
            .is_err()
    );
}

#[tokio::test]
async fn documents_come_from_files_and_from_the_web_within_their_size() {
    let kind = DocumentArtifact::Revocations;
    let bytes = document(kind);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acme.json");
    std::fs::write(&path, &bytes).unwrap();
    let said = bytes.clone();
    let server = Scripted::start(move |_| ok(said.clone()));
    let file = Source::Path(path);
    let web = Source::parse(&format!("{}/acme.json", server.origin())).unwrap();
    for source in [&file, &web] {
        let found = client().fetch_document(source, kind, MAX).await.unwrap();
        assert_eq!(found, bytes);
        let failure = client().fetch_document(source, kind, 10).await.unwrap_err();
        assert_eq!(failure.code(), "registry-response-too-large");
    }
    let strict = builder().plain_http_on_loopback(false).build().unwrap();
    let failure = strict.fetch_document(&web, kind, MAX).await.unwrap_err();
    assert_eq!(failure.code(), "plain-http-refused");
    let directory = Source::Path(folder.path().to_owned());
    let failure = client()
        .fetch_document(&directory, kind, MAX)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "source-invalid");
    let missing = Source::Path(folder.path().join("missing"));
    let failure = client()
        .fetch_document(&missing, kind, MAX)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-io");
}

#[tokio::test]
async fn an_endless_document_from_the_web_is_refused_at_its_limit() {
    let server = Scripted::start(|_| Say::Endless);
    let source = Source::parse(&server.origin()).unwrap();
    let kind = DocumentArtifact::Channel;
    let failure = client()
        .fetch_document(&source, kind, u64::MAX)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-response-too-large");
}
