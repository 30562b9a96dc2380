//! A registry that serves bytes with another digest than the requested one.

use toolward_registry::Reference;

use crate::attacks::{held, lying};
use crate::sample::{Sample, by_key_one, client};
use crate::scripted::{Held, ok, pull_code};

#[tokio::test]
async fn another_blob_is_refused() {
    let held = held();
    let other: Vec<u8> = held.content.iter().map(|byte| byte ^ 1).collect();
    let path = held.content_path();
    let server = lying(&held, move |asked| {
        asked.is("GET", &path).then(|| ok(other.clone()))
    });
    assert_eq!(
        pull_code(&client(), &server).await.unwrap_err(),
        "blob-differs"
    );
}

#[tokio::test]
async fn another_envelope_is_refused_before_anybody_looks_at_it() {
    let held = held();
    let mut other = held.envelope.clone();
    let last = other.len() - 1;
    other[last] = b' ';
    let server = lying(&held, move |asked| {
        (asked.is("GET", "/blobs/") && asked.from().is_none()).then(|| ok(other.clone()))
    });
    let downloads = tempfile::tempdir().unwrap();
    let mut looked = false;
    let failure = client()
        .pull(
            &server.reference("a:1"),
            downloads.path(),
            None,
            |envelope| {
                looked = true;
                by_key_one(envelope)
            },
        )
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "blob-differs");
    assert!(!looked);
    assert_eq!(server.count("GET", &held.content_path()), 0);
}

#[tokio::test]
async fn another_manifest_than_the_digest_names_is_refused() {
    let held = held();
    let other = Held::new(&Sample::new(100, &[1]));
    let server = lying(&other, |_| None);
    let target: Reference = server.reference("a:1").with_digest(held.digest);
    let downloads = tempfile::tempdir().unwrap();
    let failure = client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-manifest-differs");
    assert_eq!(server.asked().len(), 1, "no blob was asked for");
}
