//! Pushing to a real registry, and the result as other clients see it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_registry::{Details, OutgoingBundle, Step, media};

use crate::sample::{Sample, client, reference};
use crate::server::Server;

/// Sends one request over a plain socket; returns status, head and body.
pub(crate) fn plainly(address: SocketAddr, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n"
    )
    .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), answer[end + 4..].to_vec())
}

#[tokio::test]
async fn what_is_pushed_is_what_the_book_says_read_by_plain_http() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(20_000, &[1]);
    let details = Details {
        description: Some("Counts words".to_owned()),
        source: Some("https://example.org/source".to_owned()),
        licenses: Some("Apache-2.0".to_owned()),
    };
    let outgoing = OutgoingBundle::new(&sample.contents(), &details).unwrap();
    let target = server.reference("team/text-stats:1.2.3");
    let pushed = client().push(&outgoing, &target, None).await.unwrap();
    assert_eq!(pushed, outgoing.digest());

    let (status, head, body) = plainly(
        server.address,
        "/v2/team/text-stats/manifests/1.2.3",
        "application/vnd.oci.image.manifest.v1+json",
    );
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/vnd.oci.image.manifest.v1+json"));
    assert!(head.contains(&format!("docker-content-digest: {pushed}")));
    assert_eq!(
        body,
        outgoing.manifest(),
        "the registry keeps the exact bytes"
    );

    let manifest: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(manifest["schemaVersion"], 2);
    assert_eq!(
        manifest["artifactType"],
        "application/vnd.toolward.bundle.v1"
    );
    assert_eq!(
        manifest["config"]["mediaType"],
        "application/vnd.oci.empty.v1+json"
    );
    assert_eq!(manifest["config"]["size"], 2);
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 2);
    assert_eq!(
        layers[0]["mediaType"],
        "application/vnd.dsse.envelope.v1+json"
    );
    assert_eq!(
        layers[1]["mediaType"],
        "application/vnd.toolward.bundle.content.v1.tar+zstd"
    );
    let annotation = |key: &str| manifest["annotations"][key].as_str().unwrap().to_owned();
    assert_eq!(annotation("org.opencontainers.image.title"), "text.stats");
    assert_eq!(annotation("org.opencontainers.image.version"), "1.2.3");
    assert_eq!(
        annotation("org.opencontainers.image.created"),
        "2026-11-01T12:00:00Z"
    );
    assert_eq!(
        annotation("org.opencontainers.image.description"),
        "Counts words"
    );
    assert_eq!(
        annotation("org.opencontainers.image.source"),
        "https://example.org/source"
    );
    assert_eq!(
        annotation("org.opencontainers.image.licenses"),
        "Apache-2.0"
    );
    assert_eq!(annotation("vnd.toolward.bundle.id"), "text.stats");
    assert_eq!(annotation("vnd.toolward.bundle.sequence"), "7");
    assert_eq!(annotation("vnd.toolward.bundle.publisher"), "acme");
    assert_eq!(
        annotation("vnd.toolward.bundle.digest"),
        toolward_signing::Digest::of(&sample.manifest).to_string()
    );

    let blob = |layer: &serde_json::Value| {
        let digest = layer["digest"].as_str().unwrap();
        let path = format!("/v2/team/text-stats/blobs/{digest}");
        let (status, _, body) = plainly(server.address, &path, "*/*");
        assert_eq!(status, 200);
        assert_eq!(layer["size"], body.len());
        body
    };
    assert_eq!(blob(&layers[0]), sample.envelope);
    let tar = zstd_decoded(&blob(&layers[1]));
    assert!(
        tar.starts_with(b"manifest.toml\0"),
        "an archive without the envelope"
    );
    assert_eq!(&tar[512..512 + sample.manifest.len()], sample.manifest);
}

fn zstd_decoded(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::decode_all(bytes).unwrap()
}

