//! The releases of a repository, listed by honest and hostile registries.

use std::sync::atomic::{AtomicUsize, Ordering};

use toolward_registry::{Failure, MAX_RELEASES, TagPattern, TaggedReleases};
use toolward_signing::{ErrorKind, Refusal};

use crate::attacks::{held, lying};
use crate::sample::{builder, by_key_one, client};
use crate::scripted::{Asked, Say, Scripted, ok, status};

fn pattern() -> TagPattern {
    TagPattern::of("1.0.0").unwrap()
}

fn list(tags: &[String]) -> Say {
    ok(serde_json::json!({ "name": "a", "tags": tags }).to_string())
}

fn is_list(asked: &Asked) -> bool {
    asked.target.contains("/tags/list")
}

/// The tags of accepted releases, and the number of releases that were read.
fn taken<T>(releases: &TaggedReleases<T>) -> (Vec<&str>, usize) {
    let good = releases.found.iter().filter(|one| one.accepted.is_ok());
    let good = good.map(|one| one.tag.as_str()).collect();
    (good, releases.found.len())
}

#[tokio::test]
async fn each_release_is_looked_at_without_its_content() {
    let held = held();
    let tags = ["1.0.0", "1.10.0", "1.2.0", "stable", "v3.0.0", "sha256-00"];
    let tags = tags.map(str::to_owned);
    let server = lying(&held, move |asked| is_list(asked).then(|| list(&tags)));
    let repository = server.reference("a:1.0.0");
    let releases = client().releases(&repository, &pattern(), by_key_one).await;
    let releases = releases.unwrap();
    assert_eq!(taken(&releases), (vec!["1.10.0", "1.2.0", "1.0.0"], 3));
    assert_eq!(releases.left_out, 0);
    assert!(
        releases
            .found
            .iter()
            .all(|one| one.digest == Some(held.digest))
    );
    assert_eq!(server.count("GET", &held.content_path()), 0);
}

#[tokio::test]
async fn of_ten_thousand_tags_a_thousand_are_looked_at() {
    let tags: Vec<String> = (0..10_000).map(|number| format!("1.{number}.0")).collect();
    let looked = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = looked.clone();
    let server = Scripted::start(move |asked| {
        if is_list(asked) {
            return list(&tags);
        }
        counted.fetch_add(1, Ordering::Relaxed);
        status(404)
    });
    let repository = server.reference("a:1.0.0");
    let releases = client().releases(&repository, &pattern(), by_key_one).await;
    let releases = releases.unwrap();
    assert_eq!(releases.found.len(), MAX_RELEASES);
    assert_eq!(releases.left_out, 9_000);
    assert_eq!(looked.load(Ordering::Relaxed), MAX_RELEASES);
    assert_eq!(releases.found[0].tag, "1.9999.0");
    assert_eq!(releases.found[999].tag, "1.9000.0");
}

#[tokio::test]
async fn a_list_that_does_not_end_ends() {
    for page in ["[]", "[\"1.0.0\"]"] {
        let server = Scripted::start(move |asked| {
            if !is_list(asked) {
                return status(404);
            }
            let link = "</v2/a/tags/list?last=x>; rel=\"next\"".to_owned();
            let body = format!("{{\"tags\":{page}}}");
            Say::Answer(200, vec![("Link".to_owned(), link)], body.into_bytes())
        });
        let repository = server.reference("a:1.0.0");
        let releases = client().releases(&repository, &pattern(), by_key_one).await;
        assert_eq!(releases.unwrap_err().code(), "registry-response-too-large");
        assert!(server.asked().len() < 50, "{}", server.asked().len());
    }
}

#[tokio::test]
async fn names_that_are_no_tags_and_odd_versions_are_passed_over() {
    for name in [
        "../../etc/passwd",
        "1.0.0\u{202e}",
        "1.0.0+build",
        " 1.0.0",
        "",
    ] {
        let tags = vec!["1.0.0".to_owned(), name.to_owned()];
        let server = Scripted::start(move |asked| match is_list(asked) {
            true => list(&tags),
            false => status(404),
        });
        let repository = server.reference("a:1.0.0");
        let releases = client().releases(&repository, &pattern(), by_key_one).await;
        let releases = releases.unwrap();
        let looked: Vec<_> = releases.found.iter().map(|one| one.tag.as_str()).collect();
        assert_eq!(looked, ["1.0.0"], "{name}");
        assert_eq!(server.count("GET", "/manifests/"), 1, "{name}");
    }
    let held = held();
    let tags = [
        "99999999999999999999.0.0".to_owned(),
        "01.0.0".to_owned(),
        "1.0.0.0".to_owned(),
        format!("1.0.0-{}", "a".repeat(100)),
        "1.0.1".to_owned(),
    ];
    let server = lying(&held, move |asked| is_list(asked).then(|| list(&tags)));
    let repository = server.reference("a:1.0.0");
    let releases = client().releases(&repository, &pattern(), by_key_one).await;
    let releases = releases.unwrap();
    assert_eq!(taken(&releases).1, 2);
    assert_eq!(releases.found[0].tag, "1.0.1");
}

