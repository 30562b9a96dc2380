//! Secrets on their way back: servers echo them, and guests do not see them.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use toolward_egress::{Call, ResponseBody, SecretRule, Timeouts};

use crate::secrets::{VALUE, Vault, with};
use crate::server::{ok, read_request, reply};
use crate::world::{Values, code, get, limits, text, token};

async fn ask(vault: &Vault, call: &Call) -> http::Response<ResponseBody> {
    let own = vault.bearer(call, "/");
    call.send(own, Timeouts::default()).await.unwrap()
}

#[tokio::test]
async fn an_echoed_value_does_not_reach_the_guest() {
    let body = format!("{{\"token\": \"{VALUE}\", \"again\": \"{VALUE}{VALUE}\"}}");
    let vault = Vault::replying(ok(&body)).await;
    let response = ask(&vault, &vault.call()).await;
    // The length would no longer be right.
    assert!(!response.headers().contains_key("content-length"));
    let text = text(response).await.unwrap();
    assert_eq!(
        text,
        "{\"token\": \"[secret]\", \"again\": \"[secret][secret]\"}"
    );
}

#[tokio::test]
async fn an_echo_in_headers_and_trailers_does_not_either() {
    let wire = format!(
        "HTTP/1.1 200 {VALUE}\r\nx-echo: a {VALUE} b\r\nlocation: https://a.example/?t={VALUE}\r\n\
         set-cookie: t={VALUE}\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: {VALUE}\r\n\r\n"
    );
    let vault = Vault::replying(wire).await;
    let response = ask(&vault, &vault.call()).await;
    assert!(!format!("{response:?}").contains(VALUE));
    assert_eq!(response.headers()["x-echo"], "a [secret] b");
    assert_eq!(
        response.headers()["location"],
        "https://a.example/?t=[secret]"
    );
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "[secret]");
}

#[tokio::test]
async fn a_value_as_the_name_of_a_header_is_dropped() {
    let rule = |port| token("a.example", port);
    let value = "Abcdefgh-0123";
    let wire = reply("200 OK", &format!("{value}: 1\r\nx-{value}-y: 2\r\n"), "");
    let vault = Vault::replying(wire).await;
    let rules = vec![rule(vault.server.port)];
    let call = vault.call_with(rules, Values::of(&[("token", value)]), limits());
    let response = ask(&vault, &call).await;
    assert!(response.headers().is_empty(), "{response:?}");
}

