//! Limits on size, duration and the number of requests at once.

use serde_json::json;

use super::{http, reading, url, writing};
use crate::server::{Server, ok, to_loopback};
use crate::world::{Bundle, Guest, call, error, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_response_body_over_the_limit_is_cut_off() {
    let server = Server::start(|_| {
        let mut answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        answer.resize(20 << 20, b'x');
        Some(answer)
    });
    let (_bundle, host) = reading(&server);
    let got = http(&host, json!({"url": url(&server, "/"), "show": 10})).await;
    assert_ne!(got["ok"]["end"], json!("closed"), "{got}");
    assert!(
        got["ok"]["bytes"].as_u64().unwrap_or(0) <= 16 << 20,
        "{got}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_body_over_the_limit_is_not_sent_whole() {
    let server = Server::saying("fine");
    let (_bundle, host) = writing(&server);
    let request = json!({"url": url(&server, "/"), "method": "POST", "body_bytes": 17 << 20});
    let mut input = request;
    input["do"] = json!("http");
    let reply = call(&host, "hostile.net", input).await;
    if let Ok(output) = reply.result {
        assert!(
            output.structured["value"]["err"].is_string(),
            "{}",
            output.structured
        );
    }
    assert!(server.seen().iter().all(|seen| seen.len() < 17 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_ends_at_the_deadline() {
    let server = Server::start(|_| None);
    let host_name = format!("api.test:{}", server.port());
    let bundle = Bundle::of(
        "hostile.net",
        Guest::Net,
        &format!("timeout_ms: 400\nrequires:\n  network: [\"{host_name}\"]\n"),
        &format!("network:\n  egress: [\"{host_name}\"]\n"),
    );
    let host = bundle
        .builder(&format!(
            "[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"network:{host_name}\"]\n\
             plain_http = true\naddresses = [\"127.0.0.0/8\"]\n"
        ))
        .transport(to_loopback())
        .build()
        .unwrap();
    let _ = host.prepare().await;
    let started = std::time::Instant::now();
    let error = error(
        &host,
        "hostile.net",
        json!({"do": "http", "url": url(&server, "/")}),
    )
    .await;
    assert!(started.elapsed().as_secs() < 30);
    assert_eq!(error.code.as_str(), "timeout", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_once_are_limited() {
    let server = Server::start(|_| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        Some(ok("late"))
    });
    let (_bundle, host) = reading(&server);
    let input = json!({
        "do": "http-parallel", "n": 100, "hold_ms": 0, "request": {"url": url(&server, "/")},
    });
    let tally = value(&host, "hostile.net", input).await;
    assert!(
        server.connections() <= 16,
        "{}: {tally}",
        server.connections()
    );
    assert!(!server.seen().is_empty(), "{tally}");
}
