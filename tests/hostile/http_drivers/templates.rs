//! Puts hostile values in each place of a template. They arrive as values, or nothing is sent.

use serde_json::{Value, json};
use toolward_host::ErrorCode;

use super::Terms;

/// Returns a request with a placeholder in this place.
fn request(place: &str) -> Value {
    match place {
        "path" => json!({ "endpoint": "/a/${input.v}/b", "method": "GET" }),
        "query" => {
            json!({ "endpoint": "/a", "method": "GET", "query_template": { "v": "${input.v}", "w": "1" } })
        }
        "header" => {
            json!({ "endpoint": "/a", "method": "GET", "headers": { "X-V": "${input.v}" } })
        }
        _ => json!({ "endpoint": "/a", "body_template": { "v": "t ${input.v}", "w": "1" } }),
    }
}

const PLACES: [&str; 4] = ["path", "query", "header", "body"];

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_text_stays_a_value_or_is_refused_before_anything_is_sent() {
    // Texts, with whether each is allowed in the path, the query, a header and the body.
    let texts = [
        (
            "x\r\nX-Evil: 1\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
            [false, true, false, true],
        ),
        ("\"}, \"w\": \"2", [true, true, true, true]),
        ("%2e%2e%2fadmin%0d%0a", [true, true, true, true]),
        ("..", [false, true, true, true]),
        ("../../../admin", [false, true, true, true]),
        ("?x=1&v=2#y", [true, true, true, true]),
        (
            "${secrets.THINGS_KEY} ${input.w} $${x}",
            [true, true, true, true],
        ),
        ("@evil.test:1", [true, true, true, true]),
        ("", [false, true, true, true]),
    ];
    for (place, at) in PLACES.into_iter().zip(0..) {
        for (text, allowed) in &texts {
            let what = format!("{text:?} in the {place}");
            let driver =
                json!({ "default_headers": { "Authorization": "Bearer ${secrets.THINGS_KEY}" } });
            let service = Terms::of(request(place)).driver(driver).serve().await;
            let input = json!({ "v": text, "w": "other" });
            if !allowed[at] {
                let error = service.error(input).await;
                assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{what}");
                assert!(service.vault.seen().is_empty(), "{what}");
                continue;
            }
            service.output(input).await;
            let sent = service.sent();
            let (path, query) = sent.target.split_once('?').unwrap_or((&sent.target, ""));
            let mut names: Vec<&str> = sent.headers.iter().map(|(name, _)| name.as_str()).collect();
            names.retain(|name| !matches!(*name, "content-type" | "content-length"));
            let own: &[&str] = match place {
                "header" => &["accept-encoding", "authorization", "host", "x-v"],
                _ => &["accept-encoding", "authorization", "host"],
            };
            names.sort_unstable();
            assert_eq!(names, own, "{what}");
            assert!(!sent.target.contains('#'), "{what}: {}", sent.target);
            match place {
                "path" => {
                    let segments: Vec<&str> = path.split('/').collect();
                    assert_eq!(
                        (segments.len(), segments[4], query),
                        (5, "b", ""),
                        "{what}: {path}"
                    );
                    assert_eq!(decoded(segments[3]), *text);
                }
                "query" => {
                    let pairs: Vec<&str> = query.split('&').collect();
                    assert_eq!((pairs.len(), pairs[1]), (2, "w=1"), "{what}: {query}");
                    assert_eq!(decoded(pairs[0].strip_prefix("v=").unwrap()), *text);
                }
                "header" => assert_eq!(sent.header("x-v"), Some(*text), "{what}"),
                _ => assert_eq!(
                    sent.json(),
                    json!({ "v": format!("t {text}"), "w": "1" }),
                    "{what}"
                ),
            }
        }
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = tail.get(..2).filter(|_| *first == b'%');
        let escape =
            escape.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_no_text_or_is_not_there_or_too_long_sends_nothing() {
    let long = "x".repeat(64 << 10);
    for place in PLACES {
        for value in [json!({ "a": 1 }), json!([1]), Value::Null] {
            let service = Terms::of(request(place)).serve().await;
            let error = service.error(json!({ "v": value })).await;
            assert_eq!(
                error.code,
                ErrorCode::INPUT_INVALID,
                "{value} in the {place}"
            );
            assert!(service.vault.seen().is_empty(), "{value} in the {place}");
        }
        let service = Terms::of(request(place)).serve().await;
        let input = json!({ "v": long });
        if place == "body" {
            service.output(input).await;
            assert_eq!(service.sent().json()["v"], json!(format!("t {long}")));
        } else {
            let error = service.error(input).await;
            assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{place}");
            assert!(service.vault.seen().is_empty(), "{place}");
        }
        let service = Terms::of(request(place)).serve().await;
        if matches!(place, "path" | "body") {
            let error = service.error(json!({})).await;
            assert_eq!(error.code, ErrorCode::INPUT_INVALID, "{place}");
            assert!(service.vault.seen().is_empty(), "{place}");
        } else {
            service.output(json!({})).await;
            let sent = service.sent();
            assert!(
                !sent.target.contains("v=") && sent.header("x-v").is_none(),
                "{place}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_gives_no_credentials_of_its_own() {
    for header in ["Authorization", "Cookie"] {
        let request = json!({ "endpoint": "/", "headers": { header: "${input.v}" } });
        let service = Terms::of(request).serve().await;
        let error = service.error(json!({ "v": "Bearer mine" })).await;
        assert_eq!(error.code, ErrorCode::UNAUTHORISED, "{header}");
        assert!(service.vault.seen().is_empty(), "{header}");
    }
}