#[tokio::test]
async fn the_chunks_of_a_server_do_not_matter() {
    let vault = Vault::start(|mut client, heard| async move {
        while read_request(&mut client, &heard).await.is_some() {
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            client.write_all(head).await.unwrap();
            let body = format!("a{VALUE}b{}c{VALUE}", VALUE.split_at(VALUE.len() - 1).0);
            for byte in body.bytes() {
                let chunk = format!("1\r\n{}\r\n", char::from(byte));
                client.write_all(chunk.as_bytes()).await.unwrap();
                client.flush().await.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            client.write_all(b"0\r\n\r\n").await.unwrap();
            client.flush().await.unwrap();
        }
    })
    .await;
    let text = text(ask(&vault, &vault.call()).await).await.unwrap();
    let (almost, _) = VALUE.split_at(VALUE.len() - 1);
    assert_eq!(text, format!("a[secret]b{almost}c[secret]"));
}

#[tokio::test]
async fn common_encodings_of_a_value_are_known() {
    let percent = VALUE.replace('/', "%2F").replace('+', "%2B");
    let json = VALUE.replace('/', "\\/");
    let body = format!("{percent} {} {json}", percent.to_ascii_lowercase());
    let vault = Vault::replying(ok(&body)).await;
    let text = text(ask(&vault, &vault.call()).await).await.unwrap();
    assert_eq!(text, "[secret] [secret] [secret]");
}

#[tokio::test]
async fn a_response_that_could_hide_a_value_is_refused() {
    for (status, headers) in [
        ("200 OK", "content-encoding: gzip\r\n"),
        (
            "200 OK",
            "content-encoding: identity\r\ncontent-encoding: br\r\n",
        ),
        ("200 OK", "content-encoding: identity, gzip\r\n"),
        ("206 Partial Content", "content-range: bytes 0-3/9\r\n"),
        ("200 OK", "content-range: bytes 0-3/9\r\n"),
    ] {
        let vault = Vault::replying(reply(status, headers, "abc")).await;
        let call = vault.call();
        let own = vault.bearer(&call, "/");
        let sent = call.send(own, Timeouts::default()).await;
        assert_eq!(code(sent), "secret-response", "{headers}");
        // Without a secret it passes.
        let call = vault.call();
        let sent = call.send(get(&vault.url("/")), Timeouts::default()).await;
        assert_eq!(code(sent), "sent", "{headers}");
    }
}

#[tokio::test]
async fn a_value_that_was_sent_is_scrubbed_from_later_responses_too() {
    let vault = Vault::replying(ok(VALUE)).await;
    let call = vault.call();
    // Before it was sent, the text is only text.
    let before = call
        .send(get(&vault.url("/")), Timeouts::default())
        .await
        .unwrap();
    assert_eq!(text(before).await.unwrap(), VALUE);
    text(ask(&vault, &call).await).await.unwrap();
    let after = call
        .send(get(&vault.url("/")), Timeouts::default())
        .await
        .unwrap();
    assert_eq!(text(after).await.unwrap(), "[secret]");
    assert!(
        vault
            .server
            .heard
            .last()
            .contains("accept-encoding: identity")
    );
}

#[tokio::test]
async fn two_values_of_one_request_are_both_scrubbed() {
    let other = "another-value-0123";
    let vault = Vault::replying(ok(&format!("{other} {VALUE}"))).await;
    let key = SecretRule {
        slug: "key".to_owned(),
        header: "x-api-key".to_owned(),
        ..token("a.example", vault.server.port)
    };
    let rules = vec![token("a.example", vault.server.port), key];
    let values = Values::of(&[("token", VALUE), ("key", other)]);
    let call = vault.call_with(rules, values, limits());
    let mark = call.placeholder("key").unwrap();
    let own = with(vault.bearer(&call, "/"), "x-api-key", &mark);
    let response = call.send(own, Timeouts::default()).await.unwrap();
    assert!(vault.server.heard.last().contains(other));
    assert_eq!(text(response).await.unwrap(), "[secret] [secret]");
}

#[tokio::test]
async fn an_answer_before_its_end_is_passed_on_while_it_comes() {
    let vault = Vault::start(|mut client, heard| async move {
        read_request(&mut client, &heard).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nfirst";
        client.write_all(head).await.unwrap();
        client.flush().await.unwrap();
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let mut body = ask(&vault, &vault.call()).await.into_body();
    let frame = tokio::time::timeout(Duration::from_secs(2), body.frame()).await;
    let data = frame
        .expect("it is not held")
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert_eq!(data, "first");
}

/// Sends the first part of a response, and the rest, a value, when another
/// request has come.
async fn vault_that_waits(headers: &'static str) -> Vault {
    let arrived = std::sync::Arc::new(tokio::sync::Notify::new());
    Vault::start(move |mut client, heard| {
        let arrived = std::sync::Arc::clone(&arrived);
        async move {
            let request = read_request(&mut client, &heard).await.unwrap_or_default();
            if request.contains("authorization") {
                client.write_all(ok("").as_bytes()).await.unwrap();
                client.flush().await.unwrap();
                arrived.notify_one();
            } else {
                let head = format!("HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\nfirst ");
                client.write_all(head.as_bytes()).await.unwrap();
                client.flush().await.unwrap();
                arrived.notified().await;
                client.write_all(VALUE.as_bytes()).await.unwrap();
            }
            let _ = client.shutdown().await;
        }
    })
    .await
}

#[tokio::test]
async fn a_response_that_began_before_a_value_was_sent_is_scrubbed_from_then_on() {
    let vault = vault_that_waits("").await;
    let call = vault.call();
    let sent = call.send(get(&vault.url("/")), Timeouts::default());
    let early = sent.await.unwrap();
    ask(&vault, &call).await;
    assert_eq!(text(early).await.unwrap(), "first [secret]");
    // What is compressed cannot be, and ends.
    let vault = vault_that_waits("content-encoding: gzip\r\n").await;
    let call = vault.call();
    let sent = call.send(get(&vault.url("/")), Timeouts::default());
    let early = sent.await.unwrap();
    ask(&vault, &call).await;
    assert_eq!(code(text(early).await), "secret-response");
}
