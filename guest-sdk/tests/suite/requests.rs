//! HTTP requests, as far as the SDK itself implements them.

use serde_json::{Value, json};
use toolward_guest::http::{Method, Request, Response};
use toolward_guest::testing::Grants;
use toolward_guest::{Error, bindings::toolward::driver::types::ToolError};

fn served(response: Response) -> Grants {
    Grants::new().http(move |_| Ok(response.clone()))
}

#[test]
fn a_request_reaches_the_server_as_it_was_put_together() {
    let grants = Grants::new().http(|request| {
        assert_eq!(request.method(), Method::Post);
        assert_eq!(request.url(), "https://a.example/b?c");
        assert_eq!(request.headers()[0], ("x-one".to_owned(), b"1".to_vec()));
        assert_eq!(request.headers()[1].0, "content-type");
        assert_eq!(request.body_bytes(), br#"{"d":1}"#);
        Ok(Response::new(201)
            .with_header("X-Two", "2")
            .body(r#"{"e": 3}"#))
    });
    let response = grants
        .during(|| {
            Request::post("https://a.example/b?c")
                .header("x-one", "1")
                .json(&json!({"d": 1}))?
                .send()
        })
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.header("x-two"), Some("2"));
    assert_eq!(response.json::<Value>().unwrap()["e"], 3);
    assert_eq!(response.text().unwrap(), r#"{"e": 3}"#);
}

#[test]
fn without_a_grant_no_request_is_answered() {
    let error = Request::get("https://a.example/b?key=hidden")
        .send()
        .unwrap_err();
    assert_eq!(error.code(), "unauthorised");
    assert!(error.message().contains("https://a.example/b"));
    assert!(!error.message().contains("hidden"));
}

#[test]
fn a_url_that_is_none_never_reaches_the_server() {
    let grants = Grants::new().http(|_| Err(Error::new("test:asked", "asked")));
    for url in ["a.example", "ftp://a.example", "https://u:p@a.example"] {
        let error = grants.during(|| Request::get(url).send()).unwrap_err();
        assert_eq!(error.code(), "input_invalid", "{url}");
    }
}

#[test]
fn a_body_past_the_limit_is_an_error_or_cut_as_was_asked() {
    let grants = served(Response::new(200).body(vec![b'x'; 100]));
    let get = || Request::get("https://a.example");
    let whole = grants.during(|| get().max_bytes(100).send()).unwrap();
    assert_eq!((whole.bytes().len(), whole.is_truncated()), (100, false));
    let error = grants.during(|| get().max_bytes(99).send()).unwrap_err();
    assert_eq!(error.code(), "http:body_too_large");
    let cut = grants.during(|| get().truncate(99).send()).unwrap();
    assert_eq!((cut.bytes().len(), cut.is_truncated()), (99, true));
}

#[test]
fn a_status_is_an_error_only_where_success_is_asked_for() {
    let response = Response::new(404).body("gone");
    assert!(!response.is_success());
    let error = response.success().unwrap_err();
    assert_eq!(error.code(), "upstream_error");
    assert!(!error.is_retryable());
    let cause: Value = serde_json::from_str(&ToolError::from(error).cause.unwrap()).unwrap();
    assert_eq!(cause, json!({"status": 404, "body": "gone"}));
    assert!(Response::new(204).success().is_ok());
}

#[test]
fn a_server_that_is_busy_says_when_to_come_back() {
    let busy = Response::new(429).with_header("retry-after", "7");
    let raw = ToolError::from(busy.success().unwrap_err());
    assert_eq!((raw.retryable, raw.retry_after_ms), (true, Some(7000)));
    let raw = ToolError::from(Response::new(503).success().unwrap_err());
    assert_eq!((raw.retryable, raw.retry_after_ms), (true, None));
}

#[test]
fn a_body_that_is_no_text_or_no_json_is_an_upstream_error() {
    let response = Response::new(200).body([0xff, 0xfe]);
    assert_eq!(response.text().unwrap_err().code(), "upstream_error");
    assert_eq!(
        response.json::<Value>().unwrap_err().code(),
        "upstream_error"
    );
}