#[tokio::test]
async fn pushing_twice_changes_nothing_and_uploads_nothing_again() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(20_000, &[1]);
    let target = server.reference("a:1");
    let first = client()
        .push(&sample.outgoing(), &target, None)
        .await
        .unwrap();
    let again = client()
        .push(&sample.outgoing(), &target, None)
        .await
        .unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_cosignature_changes_the_first_layer_only() {
    let layers = |keys: &[u8]| {
        let outgoing = Sample::new(5_000, keys).outgoing();
        let manifest: serde_json::Value = serde_json::from_slice(outgoing.manifest()).unwrap();
        manifest["layers"].as_array().unwrap().clone()
    };
    let (one, both) = (layers(&[1]), layers(&[1, 2]));
    assert_ne!(one[0]["digest"], both[0]["digest"]);
    assert_eq!(one[1], both[1]);
}

#[tokio::test]
async fn a_large_bundle_goes_up_in_pieces_and_tells_how_far_it_is() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(9 * 1024 * 1024, &[1]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let target = server.reference("large:1");
    let progress = move |progress: toolward_registry::TransferProgress| {
        told.lock().unwrap().push(progress);
    };
    let outgoing = sample.outgoing();
    client()
        .push(&outgoing, &target, Some(&progress))
        .await
        .unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.len() >= 4, "{seen:?}");
    assert!(seen.iter().all(|progress| progress.step == Step::Upload));
    assert!(seen.windows(2).all(|pair| pair[0].done <= pair[1].done));
    assert_eq!(Some(seen.last().unwrap().done), seen.last().unwrap().total);
}

#[tokio::test]
async fn what_is_not_signed_for_this_manifest_is_not_pushed() {
    let good = Sample::new(100, &[1]);
    let other = Sample::new(200, &[1]);
    let wrong_type = crate::sample::envelope("text/plain", &good.manifest, &[1]);
    for (envelope, code) in [
        (other.envelope.as_slice(), "registry-not-publishable"),
        (&wrong_type, "registry-not-publishable"),
        (b"{}", "envelope-invalid"),
    ] {
        let mut contents = good.contents();
        contents.envelope = envelope;
        let failure = OutgoingBundle::new(&contents, &Details::default()).unwrap_err();
        assert_eq!(failure.code(), code);
    }
    let details = Details {
        description: Some("two\nlines".to_owned()),
        ..Details::default()
    };
    let failure = OutgoingBundle::new(&good.contents(), &details).unwrap_err();
    assert_eq!(failure.code(), "registry-not-publishable");
}

#[tokio::test]
async fn a_reference_without_a_version_is_not_pushed_to() {
    let target = reference("oci://127.0.0.1:1/a");
    let outgoing = Sample::new(100, &[1]).outgoing();
    let failure = client().push(&outgoing, &target, None).await.unwrap_err();
    assert_eq!(failure.code(), "reference-incomplete");
    let digest = toolward_registry::BlobDigest::of(media::EMPTY_BYTES);
    let other = target.with_digest(digest);
    let failure = client().push(&outgoing, &other, None).await.unwrap_err();
    assert_eq!(failure.code(), "registry-not-publishable");
}

#[tokio::test]
async fn tags_are_listed_in_the_order_of_their_names() {
    let Some(server) = Server::start() else {
        return;
    };
    let outgoing = Sample::new(100, &[1]).outgoing();
    let repository = server.reference("many");
    for number in 0..12 {
        let tagged = repository.with_tag(&format!("v{number:02}")).unwrap();
        client().push(&outgoing, &tagged, None).await.unwrap();
    }
    let tags = client().tags(&repository).await.unwrap();
    assert_eq!(tags.len(), 12);
    assert_eq!((tags[0].as_str(), tags[11].as_str()), ("v00", "v11"));
    let missing = client()
        .tags(&server.reference("missing"))
        .await
        .unwrap_err();
    assert_eq!(missing.code(), "registry-not-found");
}
