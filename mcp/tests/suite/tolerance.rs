//! Requests that break the protocol and are served anyway.

use serde_json::json;

use crate::client::{Request, Session};
use crate::fixture::{Server, open, two};

fn initialize() -> Request {
    Request::message(
        &json!({"jsonrpc":"2.0","id":0,"method":"initialize","params":{
        "protocolVersion":"2025-11-25","capabilities":{},
        "clientInfo":{"name":"test","version":"1"}}}),
    )
}

#[tokio::test]
async fn a_client_that_starts_over_may_still_name_its_former_session() {
    let server = Server::start(open());
    for version in ["2025-11-25", "2025-03-26", "1999-01-01"] {
        let answer = initialize()
            .header("Mcp-Session-Id", "0123456789abcdef")
            .header("MCP-Protocol-Version", version)
            .send(server.address)
            .await
            .handled();
        let session = answer.header("mcp-session-id").unwrap();
        assert_ne!(session, "0123456789abcdef");
    }
    // The newer era has no `initialize`.
    let newer = initialize().header("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(newer.send(server.address).await.status, 400);
    let routed = initialize()
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call");
    assert_eq!(routed.send(server.address).await.status, 400);
}

#[tokio::test]
async fn ranges_of_media_types_are_understood() {
    let server = Server::start(open());
    for accept in [
        "*/*",
        "application/*, text/*",
        "text/html;q=0.5, */*;q=0.1",
        "application/json, text/event-stream;q=0.9",
        "application/json, */*",
    ] {
        for request in [initialize(), Request::call("who")] {
            let request = request.without("Accept").header("Accept", accept);
            request.send(server.address).await.handled();
        }
    }
    initialize()
        .without("Accept")
        .send(server.address)
        .await
        .handled();
    for accept in ["text/html", "*/*;q=0", "application/json;q=0, */*"] {
        let request = initialize().without("Accept").header("Accept", accept);
        request.send(server.address).await.is(406, "not-acceptable");
    }
}

#[tokio::test]
async fn the_path_may_end_in_a_slash() {
    let server = Server::start(open());
    let answer = Request::call("who")
        .at("/mcp/")
        .send(server.address)
        .await
        .handled();
    assert!(answer.body.contains("principal="), "{answer:?}");
    let answer = Request::new("GET", "/mcp/x").send(server.address).await;
    answer.is(404, "path-unknown");
}

#[tokio::test]
async fn the_end_of_a_session_has_no_content() {
    let two = two();
    let server = Server::with(&two.tokens);
    let session = Session::begin(server.address, &two.alice).await.unwrap();
    let answer = session
        .send(session.request(Request::new("DELETE", "/mcp")))
        .await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
}

#[tokio::test]
async fn every_refusal_is_json() {
    let two = two();
    let server = Server::with(&two.tokens);
    let session = Session::begin(server.address, &two.alice).await.unwrap();
    let list = json!({"jsonrpc":"2.0","id":1,"method":"tools/list"});
    let with = |request: Request, version: &str| {
        request
            .token(&two.alice)
            .header("MCP-Protocol-Version", version)
    };
    for request in [
        with(Request::message(&list), "1999-01-01"),
        with(Request::message(&list), "2025-11-25"),
        with(Request::message(&list), "2026-07-28"),
        with(Request::new("GET", "/mcp"), "2026-07-28"),
        with(Request::new("GET", "/mcp"), "2025-11-25"),
        with(Request::new("GET", "/mcp"), "1999-01-01"),
        with(Request::new("DELETE", "/mcp"), "2026-07-28"),
        with(Request::new("DELETE", "/mcp"), "2025-11-25"),
        with(Request::new("PUT", "/mcp"), "2025-11-25"),
        with(
            Request::new("GET", "/mcp").header("Mcp-Session-Id", &session.id),
            "1999-01-01",
        ),
        Request::new("POST", "/healthz"),
        Request::new("DELETE", "/readyz"),
        Request::new("GET", "/elsewhere"),
    ] {
        let answer = request.send(server.address).await;
        assert!(answer.status >= 400, "{request:?} {answer:?}");
        let media_type = answer.header("content-type");
        assert_eq!(
            media_type,
            Some("application/json"),
            "{request:?} {answer:?}"
        );
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
        assert!(body["error"]["message"].is_string(), "{request:?} {body}");
    }
}
