//! Tests the form of a request: methods, paths, headers, credentials.

use serde_json::json;

use super::{http, reading, url, writing};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn headers_can_not_smuggle_a_second_request() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for value in [
        "a\r\nx-injected: 1",
        "a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n",
        "a\nx-injected: 1",
        "a\u{0}b",
    ] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [["x-test", value]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{value:?}: {got}");
    }
    for seen in server.seen() {
        assert!(
            !seen.contains("injected") && !seen.contains("smuggled"),
            "{seen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn framing_headers_and_host_are_the_hosts_own() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    for (name, value) in [
        ("host", "internal.test"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-secret"),
        ("upgrade", "websocket"),
        ("proxy-authorization", "Basic eDp5"),
        ("te", "trailers"),
        ("expect", "100-continue"),
    ] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [[name, value]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    let wrong = json!({
        "url": url(&server, "/"), "method": "POST", "body": "0123456789",
        "headers": [["content-length", "3"]],
    });
    let _ = http(&host, wrong).await;
    for seen in server.seen() {
        assert!(
            !seen.to_ascii_lowercase().contains("internal.test"),
            "{seen}"
        );
        assert!(
            !seen.contains("0123456789"),
            "a body past its length: {seen}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_other_servers_read_otherwise_are_refused() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for path in [
        "http://internal.test/",
        "//internal.test/x",
        "*",
        "/a b",
        "/a\r\nx: y",
    ] {
        let request = json!({
            "scheme": "http",
            "authority": format!("api.test:{}", server.port()),
            "path": path,
        });
        let got = http(&host, request).await;
        assert!(got["err"].is_string(), "{path:?}: {got}");
        server.assert_untouched(path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_safe_methods_pass_where_the_network_may_only_be_read() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE", "PROPFIND", "get",
    ] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert!(got["err"].is_string(), "{method}: {got}");
    }
    server.assert_untouched("unsafe methods");
    for method in ["GET", "HEAD", "OPTIONS"] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert_eq!(got["ok"]["status"], json!(200), "{method}: {got}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_and_trace_never_pass() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    for method in ["CONNECT", "TRACE", "PROPFIND"] {
        let got = http(&host, json!({"url": url(&server, "/"), "method": method})).await;
        assert!(got["err"].is_string(), "{method}: {got}");
    }
    server.assert_untouched("connect and trace");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_guests_own_are_not_sent() {
    let server = Server::saying("fine");
    let (_bundle, host) = reading(&server);
    for name in ["authorization", "cookie"] {
        let got = http(
            &host,
            json!({"url": url(&server, "/"), "headers": [[name, "stolen"]]}),
        )
        .await;
        assert!(got["err"].is_string(), "{name}: {got}");
    }
    server.assert_untouched("credentials");
}
