//! A registry that lies: what it serves is refused, and never taken in part.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolward_registry::{Limits, PullOptions, Reference};

use crate::sample::{Sample, builder, by_key_one, client};
use crate::scripted::{Asked, Held, Say, Scripted, ok, pull_code, range, status, with};

fn held() -> Held {
    Held::new(&Sample::new(200_000, &[1]))
}

/// A server that is honest but for what `lie` says.
fn lying(held: &Held, lie: impl Fn(&Asked) -> Option<Say> + Send + Sync + 'static) -> Scripted {
    let held = held.clone();
    Scripted::start(move |asked| lie(asked).unwrap_or_else(|| held.answer(asked)))
}

#[tokio::test]
async fn the_scripted_server_is_good_enough_to_be_pulled_from() {
    let held = held();
    let server = lying(&held, |_| None);
    let artifact = pull_code(&client(), &server).await.unwrap();
    assert_eq!(artifact.digest, held.digest);
}

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
    let options = PullOptions::new(downloads.path());
    let mut looked = false;
    let failure = client()
        .pull(&server.reference("a:1"), &options, |envelope| {
            looked = true;
            by_key_one(envelope)
        })
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "blob-differs");
    assert!(!looked);
    assert_eq!(server.count("GET", &held.content_path()), 0);
}

#[tokio::test]
async fn a_truncated_blob_is_refused_whichever_way_it_ends() {
    let held = held();
    let path = held.content_path();
    let short = held.content[..1000].to_vec();
    for say in [ok(short.clone()), Say::Pieces(short)] {
        let path = path.clone();
        let server = lying(&held, move |asked| {
            asked.is("GET", &path).then(|| say.clone())
        });
        assert_eq!(
            pull_code(&client(), &server).await.unwrap_err(),
            "blob-truncated"
        );
    }
}

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
async fn a_list_is_read_page_by_page_and_only_of_its_own_repository() {
    let page = |asked: &Asked, target: &str| {
        if asked.target.contains("last=") {
            return ok("{\"tags\":[\"b\"]}");
        }
        let link = format!("<{target}>; rel=\"next\"");
        Say::Answer(
            200,
            vec![("Link".to_owned(), link)],
            b"{\"tags\":[\"a\"]}".to_vec(),
        )
    };
    let server = Scripted::start(move |asked| page(asked, "/v2/a/tags/list?last=a"));
    assert_eq!(
        client().tags(&server.reference("a")).await.unwrap(),
        ["a", "b"]
    );
    for elsewhere in [
        "/v2/other/tags/list?last=a",
        "http://127.0.0.1:1/v2/a/tags/list?last=a",
    ] {
        let server = Scripted::start(move |asked| page(asked, elsewhere));
        let failure = client().tags(&server.reference("a")).await.unwrap_err();
        assert_eq!(failure.code(), "registry-response-invalid");
        assert_eq!(server.asked().len(), 1);
    }
    let server = Scripted::start(|_| ok("{\"tags\":[\"../../etc\"]}"));
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-response-invalid");
}

#[tokio::test]
async fn a_tag_that_changes_between_two_requests_can_not_mix_two_bundles() {
    let first = held();
    let second = Held::new(&Sample::new(150_000, &[1]));
    let asks = Arc::new(AtomicUsize::new(0));
    let (one, two, count) = (first.clone(), second.clone(), asks.clone());
    let server = Scripted::start(move |asked| {
        if asked.target.ends_with("/manifests/1") && count.fetch_add(1, Ordering::SeqCst) > 0 {
            return two.answer(asked);
        }
        match one.answer(asked) {
            Say::Answer(404, ..) => two.answer(asked),
            said => said,
        }
    });
    let artifact = pull_code(&client(), &server).await.unwrap();
    assert_eq!(artifact.digest, first.digest);
    assert_eq!(asks.load(Ordering::SeqCst), 1, "the tag is asked for once");
}

#[tokio::test]
async fn another_manifest_than_the_digest_names_is_refused() {
    let held = held();
    let other = Held::new(&Sample::new(100, &[1]));
    let server = lying(&other, |_| None);
    let target: Reference = server.reference("a:1").with_digest(held.digest);
    let downloads = tempfile::tempdir().unwrap();
    let options = PullOptions::new(downloads.path());
    let failure = client()
        .pull(&target, &options, by_key_one)
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-manifest-differs");
    assert_eq!(server.asked().len(), 1, "no blob was asked for");
}

