//! Tests the bytes on the wire, and the parts of a response that reach the guest.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use toolward_egress::Timeouts;

use crate::server::{Server, ok, read_request, reply};
use crate::world::{Chunks, call, code, get, local, request, send_get, settle, text, writing};

#[tokio::test]
async fn a_request_is_in_origin_form_and_names_its_host() {
    let server = Server::replying(ok("")).await;
    let call = call(vec![writing("a.example", server.port)]);
    let url = format!("http://A.Example.:{}/a/b?c=d", server.port);
    let mut own = request(Method::POST, &url, "body");
    own.headers_mut()
        .append("x-name", HeaderValue::from_static("value"));
    assert_eq!(code(call.send(own, Timeouts::default()).await), "sent");
    let heard = server.heard.last();
    assert!(heard.starts_with("POST /a/b?c=d HTTP/1.1\r\n"), "{heard}");
    assert!(heard.contains(&format!("host: a.example:{}\r\n", server.port)));
    assert!(heard.contains("x-name: value\r\n"));
    assert!(heard.contains("content-length: 4\r\n"));
    assert!(heard.ends_with("\r\n\r\nbody"));
    // No more headers are added.
    assert_eq!(heard.matches("\r\n").count(), 5, "{heard}");
}

#[tokio::test]
async fn a_body_of_unknown_length_is_sent_in_chunks() {
    let server = Server::replying(ok("")).await;
    let call = call(vec![writing("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    let own = Request::post(&url)
        .body(Chunks::of(&["ab", "", "cd"]))
        .unwrap();
    assert_eq!(code(call.send(own, Timeouts::default()).await), "sent");
    let heard = server.heard.last();
    assert!(heard.contains("transfer-encoding: chunked\r\n"), "{heard}");
    assert!(!heard.contains("content-length"));
    assert!(
        heard.ends_with("2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n"),
        "{heard}"
    );
}

#[tokio::test]
async fn a_declared_length_holds_for_the_body() {
    let server = Server::replying(ok("")).await;
    let call = call(vec![writing("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    for (declared, chunks, expected) in [
        ("4", &["ab", "cd"][..], "sent"),
        ("3", &["ab", "cd"], "content-length"),
        ("2", &["ab", "cd"], "content-length"),
        ("5", &["ab", "cd"], "content-length"),
        ("0", &["a"], "content-length"),
    ] {
        let own = Request::post(&url)
            .header("content-length", declared)
            .body(Chunks::of(chunks))
            .unwrap();
        let sent = call.send(own, Timeouts::default()).await;
        assert_eq!(code(sent), expected, "{declared} {chunks:?}");
    }
    settle().await;
    // Only one request arrived completely.
    assert_eq!(server.heard.requests().len(), 1);
}

#[tokio::test]
async fn trailers_of_a_request_are_refused() {
    let server = Server::replying(ok("")).await;
    let call = call(vec![writing("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    let mut trailers = HeaderMap::new();
    trailers.append("authorization", HeaderValue::from_static("a"));
    let body = Chunks::of(&["a"]).with_trailers(trailers);
    let own = Request::post(&url).body(body).unwrap();
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "request-trailers"
    );
    settle().await;
    assert_eq!(server.heard.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_handed_over_and_not_followed() {
    let target = Server::replying(ok("private")).await;
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let headers = format!("location: http://127.0.0.1:{}/\r\n", target.port);
        let server = Server::replying(reply(status, &headers, "")).await;
        let call = call(vec![local("a.example", server.port)]);
        let url = format!("http://a.example:{}/", server.port);
        let response = send_get(&call, &url).await.unwrap();
        assert!(response.status().is_redirection());
        assert!(response.headers().contains_key("location"));
        assert_eq!(server.heard.requests().len(), 1);
    }
    settle().await;
    assert_eq!(target.heard.connections(), 0);
}

#[tokio::test]
async fn headers_of_the_connection_stay_with_the_host() {
    let headers = "connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\
        proxy-authenticate: Basic\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n\
        www-authenticate: Basic\r\nx-name: value\r\n";
    let server = Server::replying(reply("401 Unauthorized", headers, "no")).await;
    let call = call(vec![local("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    let response = send_get(&call, &url).await.unwrap();
    let mut names: Vec<&str> = response
        .headers()
        .keys()
        .map(|name| name.as_str())
        .collect();
    names.sort_unstable();
    let expected = ["content-length", "set-cookie", "www-authenticate", "x-name"];
    assert_eq!(names, expected);
    assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
    // Cookies are not kept.
    drop(text(response).await);
    drop(send_get(&call, &url).await);
    assert!(!server.heard.last().contains("cookie"));
}

#[tokio::test]
async fn bodies_are_not_decompressed_and_trailers_pass() {
    let wire = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\
        trailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 1\r\nconnection: x\r\n\r\n";
    let server = Server::replying(wire).await;
    let call = call(vec![local("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    let response = send_get(&call, &url).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let body = response.into_body().collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap();
    assert_eq!(body.to_bytes(), Bytes::from_static(b"abc"));
    assert_eq!(trailers.len(), 1);
    assert_eq!(trailers["x-sum"], "1");
}

#[tokio::test]
async fn what_is_not_plain_http_1_is_an_error() {
    for wire in [
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\na : b\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        "hello\r\n\r\n",
    ] {
        let server = Server::replying(wire).await;
        let call = call(vec![local("a.example", server.port)]);
        let url = format!("http://a.example:{}/", server.port);
        assert_eq!(
            code(send_get(&call, &url).await),
            "http-protocol",
            "{wire:?}"
        );
    }
}

#[tokio::test]
async fn a_response_that_ends_early_is_an_error() {
    for wire in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc",
    ] {
        let server = Server::start(None, move |mut client, heard| async move {
            read_request(&mut client, &heard).await;
            client.write_all(wire.as_bytes()).await.unwrap();
        })
        .await;
        let call = call(vec![local("a.example", server.port)]);
        let url = format!("http://a.example:{}/", server.port);
        let response = send_get(&call, &url).await.unwrap();
        assert_eq!(code(text(response).await), "terminated", "{wire:?}");
    }
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        client.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
    })
    .await;
    let call = call(vec![local("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call, &url).await), "terminated");
}

#[tokio::test]
async fn a_head_response_tells_a_length_and_has_no_body() {
    let server = Server::start(None, |mut client, heard| async move {
        while read_request(&mut client, &heard).await.is_some() {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
            client.write_all(head).await.unwrap();
        }
    })
    .await;
    let call = call(vec![local("a.example", server.port)]);
    let url = format!("http://a.example:{}/", server.port);
    let own = request(Method::HEAD, &url, "");
    let response = call.send(own, Timeouts::default()).await.unwrap();
    assert_eq!(response.headers()["content-length"], "99999999999");
    assert_eq!(text(response).await.unwrap(), "");
    assert_eq!(
        code(call.send(get(&url), Timeouts::default()).await),
        "response-body-bytes"
    );
}
