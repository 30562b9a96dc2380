//! Bundles by `https`; the tests use plain http on loopback.

use std::io::Read as _;
use std::sync::{Arc, Mutex};

use toolward_registry::Source;
use toolward_signing::Refusal;
use url::Url;

use crate::sample::{Sample, builder, by_key_one, client, verified};
use crate::scripted::{Say, Scripted, ok, status, with};

fn url(server: &Scripted) -> Url {
    Url::parse(&format!("{}/x.toolbundle", server.origin())).unwrap()
}

fn is_by_key_one(envelope: &[u8]) -> Result<(), Refusal> {
    by_key_one(envelope).map(drop)
}

/// Fetches with key 1; returns the archive, or the code of the failure.
async fn fetch(server: &Scripted) -> Result<Vec<u8>, &'static str> {
    let downloads = tempfile::tempdir().unwrap();
    let fetched = client()
        .fetch_bundle(&url(server), downloads.path(), None, is_by_key_one)
        .await;
    assert_eq!(std::fs::read_dir(downloads.path()).unwrap().count(), 0);
    let mut fetched = fetched.map_err(|failure| failure.code())?;
    let mut archive = Vec::new();
    fetched.read_to_end(&mut archive).unwrap();
    Ok(archive)
}

#[tokio::test]
async fn a_bundle_comes_by_the_web_as_it_is() {
    for size in [10, 500_000] {
        let archive = Sample::new(size, &[1]).archive();
        for say in [ok(archive.clone()), Say::Pieces(archive.clone())] {
            let server = Scripted::start(move |_| say.clone());
            let fetched = fetch(&server).await.unwrap();
            assert!(fetched == archive);
            verified(&fetched);
        }
    }
}

#[tokio::test]
async fn the_envelope_is_verified_before_the_rest_is_downloaded() {
    let archive = Sample::new(6_000_000, &[2]).archive();
    let length = archive.len() as u64;
    let server = Scripted::start(move |_| ok(archive.clone()));
    let downloads = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(0));
    let told = seen.clone();
    let progress = move |progress: toolward_registry::TransferProgress| {
        *told.lock().unwrap() = progress.done;
    };
    let failure = client()
        .fetch_bundle(
            &url(&server),
            downloads.path(),
            Some(&progress),
            is_by_key_one,
        )
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "signature-invalid");
    assert!(*seen.lock().unwrap() < length / 4, "{seen:?} of {length}");
    assert_eq!(std::fs::read_dir(downloads.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_is_no_archive_or_has_no_end_is_refused() {
    let sample = Sample::new(100_000, &[1]);
    let archive = sample.archive();
    let content = toolward_signing::archive::content_bytes(&sample.contents()).unwrap();
    for (say, code) in [
        (Say::Endless, "archive-format"),
        (ok("<html>"), "archive-format"),
        (ok(content), "archive-order"),
        (ok(archive[..200].to_vec()), "blob-truncated"),
        (ok(Vec::new()), "blob-truncated"),
        (
            Say::Cut(200, vec![], archive.len(), archive[..60_000].to_vec()),
            "registry-unreachable",
        ),
        (
            Say::Cut(200, vec![], 600_000_000, archive.clone()),
            "blob-too-large",
        ),
        (status(404), "registry-not-found"),
        (
            with(302, &[("Location", "http://192.0.2.1/x.toolbundle")]),
            "registry-redirect-refused",
        ),
    ] {
        let server = Scripted::start(move |_| say.clone());
        assert_eq!(fetch(&server).await.unwrap_err(), code);
    }
}

#[tokio::test]
async fn an_archive_is_not_downloaded_beyond_the_limit() {
    let archive = Sample::new(400_000, &[1]).archive();
    let server = Scripted::start(move |_| Say::Pieces(archive.clone()));
    let limits = toolward_registry::ClientLimits {
        content: 100_000,
        ..Default::default()
    };
    let client = builder().limits(limits).build().unwrap();
    let downloads = tempfile::tempdir().unwrap();
    let failure = client
        .fetch_bundle(&url(&server), downloads.path(), None, is_by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "blob-too-large");
}

#[tokio::test]
async fn no_credentials_are_ever_sent_to_the_web() {
    let server = Scripted::start(|_| with(401, &[("WWW-Authenticate", "Basic realm=\"x\"")]));
    let login = toolward_registry::Login::new("name", "hunter2".to_owned().into()).unwrap();
    let credentials =
        toolward_registry::RegistryCredentials::none().with(server.address.to_string(), login);
    let client = builder().credentials(credentials).build().unwrap();
    let source = Source::parse(&server.origin()).unwrap();
    let kind = toolward_registry::DocumentArtifact::Publisher;
    let failure = client
        .fetch_document(&source, kind, 1000)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-credentials-refused");
    let asked = server.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].header("authorization"), None);
}
