//! Secrets on their way back: servers echo them, but guests must not see them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use toolward_egress::{Call, ResponseBody, SecretValues, Timeouts, ValueError};
use toolward_policy::{SecretBinding, SecretPosition};
use zeroize::Zeroizing;

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
    // The length would no longer be correct.
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

/// Each encoding is in the body, a header, and a trailer of one response.
#[tokio::test]
async fn encodings_that_vary_and_text_around_a_value_do_not_hide_it() {
    let inside = |text: &str| STANDARD.encode(text);
    for echo in [
        VALUE.replace('+', "%2b"),
        VALUE.replace('+', "\\u002B"),
        VALUE.replace('+', "\\\\u002B"),
        VALUE.replace('+', "&#x2B;").replace('/', "&sol;"),
        VALUE.replace('/', "%252f"),
        VALUE.bytes().map(|byte| format!("{byte:02X}")).collect(),
        inside(&format!("user:{VALUE}")),
        inside(&format!("a{VALUE}bc"))
            .replace('+', "-")
            .replace('/', "_"),
        inside(&format!("ab{VALUE}"))
            .replace('=', "%3D")
            .replace('+', "%2B"),
        inside(&inside(&format!("user:{VALUE}!"))),
    ] {
        let wire = format!(
            "HTTP/1.1 200 OK\r\nx-echo: {echo}\r\ntransfer-encoding: chunked\r\n\r\n\
             {:x}\r\n{echo}\r\n0\r\nx-sum: {echo}\r\n\r\n",
            echo.len()
        );
        let vault = Vault::replying(wire).await;
        let response = ask(&vault, &vault.call()).await;
        let header = response.headers()["x-echo"].clone();
        let body = response.into_body().collect().await.unwrap();
        let trailer = body.trailers().unwrap()["x-sum"].clone();
        for text in [header.as_bytes(), trailer.as_bytes(), &body.to_bytes()] {
            let text = String::from_utf8_lossy(text);
            assert!(text.contains("[secret]"), "{echo} is {text}");
            // Only the surrounding text is left (at most six bytes, twice in base64), and the
            // base64 characters that it shares with the value.
            assert!(text.len() <= "[secret]".len() + 20, "{echo} is {text}");
        }
    }
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
        // Another call may have sent the value.
        let plain = |url: String| vault.call().send(get(&url), Timeouts::default());
        assert_eq!(code(plain(vault.url("/")).await), "secret-response");
        assert_eq!(code(plain(vault.evil("/")).await), "sent", "{headers}");
    }
}

/// A server that answers with the `authorization` of the previous request.
async fn vault_that_remembers() -> Vault {
    let told = Arc::new(Mutex::new(String::new()));
    Vault::start(move |mut client, heard| {
        let told = Arc::clone(&told);
        async move {
            while let Some(request) = read_request(&mut client, &heard).await {
                let line = request.lines().find(|l| l.starts_with("authorization"));
                let now = line.unwrap_or_default().to_owned();
                let before = std::mem::replace(&mut *told.lock().unwrap(), now);
                let wire = reply("200 OK", &format!("x-before: {before}\r\n"), &before);
                client.write_all(wire.as_bytes()).await.unwrap();
                client.flush().await.unwrap();
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_value_that_another_call_sent_is_scrubbed() {
    let vault = vault_that_remembers().await;
    text(ask(&vault, &vault.call()).await).await.unwrap();
    let heard = vault.server.heard.last();
    assert!(heard.contains(VALUE), "{heard}");
    let call = vault.call();
    let own = with(get(&vault.url("/")), "accept-encoding", "gzip");
    let response = call.send(own, Timeouts::default()).await.unwrap();
    let expected = "authorization: Bearer [secret]";
    assert_eq!(response.headers()["x-before"], expected);
    assert_eq!(text(response).await.unwrap(), expected);
    let heard = vault.server.heard.last();
    assert!(heard.contains("accept-encoding: identity\r\n"), "{heard}");
}

#[tokio::test]
async fn no_part_is_asked_for_where_another_call_may_have_sent_a_value() {
    let vault = Vault::replying(ok("")).await;
    for name in ["range", "if-range"] {
        let part = |url: &str| with(get(url), name, "bytes=0-0");
        let call = vault.call();
        let sent = call.send(part(&vault.url("/")), Timeouts::default());
        assert_eq!(code(sent.await), "secret-range", "{name}");
        assert_eq!(vault.server.heard.connections(), 0);
    }
    let own = with(get(&vault.evil("/")), "range", "bytes=0-0");
    let sent = vault.call().send(own, Timeouts::default()).await;
    assert_eq!(code(sent), "sent");
}

#[tokio::test]
async fn a_secret_that_has_no_value_is_no_obstacle() {
    let wire = reply("206 Partial Content", "content-encoding: gzip\r\n", "abc");
    let vault = Vault::replying(wire).await;
    for values in [Values::of(&[]), Values::of(&[("token", "short")])] {
        let rules = vec![token("a.example", vault.server.port)];
        let call = vault.call_with(rules, values, limits());
        let own = with(get(&vault.url("/")), "range", "bytes=0-2");
        let own = with(own, "accept-encoding", "gzip");
        let response = call.send(own, Timeouts::default()).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "abc");
        let heard = vault.server.heard.last();
        assert!(heard.contains("accept-encoding: gzip\r\n"), "{heard}");
    }
}

#[tokio::test]
async fn two_values_of_one_request_are_both_scrubbed() {
    let other = "another-value-0123";
    let vault = Vault::replying(ok(&format!("{other} {VALUE}"))).await;
    let key = SecretBinding {
        position: SecretPosition::Header("x-api-key".to_owned()),
        ..token("a.example", vault.server.port).1
    };
    let rules = vec![
        token("a.example", vault.server.port),
        ("key".to_owned(), key),
    ];
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
    let frame = tokio::time::timeout(Duration::from_secs(30), body.frame()).await;
    let data = frame
        .expect("it is not held")
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert_eq!(data, "first");
}

/// Sends the first part of a response, and the rest, which is a value, once another request has
/// arrived.
async fn vault_that_waits(headers: &'static str) -> Vault {
    let arrived = Arc::new(tokio::sync::Notify::new());
    Vault::start(move |mut client, heard| {
        let arrived = Arc::clone(&arrived);
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

/// A secret that gets its value at the second request.
#[derive(Default)]
struct Late(AtomicBool);

impl SecretValues for Late {
    fn get(&self, _: &str) -> Result<Zeroizing<Vec<u8>>, ValueError> {
        if self.0.swap(true, Ordering::SeqCst) {
            return Ok(Zeroizing::new(VALUE.as_bytes().to_vec()));
        }
        Err(ValueError::new("not yet"))
    }
}

#[tokio::test]
async fn a_response_that_began_before_there_was_a_value_is_scrubbed_from_then_on() {
    let begin = async |vault: &Vault| {
        let rules = vec![token("a.example", vault.server.port)];
        let call = vault.call_with(rules, Arc::<Late>::default(), limits());
        let sent = call.send(get(&vault.url("/")), Timeouts::default());
        let early = sent.await.unwrap();
        ask(vault, &call).await;
        text(early).await
    };
    let vault = vault_that_waits("").await;
    assert_eq!(begin(&vault).await.unwrap(), "first [secret]");
    // A compressed response can't be scrubbed, and ends.
    let vault = vault_that_waits("content-encoding: gzip\r\n").await;
    assert_eq!(code(begin(&vault).await), "secret-response");
}