#[tokio::test]
async fn manifests_that_are_not_ours_or_announce_too_much_are_refused_before_a_download() {
    let held = held();
    let good = String::from_utf8(held.manifest.clone()).unwrap();
    let envelope_size = format!("\"size\":{}", held.envelope.len());
    let content_size = format!("\"size\":{}", held.content.len());
    let type_of = "application/vnd.toolward.bundle.v1";
    let cases = [
        (
            good.replace(&content_size, "\"size\":536870913"),
            "blob-too-large",
        ),
        (
            good.replace(&envelope_size, "\"size\":786433"),
            "blob-too-large",
        ),
        (
            good.replace(&content_size, "\"size\":-1"),
            "registry-manifest-invalid",
        ),
        (
            good.replace(type_of, "application/other"),
            "registry-artifact-unsupported",
        ),
        (
            good.replace("bundle.content", "bundle.other"),
            "registry-manifest-invalid",
        ),
        (
            good.replace("oci.empty", "oci.image.config"),
            "registry-manifest-invalid",
        ),
        (
            good.replace("sha256:", "sha512:"),
            "registry-manifest-invalid",
        ),
        (
            good.replace(
                &content_size,
                &format!("{content_size},\"urls\":[\"http://127.0.0.1:1/\"]"),
            ),
            "registry-manifest-invalid",
        ),
        (
            "{\"manifests\":[]}".to_owned(),
            "registry-artifact-unsupported",
        ),
        ("[]".to_owned(), "registry-manifest-invalid"),
        (String::new(), "registry-manifest-invalid"),
        (
            good.replace("\"schemaVersion\":2", "\"schemaVersion\":1"),
            "registry-manifest-invalid",
        ),
    ];
    for (manifest, code) in cases {
        let said = manifest.clone();
        let server = lying(&held, move |asked| {
            asked.is("GET", "/manifests/1").then(|| ok(said.clone()))
        });
        assert_eq!(
            pull_code(&client(), &server).await.unwrap_err(),
            code,
            "{manifest}"
        );
        assert_eq!(server.count("GET", "/blobs/"), 0);
    }
}

#[tokio::test]
async fn a_redirect_to_somewhere_else_is_not_followed() {
    let held = held();
    let elsewhere = {
        let held = held.clone();
        Scripted::start(move |_| ok(held.content.clone()))
    };
    for to in [
        elsewhere.origin(),
        "file:///etc/passwd".to_owned(),
        "http://192.0.2.1/x".to_owned(),
    ] {
        let path = held.content_path();
        let server = lying(&held, move |asked| {
            asked
                .is("GET", &path)
                .then(|| with(307, &[("Location", &to)]))
        });
        let code = pull_code(&client(), &server).await.unwrap_err();
        assert_eq!(code, "registry-redirect-refused");
    }
    assert!(elsewhere.asked().is_empty());
}

#[tokio::test]
async fn manifests_and_lists_are_not_redirected_even_within_the_registry() {
    let server = Scripted::start(|_| with(302, &[("Location", "/v2/b/manifests/1")]));
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-redirect-refused");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn redirects_in_a_circle_come_to_an_end() {
    let held = held();
    let path = held.content_path();
    let server = lying(&held, move |asked| {
        (asked.is("GET", &path) || asked.is("GET", "/round"))
            .then(|| with(307, &[("Location", "/round")]))
    });
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-redirect-refused");
    assert!(server.count("GET", "/round") <= 3);
}

#[tokio::test]
async fn a_redirect_to_where_it_is_allowed_is_followed() {
    let held = held();
    let elsewhere = {
        let held = held.clone();
        Scripted::start(move |_| ok(held.content.clone()))
    };
    let (path, to) = (
        held.content_path(),
        format!("{}/x?signature=s", elsewhere.origin()),
    );
    let server = lying(&held, move |asked| {
        asked
            .is("GET", &path)
            .then(|| with(307, &[("Location", &to)]))
    });
    let client = builder()
        .allow_redirects_to(elsewhere.origin())
        .build()
        .unwrap();
    pull_code(&client, &server).await.unwrap();
    assert_eq!(elsewhere.count("GET", "/x?signature=s"), 1);
}

#[tokio::test]
async fn a_wrong_part_of_a_blob_is_refused() {
    let held = held();
    let path = held.content_path();
    let (size, content) = (held.content.len(), held.content.clone());
    let server = lying(&held, move |asked| {
        if !asked.is("GET", &path) {
            return None;
        }
        Some(match asked.from() {
            None => Say::Cut(200, vec![], size, content[..50_000].to_vec()),
            // From somewhere else than it was asked for.
            Some(from) => Say::Answer(
                206,
                vec![range(from - 1, size)],
                content[from - 1..].to_vec(),
            ),
        })
    });
    let code = pull_code(&client(), &server).await.unwrap_err();
    assert_eq!(code, "registry-response-invalid");
}

#[tokio::test]
async fn a_registry_that_says_nothing_does_not_hold_a_pull_for_ever() {
    let server = Scripted::start(|_| {
        std::thread::sleep(Duration::from_secs(20));
        status(200)
    });
    let mut limits = Limits::default();
    limits.total = Duration::from_millis(500);
    let client = builder().limits(limits).build().unwrap();
    let started = Instant::now();
    let code = pull_code(&client, &server).await.unwrap_err();
    assert_eq!(code, "registry-timeout");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn what_a_registry_says_of_an_error_is_shown_without_its_tricks() {
    let server = Scripted::start(|_| {
        let body = r#"{"errors":[{"code":"DENIED","message":"\u001b[2J\u202eno"}]}"#;
        Say::Answer(400, vec![], body.as_bytes().to_vec())
    });
    let failure = client()
        .resolve(&server.reference("a:1"))
        .await
        .unwrap_err();
    assert_eq!(failure.code(), "registry-failed");
    let told = failure.to_string();
    assert!(
        told.contains("status 400") && told.contains("DENIED"),
        "{told}"
    );
    assert!(!told.contains('\u{1b}') && !told.contains('\u{202e}'));
}
