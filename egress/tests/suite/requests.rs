//! Tests the allowed parts of a request: host, port, scheme, method, headers, target.

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::Empty;
use toolward_egress::{Timeouts, target};
use toolward_policy::HostGrant;

use crate::server::{Server, ok};
use crate::world::{
    Chunks, call, code, get, local, on_terms, request, send_get, settle, text, writing,
};

/// Sends a request under a rule for `a.example`. Returns its code, and the number of connections
/// that were seen.
async fn refused(rule: impl Fn(u16) -> HostGrant, url: &str) -> (&'static str, usize) {
    let server = Server::replying(ok("hello")).await;
    let call = call(vec![rule(server.port)]);
    let url = url.replace("PORT", &server.port.to_string());
    let sent = match target::uri(&url) {
        Ok(uri) => call.send(get(&uri.to_string()), Timeouts::default()).await,
        Err(denied) => Err(denied.into()),
    };
    let code = code(sent);
    settle().await;
    (code, server.heard.connections())
}

fn reading(port: u16) -> HostGrant {
    local("a.example", port)
}

#[tokio::test]
async fn a_granted_host_is_reached_by_every_way_to_write_it() {
    for url in [
        "http://a.example:PORT/",
        "http://A.EXAMPLE:PORT/",
        "http://a.example.:PORT/",
        "HTTP://a。example:PORT/",
        "http://ａ.example:PORT/",
    ] {
        assert_eq!(refused(reading, url).await, ("sent", 1), "{url}");
    }
}

#[tokio::test]
async fn what_is_not_granted_is_never_connected_to() {
    for (url, code) in [
        ("http://b.example:PORT/", "host-not-granted"),
        ("http://x.a.example:PORT/", "host-not-granted"),
        ("http://a.example.evil.example:PORT/", "host-not-granted"),
        ("http://аexample:PORT/", "host-not-granted"),
        ("http://127.0.0.1:PORT/", "host-not-granted"),
        ("http://localhost:PORT/", "host-not-granted"),
        ("http://[::1]:PORT/", "host-not-granted"),
        ("http://a.example/", "host-not-granted"),
        ("http://a.example:1/", "host-not-granted"),
        ("http://a.example@evil.example:PORT/", "authority-userinfo"),
        ("http://user:word@a.example:PORT/", "authority-userinfo"),
        ("http://a.example:PORT@evil.example/", "authority-userinfo"),
        ("http://:PORT/", "authority-host"),
        ("http://a..example:PORT/", "authority-host"),
        ("http://2130706433:PORT/", "authority-address-form"),
        ("http://0177.0.0.1:PORT/", "authority-address-form"),
        ("http://0x7f.1:PORT/", "authority-address-form"),
        ("http://127.1:PORT/", "authority-address-form"),
        ("http://[::ffff:127.0.0.1]:PORT/", "authority-address-form"),
        ("http://[fe80::1%25lo]:PORT/", "authority-address-form"),
        ("ftp://a.example:PORT/", "scheme-unknown"),
        ("http://a.example:PORT/#x", "target-invalid"),
        ("http://a.example:PORT//b.example/", "target-invalid"),
    ] {
        assert_eq!(refused(reading, url).await, (code, 0), "{url}");
    }
}

#[tokio::test]
async fn the_uri_type_cannot_carry_what_the_text_may_not() {
    let server = Server::replying(ok("hello")).await;
    let call = call(vec![local("a.example", server.port)]);
    for (url, expected) in [
        (
            format!("http://u@a.example:{}/", server.port),
            "authority-userinfo",
        ),
        ("http://a.example:/".to_owned(), "authority-port"),
        ("/relative".to_owned(), "uri-not-absolute"),
        ("a.example".to_owned(), "uri-not-absolute"),
        ("ws://a.example/".to_owned(), "scheme-unknown"),
    ] {
        assert_eq!(code(send_get(&call, &url).await), expected, "{url}");
    }
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn a_wildcard_does_not_grant_private_addresses() {
    let any = |port| HostGrant {
        host: toolward_contract::capability::HostPattern::parse(&format!("*:{port}")).unwrap(),
        ..on_terms(local("a.example", port), |terms| terms.addresses.clear())
    };
    for url in [
        "http://127.0.0.1:PORT/",
        "http://a.example:PORT/",
        "http://[::1]:PORT/",
        "http://0.0.0.0:PORT/",
    ] {
        assert_eq!(refused(any, url).await, ("address-not-granted", 0), "{url}");
    }
}

#[tokio::test]
async fn plain_http_is_refused_where_only_https_is_granted() {
    let https = |port| {
        on_terms(local("a.example", port), |terms| {
            terms.plain_http = false;
        })
    };
    let sent = refused(https, "http://a.example:PORT/").await;
    assert_eq!(sent, ("plain-http-not-granted", 0));
}

#[tokio::test]
async fn a_read_only_host_takes_no_method_that_writes() {
    let server = Server::replying(ok("")).await;
    let url = format!("http://a.example:{}/", server.port);
    let reading = call(vec![local("a.example", server.port)]);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let sent = reading
            .send(request(method, &url, ""), Timeouts::default())
            .await;
        assert_eq!(code(sent), "method-not-granted");
    }
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        let sent = reading
            .send(request(method, &url, ""), Timeouts::default())
            .await;
        assert_eq!(code(sent), "sent");
    }
}

