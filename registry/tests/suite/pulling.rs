//! Pulling from a real registry.

use std::sync::{Arc, Mutex};

use toolward_registry::{BlobDigest, Step};
use toolward_signing::archive::Effort;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::sample::{Sample, by_key_one, client, key, verified};
use crate::scripted::{Held, Scripted};
use crate::server::Server;

#[tokio::test]
async fn a_pulled_bundle_is_the_pushed_one_byte_for_byte() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(300_000, &[1]);
    let tagged = server.reference("team/text-stats:1.2.3");
    let pushed = client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();

    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let progress = move |progress: toolward_registry::TransferProgress| {
        told.lock().unwrap().push(progress);
    };
    for target in [&tagged, &tagged.with_digest(pushed)] {
        let pulled = client()
            .pull(target, downloads.path(), Some(&progress), by_key_one)
            .await
            .unwrap();
        assert_eq!(pulled.accepted, sample.manifest);
        assert_eq!(pulled.artifact.digest, pushed);

        let exact = pulled.archive(Effort::Exact, Vec::new()).unwrap();
        assert!(exact == sample.archive(), "the archive has the same bytes");
        let quick = pulled.archive(Effort::Fast, Vec::new()).unwrap();
        assert_eq!(*verified(&quick).manifest_bytes, *sample.manifest);
    }
    assert_eq!(
        std::fs::read_dir(downloads.path()).unwrap().count(),
        0,
        "nothing stays behind"
    );
    let seen = seen.lock().unwrap();
    let steps: Vec<Step> = seen.iter().map(|progress| progress.step).collect();
    assert!(steps.contains(&Step::Envelope) && steps.contains(&Step::Content));
}

