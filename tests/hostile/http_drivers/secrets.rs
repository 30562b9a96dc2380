//! A secret of a driver of `kind: http` is sent only in the place that template and policy both
//! name.

use serde_json::{Value, json};
use toolward_host::{ErrorCode, Request};

use super::{ENCODED, TOOL, Terms, VALUE};
use crate::vault::Vault;

const IN_QUERY: &str = "query = \"key\"";

fn with_parameter() -> Value {
    json!({
        "endpoint": "/find", "method": "GET",
        "query_template": { "a": "${input.a}", "key": "${secrets.THINGS_KEY}", "z": "1" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_holds_the_secret_where_the_policy_says_so() {
    let service = Terms::of(with_parameter()).secret(IN_QUERY).serve().await;
    service
        .output(json!({ "a": "toolward-secret-&key=1" }))
        .await;
    let sent = service.sent();
    assert_eq!(
        sent.target,
        format!("/base/find?a=toolward-secret-%26key%3D1&z=1&key={ENCODED}")
    );
    // The secret appears nowhere else in the request.
    let rest = service.vault.seen()[0].replacen(ENCODED, "", 1);
    assert!(!rest.contains(VALUE) && !rest.contains("s3cr3t"), "{rest}");
    assert!(!rest.contains("toolward-secret-0"), "{rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn template_and_policy_name_the_same_place_or_nothing_is_sent() {
    let in_header = json!({ "endpoint": "/", "method": "GET", "headers": { "Authorization": "Bearer ${secrets.THINGS_KEY}" } });
    let other_name = json!({ "endpoint": "/", "method": "GET", "query_template": { "token": "${secrets.THINGS_KEY}" } });
    let header_of_its_own = json!({
        "endpoint": "/", "method": "GET", "headers": { "X-Key": "${secrets.THINGS_KEY}" },
    });
    let delete = json!({ "endpoint": "/", "method": "DELETE", "query_template": { "key": "${secrets.THINGS_KEY}" } });
    for (request, secret) in [
        (with_parameter(), "header = \"authorization\""),
        (with_parameter(), "query = \"other\""),
        (in_header, IN_QUERY),
        (other_name, IN_QUERY),
        (header_of_its_own, IN_QUERY),
        (delete, IN_QUERY),
    ] {
        let service = Terms::of(request.clone()).secret(secret).serve().await;
        let reply = service
            .run(Request::with_value(TOOL, json!({ "a": "b" })))
            .await;
        let error = reply.result.unwrap_err();
        assert_eq!(error.code, ErrorCode::UNAUTHORISED, "{request} {secret}");
        assert_eq!(
            error.cause,
            Some(json!({ "missing": ["secret:THINGS_KEY"] })),
            "{request} {secret}"
        );
        assert!(service.vault.seen().is_empty(), "{request} {secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_repeats_the_secret_or_its_url_shows_neither() {
    let echo = |status: &'static str| {
        Vault::start(move |request| {
            let target = request.split(' ').nth(1).unwrap().to_owned();
            let body = format!("{{\"url\": \"https://api.test{target}\", \"key\": \"{VALUE}\"}}");
            format!(
                "HTTP/1.1 {status}\r\nlocation: https://evil.test{target}\r\nlink: <{target}>; rel=next\r\n\
                 refresh: 0; url={target}\r\ncontent-type: {VALUE}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        })
    };
    let service = Terms::of(with_parameter()).secret(IN_QUERY);
    let service = service.on(echo("200 OK").await);
    let output = service.output(json!({ "a": "b" })).await;
    assert_eq!(output["key"], json!("[secret]"), "{output}");
    assert!(
        output["url"].as_str().unwrap().ends_with("key=[secret]"),
        "{output}"
    );
    assert!(service.vault.seen()[0].contains(ENCODED));
    for status in ["302 Found", "403 Forbidden", "500 Internal Server Error"] {
        let service = Terms::of(with_parameter()).secret(IN_QUERY);
        let service = service.on(echo(status).await);
        let error = service.error(json!({ "a": "b" })).await;
        assert!(error.message.ends_with(status), "{error:?}");
        // The redirect is not followed.
        assert_eq!(service.vault.seen().len(), 1);
        assert!(service.vault.seen()[0].contains(ENCODED));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fails_names_no_url_with_the_secret() {
    // The server reads the request, and disconnects.
    let service = Terms::of(with_parameter()).secret(IN_QUERY);
    let service = service.on(Vault::start(|_| b"nonsense\r\n\r\n".to_vec()).await);
    let error = service.error(json!({ "a": "b" })).await;
    assert_eq!(error.code, ErrorCode::UPSTREAM_ERROR);
    assert!(!error.message.contains("key="), "{error:?}");
    assert!(service.vault.seen()[0].contains(ENCODED));
}
