//! A registry whose answers never end or never start.

use std::time::{Duration, Instant};

use toolward_registry::ClientLimits;

use crate::attacks::{held, lying};
use crate::sample::{builder, client};
use crate::scripted::{Say, Scripted, ok, pull_code, status};

#[tokio::test]
async fn an_endless_blob_is_refused_at_its_size() {
    let held = held();
    let path = held.content_path();
    let long = vec![0; held.content.len() + 1];
    for say in [Say::Endless, ok(long.clone()), Say::Pieces(long)] {
        let path = path.clone();
        let server = lying(&held, move |asked| {
            asked.is("GET", &path).then(|| say.clone())
        });
        assert_eq!(
            pull_code(&client(), &server).await.unwrap_err(),
            "blob-endless"
        );
    }
}

#[tokio::test]
async fn an_endless_manifest_or_list_is_refused_at_its_limit() {
    let server = Scripted::start(|_| Say::Endless);
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-response-too-large");
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-response-too-large");
}

#[tokio::test]
async fn pages_without_an_end_are_not_read_for_ever() {
    let server = Scripted::start(|_| {
        let link = "</v2/a/tags/list?n=1000&last=x>; rel=\"next\"".to_owned();
        Say::Answer(
            200,
            vec![("Link".to_owned(), link)],
            b"{\"tags\":[]}".to_vec(),
        )
    });
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-response-too-large");
    assert!(server.asked().len() < 50);
}

#[tokio::test]
async fn a_registry_that_says_nothing_does_not_hold_a_pull_for_ever() {
    let server = Scripted::start(|_| {
        std::thread::sleep(Duration::from_secs(20));
        status(200)
    });
    let limits = ClientLimits {
        total: Duration::from_millis(500),
        ..Default::default()
    };
    let client = builder().limits(limits).build().unwrap();
    let started = Instant::now();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-timeout");
    assert!(started.elapsed() < Duration::from_secs(15));
}