#[tokio::test]
async fn nothing_of_the_content_is_downloaded_when_the_envelope_is_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(50_000, &[2]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let progress = move |progress: toolward_registry::TransferProgress| {
        told.lock().unwrap().push(progress.step);
    };
    let failure = client()
        .pull(&tagged, downloads.path(), Some(&progress), by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "signature-invalid");
    assert!(!seen.lock().unwrap().contains(&Step::Content));
    assert_eq!(std::fs::read_dir(downloads.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_download_goes_on_from_what_an_earlier_one_left() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(400_000, &[1]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let artifact = client().resolve(&tagged).await.unwrap();
    let content = toolward_signing::archive::content_bytes(&sample.contents()).unwrap();
    let partial = downloads
        .path()
        .join(format!("{}.partial", artifact.content.digest.hex()));

    let first = Arc::new(Mutex::new(None));
    let told = first.clone();
    let progress = move |progress: toolward_registry::TransferProgress| {
        if progress.step == Step::Content {
            told.lock().unwrap().get_or_insert(progress.done);
        }
    };
    let wrong = vec![0; 150_000];
    for (left, expected) in [
        (&content[..150_000], 150_000),
        // The partial file has wrong bytes: that is detected, and everything is fetched again.
        (&wrong, 150_000),
        (&content[..], content.len() as u64),
        (&[], 0),
    ] {
        *first.lock().unwrap() = None;
        std::fs::write(&partial, left).unwrap();
        let pulled = client()
            .pull(&tagged, downloads.path(), Some(&progress), by_key_one)
            .await
            .unwrap();
        assert_eq!(first.lock().unwrap().unwrap(), expected);
        let archive = pulled.archive(Effort::Exact, Vec::new()).unwrap();
        assert!(archive == sample.archive());
        assert!(!partial.exists());
    }
    // The partial file is too long to be the start of this blob.
    std::fs::write(&partial, [content.as_slice(), b"x"].concat()).unwrap();
    client()
        .pull(&tagged, downloads.path(), Some(&progress), by_key_one)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_missing() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let client = client();
    let sample = Sample::new(100, &[1]);
    let tagged = server.reference("a:1");
    client
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let digest = BlobDigest::of(b"other");
    for (target, code) in [
        (server.reference("a:2"), "registry-not-found"),
        (server.reference("b:1"), "registry-not-found"),
        (tagged.with_digest(digest), "registry-not-found"),
        (tagged.without_version(), "reference-incomplete"),
    ] {
        let failure = client
            .pull(&target, downloads.path(), None, by_key_one)
            .await
            .unwrap_err();
        assert_eq!(failure.code(), code, "{target}");
        assert!(failure.hint().is_some());
    }
}

#[tokio::test]
async fn a_crashed_download_leaves_at_most_what_can_be_gone_on_with() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(100_000, &[1]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let artifact = client().resolve(&tagged).await.unwrap();
    let partial = downloads
        .path()
        .join(format!("{}.partial", artifact.content.digest.hex()));
    // Another process has locked the file.
    let file = std::fs::File::create(&partial).unwrap();
    file.lock().unwrap();
    let pulled = client()
        .pull(&tagged, downloads.path(), None, by_key_one)
        .await
        .unwrap();
    assert!(pulled.archive(Effort::Exact, Vec::new()).unwrap() == sample.archive());
    assert_eq!(file.metadata().unwrap().len(), 0, "theirs is left alone");
    assert_eq!(std::fs::read_dir(downloads.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_link_in_place_of_a_download_is_not_followed() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(1000, &[1]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let artifact = client().resolve(&tagged).await.unwrap();
    let own = downloads.path().join("own.txt");
    std::fs::write(&own, "mine").unwrap();
    let partial = format!("{}.partial", artifact.content.digest.hex());
    std::os::unix::fs::symlink("own.txt", downloads.path().join(partial)).unwrap();
    let failure = client()
        .pull(&tagged, downloads.path(), None, by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-io");
    assert_eq!(std::fs::read_to_string(own).unwrap(), "mine");
}

#[tokio::test]
async fn an_envelope_with_another_bundles_content_is_refused_when_it_is_verified() {
    let one = Held::new(&Sample::new(1000, &[1]));
    let two = Held::new(&Sample::new(2000, &[1]));
    let manifest = String::from_utf8(one.manifest.clone())
        .unwrap()
        .replace(
            &BlobDigest::of(&one.content).hex(),
            &BlobDigest::of(&two.content).hex(),
        )
        .replace(
            &format!("\"size\":{}", one.content.len()),
            &format!("\"size\":{}", two.content.len()),
        );
    let mixed = Held {
        manifest: manifest.into_bytes(),
        content: two.content,
        ..one
    };
    let server = Scripted::start(move |asked| mixed.answer(asked));
    let downloads = tempfile::tempdir().unwrap();
    let target = server.reference("a:1");
    let pulled = client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap();
    let archive = pulled.archive(Effort::Fast, Vec::new()).unwrap();
    let trust = TrustStore::for_key(key(1).public());
    let refusal = verify::archive_bytes(&archive, &trust, &VerifyOptions::default());
    assert_eq!(refusal.unwrap_err().code(), "manifest-mismatch");
}

#[tokio::test]
async fn sixteen_pulls_at_once_do_not_disturb_each_other() {
    let Some(server) = Server::start() else {
        return;
    };
    let downloads = tempfile::tempdir().unwrap();
    let sample = Sample::new(500_000, &[1]);
    let tagged = server.reference("a:1");
    client()
        .push(&sample.outgoing(), &tagged, None)
        .await
        .unwrap();
    let folder = Arc::new(downloads.path().to_owned());
    let mut pulls = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (tagged, folder) = (tagged.clone(), folder.clone());
        pulls.spawn(async move {
            let pulled = client()
                .pull(&tagged, &folder, None, by_key_one)
                .await
                .unwrap();
            pulled.archive(Effort::Fast, Vec::new()).unwrap()
        });
    }
    while let Some(archive) = pulls.join_next().await {
        verified(&archive.unwrap());
    }
    assert_eq!(std::fs::read_dir(downloads.path()).unwrap().count(), 0);
}
