//! Invalid answers, which are refused before anything is downloaded.

use crate::attacks::{held, lying};
use crate::sample::client;
use crate::scripted::{Asked, Say, Scripted, ok, pull_code};

#[tokio::test]
async fn the_scripted_server_is_good_enough_to_be_pulled_from() {
    let held = held();
    let server = lying(&held, |_| None);
    let artifact = pull_code(&client(), &server).await.unwrap();
    assert_eq!(artifact.digest, held.digest);
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
    let server = Scripted::start(|_| ok("{\"tags\":[\"../../etc\",7,null,[\"c\"],\"b\"]}"));
    assert_eq!(client().tags(&server.reference("a")).await.unwrap(), ["b"]);
    let server = Scripted::start(|_| ok("{\"tags\":\"b\"}"));
    let failure = client().tags(&server.reference("a")).await.unwrap_err();
    assert_eq!(failure.code(), "registry-response-invalid");
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
