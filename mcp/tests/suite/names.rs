//! Names that the server does not answer to, on every path.

use std::net::TcpListener;

use tokio_util::sync::CancellationToken;
use toolward_mcp::http::{HttpError, serve};

use crate::client::{Request, TEST_TIMEOUT};
use crate::fixture::{Server, open};

#[tokio::test]
async fn a_forged_host_reaches_nothing_on_any_path() {
    let server = Server::start(open());
    for request in [
        Request::call("wait"),
        Request::new("GET", "/healthz"),
        Request::new("GET", "/elsewhere"),
        Request::new("GET", "/mcp").header("Accept", "text/event-stream"),
        Request::new("DELETE", "/mcp"),
    ] {
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.nip.example",
        ] {
            let request = request.clone().without("Host").header("Host", host);
            request
                .send(server.address)
                .await
                .is(421, "host-not-allowed");
        }
        let twice = request.clone().header("Host", "evil.example");
        twice.send(server.address).await.is(400, "host-missing");
        let none = request.clone().without("Host");
        assert_eq!(none.send(server.address).await.status, 400);
    }
    assert_eq!(server.count(|seen| &seen.started), 0);
}

#[tokio::test]
async fn a_page_from_elsewhere_reaches_nothing_on_any_path() {
    let server = Server::start(open());
    for request in [
        Request::call("wait"),
        Request::new("GET", "/healthz"),
        Request::new("OPTIONS", "/mcp"),
    ] {
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example",
        ] {
            let request = request.clone().header("Origin", origin);
            let answer = request.send(server.address).await;
            let answer = answer.is(403, "origin-not-allowed");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(server.count(|seen| &seen.started), 0);
}

#[tokio::test]
async fn without_tokens_only_the_pages_that_are_named_reach_something() {
    const NAMED: &str = "http://localhost:6274";
    let mut settings = open();
    settings.origins = vec![NAMED.to_owned()];
    let server = Server::start(settings);
    for origin in [
        "http://localhost:6275",
        "http://localhost",
        "https://localhost:6274",
        "http://127.0.0.1:6274",
        "http://[::1]:6274",
    ] {
        let request = Request::call("wait").header("Origin", origin);
        let answer = request.send(server.address).await;
        let answer = answer.is(403, "origin-not-allowed");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(server.count(|seen| &seen.started), 0);
    let named = Request::call("who").header("Origin", NAMED);
    named.send(server.address).await.handled();
    // With a token, pages of this machine need no name.
    let two = crate::fixture::two();
    let server = Server::with(&two.tokens);
    let local = Request::call("who").header("Origin", "http://localhost:6275");
    let local = local.token(&two.alice);
    local.send(server.address).await.handled();
}

#[tokio::test]
async fn health_is_told_without_a_token_and_nothing_else() {
    let server = Server::with(&crate::fixture::two().tokens);
    let answer = Request::new("GET", "/healthz").send(server.address).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
    assert_eq!(answer.header("server"), None);
    let answer = Request::new("GET", "/elsewhere").send(server.address).await;
    answer.is(404, "path-unknown");
}

#[tokio::test]
async fn an_address_of_other_machines_is_not_served_without_tokens() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let mut settings = open();
    settings.hosts = vec!["tools.example".to_owned()];
    let served = serve(
        listener,
        || -> Nobody { unreachable!() },
        settings,
        CancellationToken::new(),
    );
    let refused = tokio::time::timeout(TEST_TIMEOUT, served).await.unwrap();
    let refused = refused.unwrap_err();
    assert!(matches!(refused, HttpError::OpenAddress(_)), "{refused:?}");
}

/// A handler that is never made.
enum Nobody {}

impl rmcp::ServerHandler for Nobody {}