#[tokio::test]
async fn a_tag_that_leads_to_nothing_good_does_not_hide_the_others() {
    let held = held();
    let tags = ["1.0.0", "1.1.0", "1.2.0", "1.3.0"].map(str::to_owned);
    let envelope = held.envelope.clone();
    let server = lying(&held, move |asked| {
        if is_list(asked) {
            return Some(list(&tags));
        }
        if asked.is("GET", "/manifests/1.3.0") {
            return Some(status(404));
        }
        if asked.is("GET", "/manifests/1.2.0") {
            return Some(ok("{}"));
        }
        // Another document instead of a manifest.
        asked
            .is("GET", "/manifests/1.1.0")
            .then(|| ok(envelope.clone()))
    });
    let repository = server.reference("a:1.0.0");
    let releases = client().releases(&repository, &pattern(), by_key_one).await;
    assert_eq!(taken(&releases.unwrap()), (vec!["1.0.0"], 4));
}

#[tokio::test]
async fn a_registry_that_fails_is_not_taken_for_one_without_newer_releases() {
    for (answer, code) in [
        (status(429), "registry-busy"),
        (status(502), "registry-busy"),
        (status(503), "registry-busy"),
        (status(504), "registry-busy"),
        (Say::Nothing, "registry-unreachable"),
    ] {
        let releases = found_with(answer.clone(), by_key_one).await;
        assert_eq!(releases.unwrap_err().code(), code, "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_final_for_its_tag_does_not_hide_the_others() {
    for (code, reason) in [
        (400, "registry-failed"),
        (401, "registry-response-invalid"),
        (403, "registry-credentials-refused"),
        (406, "registry-failed"),
        (412, "registry-failed"),
        (451, "registry-failed"),
        (500, "registry-failed"),
        (501, "registry-failed"),
    ] {
        let releases = found_with(status(code), by_key_one).await;
        let releases = releases.unwrap_or_else(|failure| panic!("{code}: {failure}"));
        assert_eq!(taken(&releases), (vec!["1.0.0"], 2), "{code}");
        let refused = releases.found[0].accepted.as_ref().unwrap_err();
        assert_eq!(refused.code(), reason, "{code}");
    }
}

/// Reads the releases of a repository with 1.0.0 and 1.1.0, and sends each request only once.
/// `answer` is the answer to the tag 1.1.0.
async fn found_with<T>(
    answer: Say,
    verify: impl Fn(&[u8]) -> Result<T, Refusal>,
) -> Result<TaggedReleases<T>, Failure> {
    let held = held();
    let tags = ["1.0.0", "1.1.0"].map(str::to_owned);
    let server = lying(&held, move |asked| {
        if is_list(asked) {
            return Some(list(&tags));
        }
        asked.is("GET", "/manifests/1.1.0").then(|| answer.clone())
    });
    look(&server, verify).await
}

async fn look<T>(
    server: &Scripted,
    verify: impl Fn(&[u8]) -> Result<T, Refusal>,
) -> Result<TaggedReleases<T>, Failure> {
    let limits = toolward_registry::ClientLimits {
        retries: 0,
        ..Default::default()
    };
    let client = builder().limits(limits).build().unwrap();
    let repository = server.reference("a:1.0.0");
    client.releases(&repository, &pattern(), verify).await
}

#[tokio::test]
async fn a_look_up_of_attachments_that_fails_ends_the_search_only_if_it_may_pass_and_signatures_miss()
 {
    for (kind, referrers, found) in [
        (ErrorKind::WrongBundle, status(400), Some(2)),
        (ErrorKind::WrongBundle, status(503), Some(2)),
        (ErrorKind::ThresholdNotMet, status(400), Some(2)),
        (ErrorKind::ThresholdNotMet, status(403), Some(2)),
        (ErrorKind::ThresholdNotMet, status(503), None),
    ] {
        let held = held();
        let case = format!("{kind:?} {referrers:?}");
        let tags = ["1.0.0", "1.1.0"].map(str::to_owned);
        let server = lying(&held, move |asked| {
            if is_list(asked) {
                return Some(list(&tags));
            }
            if asked.target.contains("/manifests/sha256-") {
                return Some(status(404));
            }
            asked
                .target
                .contains("/referrers/")
                .then(|| referrers.clone())
        });
        let releases = look(&server, |_| Err::<(), _>(Refusal::new(kind))).await;
        let looked = releases.map(|releases| taken(&releases).1).ok();
        assert_eq!(looked, found, "{case}");
    }
}
