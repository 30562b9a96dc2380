//! Tokens: whose they are, and that they never appear in output.

use serde_json::json;

use crate::client::{Request, Session};
use crate::fixture::{Server, file, two};
use toolward_mcp::http::tokens;

#[tokio::test]
async fn a_call_without_a_known_token_is_not_made() {
    let two = two();
    let server = Server::with(&two.tokens);
    let call = Request::call("wait");

    let answer = call.send(server.address).await.is(401, "token-missing");
    let challenge = answer.header("www-authenticate");
    assert_eq!(challenge, Some("bearer realm=\"toolward\""));

    let token = format!("{}x", two.alice);
    let answer = call.clone().token(&token).send(server.address).await;
    let answer = answer.is(401, "token-unknown");
    assert!(
        answer.head.contains("error=\"invalid_token\""),
        "{answer:?}"
    );
    assert!(!answer.body.contains(&two.alice), "{answer:?}");

    for header in [
        format!("Basic {}", two.alice),
        two.alice.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {0} {0}", two.alice),
    ] {
        let request = call.clone().header("Authorization", &header);
        request.send(server.address).await.is(401, "token-missing");
    }
    let both = call.clone().token(&two.alice).token(&two.bob);
    both.send(server.address).await.is(401, "token-missing");
    let in_the_path = Request::new("GET", &format!("/mcp?access_token={}", two.alice));
    in_the_path
        .send(server.address)
        .await
        .is(401, "token-missing");

    assert_eq!(server.count(|seen| &seen.started), 0);
}

#[tokio::test]
async fn an_expired_token_opens_nothing() {
    let (secret, hash) = tokens::generate().unwrap();
    let text =
        format!("[[token]]\nname = \"carol\"\nhash = \"{hash}\"\nexpires = 2020-01-01T00:00:00Z\n");
    let server = Server::with(&file(&text));
    let call = Request::call("wait").token(secret.expose());
    call.send(server.address).await.is(401, "token-expired");
    assert_eq!(server.count(|seen| &seen.started), 0);
}

#[tokio::test]
async fn a_handler_sees_the_principal_and_never_the_token() {
    let two = two();
    let server = Server::with(&two.tokens);
    let call = Request::call("who").token(&two.alice);
    let call = call.header("Cookie", "session=secret");
    let call = call.header("Proxy-Authorization", "Basic secret");
    let answer = call.send(server.address).await.handled();
    assert!(answer.body.contains("principal=alice"), "{answer:?}");
    assert!(!answer.body.contains(&two.alice), "{answer:?}");
    assert!(!answer.body.contains("secret"), "{answer:?}");

    let session = Session::begin(server.address, &two.bob).await.unwrap();
    let answer = session.send(session.call(1, "who")).await.handled();
    assert!(answer.body.contains("principal=bob"), "{answer:?}");
    assert!(!answer.body.contains(&two.bob), "{answer:?}");
}

#[tokio::test]
async fn one_principal_at_its_limit_is_told_to_come_back_and_others_go_on() {
    let two = two();
    let server = Server::with(&two.tokens);
    let wait = Request::call("wait").token(&two.alice);
    let mut waiting = Vec::new();
    for count in 1..=2 {
        waiting.push(wait.begin(server.address).await);
        server.saw(|seen| &seen.started, count).await;
    }
    let answer = wait.send(server.address).await.is(429, "too-many-requests");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // Notifications that let waiting calls continue are accepted, and so are other principals.
    let session = json!({"jsonrpc":"2.0","method":"notifications/initialized"});
    let notification = Request::message(&session)
        .token(&two.alice)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "notifications/initialized");
    let answer = notification.send(server.address).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let other = Request::call("who").token(&two.bob);
    other.send(server.address).await.handled();
    assert_eq!(server.count(|seen| &seen.started), 2);

    server.seen.release.add_permits(3);
    for stream in waiting {
        let answer = crate::client::finish(stream).await.handled();
        assert!(answer.body.contains("waited"), "{answer:?}");
    }
    wait.send(server.address).await.handled();
}
