//! Sessions of the older era: no one else can reach them, and their number is limited.

use std::time::Duration;

use serde_json::json;

use crate::client::{Request, Session, until};
use crate::fixture::{Server, open, two};
use toolward_mcp::http::{Authentication, Settings};

#[tokio::test]
async fn a_session_is_not_there_for_another_principal() {
    let two = two();
    let server = Server::with(&two.tokens);
    let session = Session::begin(server.address, &two.alice).await.unwrap();
    let mut waiting = session.call(1, "wait").begin(server.address).await;
    until(&mut waiting, "progress").await;

    let call = json!({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}});
    let cancel = json!({"jsonrpc":"2.0","method":"notifications/cancelled",
        "params":{"requestId":1}});
    let event = ("Last-Event-ID", "0/0");
    let asked = |id: &str| {
        let of = |request: Request| {
            request
                .header("Mcp-Session-Id", id)
                .header("MCP-Protocol-Version", "2025-11-25")
                .token(&two.bob)
        };
        let get = of(Request::new("GET", "/mcp").header("Accept", "text/event-stream"));
        [
            of(Request::message(&call)),
            of(Request::message(&cancel)),
            get.clone().header(event.0, event.1),
            get,
            of(Request::new("DELETE", "/mcp")),
        ]
    };
    let (foreign, missing) = (asked(&session.id), asked("0123456789abcdef"));
    for (foreign, missing) in foreign.iter().zip(&missing) {
        let foreign = foreign.send(server.address).await;
        let missing = missing.send(server.address).await;
        // The answers for another principal's session and for an unknown session are equal.
        assert_eq!(foreign.body, missing.body);
        foreign.is(404, "session-unknown");
        missing.is(404, "session-unknown");
    }
    assert_eq!(server.count(|seen| &seen.started), 1);
    assert_eq!(server.count(|seen| &seen.cancelled), 0);

    server.seen.release.add_permits(1);
    until(&mut waiting, "waited").await;
}

#[tokio::test]
async fn a_session_ends_when_its_owner_ends_it() {
    let two = two();
    let server = Server::with(&two.tokens);
    let session = Session::begin(server.address, &two.alice).await.unwrap();
    let _waiting = session.call(1, "wait").begin(server.address).await;
    server.saw(|seen| &seen.started, 1).await;
    let ended = session.request(Request::new("DELETE", "/mcp"));
    assert_eq!(session.send(ended).await.status, 204);
    server.saw(|seen| &seen.cancelled, 1).await;
    assert_eq!(session.send(session.call(2, "who")).await.status, 404);
}

#[tokio::test]
async fn the_id_of_a_request_that_is_open_or_was_cancelled_is_refused() {
    let server = Server::start(open());
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut first = session.call(1, "wait").begin(server.address).await;
    until(&mut first, "progress").await;
    let answer = session.send(session.call(1, "who")).await;
    answer.is(200, "id-in-use");
    server.seen.release.add_permits(1);
    until(&mut first, "waited").await;
    // The id of an answered request is free again.
    let answer = session.send(session.call(1, "who")).await;
    assert!(answer.handled().body.contains("principal="));

    let mut cancelled = session.call(2, "wait").begin(server.address).await;
    until(&mut cancelled, "progress").await;
    let cancel = json!({"jsonrpc":"2.0","method":"notifications/cancelled",
        "params":{"requestId":2}});
    assert_eq!(session.send(session.message(&cancel)).await.status, 202);
    server.saw(|seen| &seen.cancelled, 1).await;
    let answer = session.send(session.call(2, "who")).await;
    answer.is(200, "id-in-use");

    let long = json!({"jsonrpc":"2.0","id":"x".repeat(257),"method":"ping"});
    let answer = session.send(session.message(&long)).await;
    answer.is(200, "no-message");
    let answer = session.send(session.call(3, "who")).await;
    assert!(answer.handled().body.contains("principal="));
}

#[tokio::test]
async fn the_session_that_was_idle_longest_makes_room_and_a_busy_one_stays() {
    let two = two();
    let mut settings = Settings::new(Authentication::Required(std::sync::Arc::new(
        two.tokens.clone(),
    )));
    settings.limits.sessions = 2;
    let server = Server::start(settings);
    let begin = || Session::begin(server.address, &two.alice);
    let busy = begin().await.unwrap();
    let mut waiting = busy.call(1, "wait").begin(server.address).await;
    until(&mut waiting, "progress").await;
    let idle = begin().await.unwrap();
    let next = begin().await.unwrap();
    assert_eq!(idle.send(idle.call(1, "who")).await.status, 404);
    next.send(next.call(1, "who")).await.handled();

    let mut other = next.call(2, "wait").begin(server.address).await;
    until(&mut other, "progress").await;
    let refused = begin().await.unwrap_err();
    refused.is(429, "too-many-requests");
    Session::begin(server.address, &two.bob).await.unwrap();

    server.seen.release.add_permits(2);
    until(&mut waiting, "waited").await;
    until(&mut other, "waited").await;
}

#[tokio::test]
async fn where_all_sessions_are_taken_nobody_is_kept_from_having_one() {
    let two = two();
    let mut settings = Settings::new(Authentication::Required(std::sync::Arc::new(
        two.tokens.clone(),
    )));
    settings.limits.sessions_in_all = 2;
    let server = Server::start(settings);
    let address = server.address;
    let begin = |token: String| async move { Session::begin(address, &token).await };
    let first = begin(two.alice.clone()).await.unwrap();
    let second = begin(two.alice.clone()).await.unwrap();
    let bobs = begin(two.bob.clone()).await.unwrap();
    assert_eq!(first.send(first.call(1, "who")).await.status, 404);
    // The session of the same principal that was idle longest makes room.
    let third = begin(two.alice.clone()).await.unwrap();
    assert_eq!(second.send(second.call(1, "who")).await.status, 404);
    for session in [&bobs, &third] {
        session.send(session.call(1, "who")).await.handled();
    }
}

#[tokio::test]
async fn an_idle_session_ends_and_one_that_listens_stays() {
    let two = two();
    let mut settings = Settings::new(Authentication::Required(std::sync::Arc::new(
        two.tokens.clone(),
    )));
    settings.limits.session_idle = Duration::from_millis(300);
    let server = Server::start(settings);
    let listens = Session::begin(server.address, &two.alice).await.unwrap();
    let mut stream = listens.listen().begin(server.address).await;
    until(&mut stream, "text/event-stream").await;
    let idle = Session::begin(server.address, &two.alice).await.unwrap();
    tokio::time::sleep(Duration::from_millis(3000)).await;
    assert_eq!(idle.send(idle.call(1, "who")).await.status, 404);
    listens.send(listens.call(1, "who")).await.handled();
}
