//! Pages of allowed origins.

use std::sync::Arc;

use toolward_mcp::http::{Authentication, Settings, check};

use crate::client::{Answer, Request, Session};
use crate::fixture::{Server, open, two};

const PAGE: &str = "https://app.example";

fn preflight(origin: &str) -> Request {
    Request::new("OPTIONS", "/mcp")
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "authorization,content-type,mcp-session-id,mcp-param-city,x-other",
        )
}

fn shared_with(answer: &Answer, origin: &str) {
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some(origin),
        "{answer:?}"
    );
    assert_eq!(answer.header("vary"), Some("origin"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_calls_with_its_token() {
    let two = two();
    let mut settings = Settings::new(Authentication::Required(Arc::new(two.tokens.clone())));
    settings.origins = vec![
        PAGE.to_owned(),
        "null".to_owned(),
        "vscode-webview://*".to_owned(),
    ];
    let server = Server::start(settings);
    for origin in [
        PAGE,
        "null",
        "vscode-webview://0a1b2c",
        "http://localhost:6274",
    ] {
        let answer = preflight(origin).send(server.address).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        shared_with(&answer, origin);
        let methods = answer.header("access-control-allow-methods");
        assert_eq!(methods, Some("get, post, delete"));
        let headers = answer.header("access-control-allow-headers").unwrap();
        let allowed: Vec<&str> = headers.split(", ").collect();
        for name in [
            "authorization",
            "content-type",
            "last-event-id",
            "mcp-method",
            "mcp-name",
            "mcp-param-city",
            "mcp-protocol-version",
            "mcp-session-id",
        ] {
            assert!(allowed.contains(&name), "{name}: {headers}");
        }
        assert!(!allowed.contains(&"x-other"), "{headers}");

        // All other requests need the token. The page can read why one was refused.
        let request = Request::call("who").header("Origin", origin);
        let answer = request.send(server.address).await;
        shared_with(&answer, origin);
        answer.is(401, "token-missing");
        let answer = Request::new("OPTIONS", "/mcp")
            .header("Origin", origin)
            .send(server.address)
            .await;
        answer.is(401, "token-missing");
        let answer = request.token(&two.alice).send(server.address).await;
        shared_with(&answer, origin);
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        answer.handled();
    }
    for origin in ["https://evil.example", "vscode-webviews://a", "file://"] {
        let answer = preflight(origin).send(server.address).await;
        assert_eq!(answer.header("access-control-allow-origin"), None);
        answer.is(403, "origin-not-allowed");
    }
    let session = Session::begin(server.address, &two.alice).await.unwrap();
    let call = session.call(1, "who").header("Origin", PAGE);
    shared_with(&session.send(call).await.handled(), PAGE);
}

#[tokio::test]
async fn an_origin_of_any_page_is_not_allowed_unless_it_was_named() {
    let two = two();
    let server = Server::with(&two.tokens);
    for origin in ["null", "vscode-webview://a", "vscode-webview://localhost"] {
        let answer = preflight(origin).send(server.address).await;
        answer.is(403, "origin-not-allowed");
    }
}

#[test]
fn an_origin_of_any_page_needs_tokens() {
    for origin in ["null", "vscode-webview://*", "vscode-webview://a"] {
        let mut settings = open();
        settings.origins = vec![PAGE.to_owned(), origin.to_owned()];
        let error = check(([127, 0, 0, 1], 8000).into(), &settings).unwrap_err();
        assert_eq!(error.code(), "http-open-origin");
        assert!(error.to_string().contains(origin), "{error}");
    }
}