#[tokio::test]
async fn tunnels_traces_and_unknown_methods_are_never_sent() {
    let server = Server::replying(ok("")).await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![writing("a.example", server.port)]);
    for method in ["CONNECT", "TRACE", "TRACK", "PROPFIND", "get", "PRI"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let sent = call
            .send(request(method, &url, ""), Timeouts::default())
            .await;
        assert_eq!(code(sent), "method-forbidden");
    }
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn headers_that_smuggle_or_impersonate_are_never_sent() {
    let server = Server::replying(ok("")).await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![writing("a.example", server.port)]);
    for (name, value, expected) in [
        ("host", "evil.example", "header-forbidden"),
        ("connection", "keep-alive", "header-forbidden"),
        ("transfer-encoding", "chunked", "header-forbidden"),
        ("te", "trailers", "header-forbidden"),
        ("upgrade", "websocket", "header-forbidden"),
        ("expect", "100-continue", "header-forbidden"),
        ("proxy-authorization", "Basic YQ==", "header-forbidden"),
        ("x-forwarded-for", "127.0.0.1", "header-forbidden"),
        ("x-http-method-override", "DELETE", "header-forbidden"),
        ("content_length", "0", "header-forbidden"),
        ("content-length", "5", "content-length"),
        ("content-length", "1, 1", "content-length"),
        (
            "authorization",
            "Bearer own",
            "credential-header-not-granted",
        ),
        ("cookie", "a=b", "credential-header-not-granted"),
        ("x-name", "\u{e9}", "header-value"),
        ("x-name", " a", "header-value"),
    ] {
        let mut own = request(Method::POST, &url, "");
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        own.headers_mut().append(name, value);
        assert_eq!(
            code(call.send(own, Timeouts::default()).await),
            expected,
            "{name}"
        );
    }
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    // Line ends are not even a valid header value.
    assert!(HeaderValue::from_bytes(b"a\r\nhost: evil.example").is_err());
}

#[tokio::test]
async fn own_credentials_pass_where_policy_grants_the_header() {
    let server = Server::replying(ok("")).await;
    let rule = on_terms(local("a.example", server.port), |terms| {
        terms.guest_headers = vec!["authorization".to_owned()];
    });
    let call = call(vec![rule]);
    let url = format!("http://a.example:{}/", server.port);
    let with = |name: &'static str| {
        let mut own = get(&url);
        own.headers_mut()
            .append(name, HeaderValue::from_static("Basic YTpi"));
        call.send(own, Timeouts::default())
    };
    assert_eq!(code(with("cookie").await), "credential-header-not-granted");
    assert_eq!(code(with("authorization").await), "sent");
    assert!(server.heard.last().contains("authorization: Basic YTpi"));
    assert_eq!(server.heard.requests().len(), 1);
}

#[tokio::test]
async fn a_reading_request_has_no_body() {
    let server = Server::replying(ok("")).await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![local("a.example", server.port)]);
    let sent = call
        .send(request(Method::GET, &url, "{}"), Timeouts::default())
        .await;
    assert_eq!(code(sent), "body-on-safe-method");
    // The body's length may be unknown, since the body is read before anything is sent.
    let stream = Chunks::of(&["x"]);
    let streamed = Request::get(&url).body(stream).unwrap();
    let sent = call.send(streamed, Timeouts::default()).await;
    assert_eq!(code(sent), "body-on-safe-method");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    let streamed = Request::get(&url).body(Chunks::of(&[])).unwrap();
    assert_eq!(code(call.send(streamed, Timeouts::default()).await), "sent");
    assert!(!server.heard.last().contains("transfer-encoding"));
}

#[tokio::test]
async fn several_rules_are_not_put_together() {
    let server = Server::replying(ok("")).await;
    let plain = local("a.example", server.port);
    let unsafe_only = on_terms(writing("a.example", server.port), |terms| {
        terms.plain_http = false;
    });
    let no_address = on_terms(writing("a.example", server.port), |terms| {
        terms.addresses.clear()
    });
    let call = call(vec![plain, unsafe_only, no_address]);
    let url = format!("http://a.example:{}/", server.port);
    let sent = call
        .send(request(Method::POST, &url, "x"), Timeouts::default())
        .await;
    assert_eq!(code(sent), "address-not-granted");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    // A connection that was opened for reading is not used for writing either.
    assert_eq!(
        text(send_get(&call, &url).await.unwrap()).await.unwrap(),
        ""
    );
    let sent = call
        .send(request(Method::POST, &url, "x"), Timeouts::default())
        .await;
    assert_eq!(code(sent), "address-not-granted");
    assert_eq!(server.heard.requests().len(), 1);
}

#[tokio::test]
async fn an_empty_route_reaches_nothing() {
    let server = Server::replying(ok("")).await;
    let call = call(Vec::new());
    let url = format!("http://a.example:{}/", server.port);
    assert_eq!(code(send_get(&call, &url).await), "host-not-granted");
    let empty: Empty<Bytes> = Empty::new();
    let own = Request::options(&url).body(empty).unwrap();
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "host-not-granted"
    );
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}
