//! Requests that are too large, too slow, too many, or not requests at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolward_host::{Host, Limits};
use toolward_mcp::http::{Authentication, Settings};

use crate::client::{Answer, Request, TEST_TIMEOUT, finish, meta, rest};
use crate::fixture::{Server, Two, open, two};

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_announced_or_not() {
    let mut settings = open();
    settings.limits.body = 10_000;
    let server = Server::start(settings);

    // Refused because of the announced length: none of the body is sent.
    let announced = Request::call("wait").body("x".repeat(10_001)).head();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(announced.as_bytes()).await.unwrap();
    finish(stream).await.is(413, "body-too-large");

    let chunked = Request::call("wait").head();
    let length = chunked.find("Content-Length").unwrap();
    let chunked = chunked[..length].to_owned() + "Transfer-Encoding: chunked\r\n\r\n";
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(chunked.as_bytes()).await.unwrap();
    let chunk = format!("1388\r\n{}\r\n", "x".repeat(0x1388));
    for _ in 0..3 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    finish(stream).await.is(413, "body-too-large");

    assert_eq!(server.count(|seen| &seen.started), 0);
    Request::call("who").send(server.address).await.handled();
}

#[tokio::test]
async fn a_client_that_sends_its_head_byte_by_byte_is_dropped() {
    let mut settings = open();
    settings.limits.head_within = Duration::from_millis(300);
    let server = Server::start(settings);
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    let began = Instant::now();
    let mut sent = 0;
    for byte in Request::call("wait").head().bytes().cycle() {
        if slow.write_all(&[byte]).await.is_err() || began.elapsed() > TEST_TIMEOUT {
            break;
        }
        sent += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(began.elapsed() < TEST_TIMEOUT, "{sent} bytes were taken");
    // A connection that sends nothing is dropped, too.
    let silent = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(rest(silent).await, b"");
    Request::call("who").send(server.address).await.handled();
}

#[tokio::test]
async fn a_client_that_sends_its_body_slowly_is_dropped() {
    let mut settings = open();
    settings.limits.body_within = Duration::from_millis(300);
    let server = Server::start(settings);
    let request = Request::call("wait");
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(request.head().as_bytes()).await.unwrap();
    slow.write_all(b"{").await.unwrap();
    finish(slow).await.is(408, "body-too-slow");
    assert_eq!(server.count(|seen| &seen.started), 0);
}

#[tokio::test]
async fn a_client_that_takes_no_answer_is_dropped() {
    let mut settings = open();
    settings.limits.read_within = Duration::from_secs(2);
    settings.limits.requests = 1;
    let server = Server::start(settings);
    let _takes_nothing = Request::call("large").begin(server.address).await;
    // This request holds the only permit until it is dropped.
    for expected in [429, 200] {
        let began = Instant::now();
        while Request::call("who").send(server.address).await.status != expected {
            assert!(began.elapsed() < TEST_TIMEOUT, "no {expected}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn where_no_connection_can_be_dropped_another_is_told_to_come_back() {
    let mut settings = open();
    settings.limits.connections_per_address = 3;
    let server = Server::start(settings);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(Request::call("wait").begin(server.address).await);
    }
    server.saw(|seen| &seen.started, 3).await;
    let mut fourth = TcpStream::connect(server.address).await.unwrap();
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(TEST_TIMEOUT, fourth.read_to_end(&mut bytes));
    read.await.unwrap().unwrap();
    let answer = Answer::parse(&bytes);
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), Some("1"));

    held.pop();
    // The server has not noticed yet.
    let began = Instant::now();
    while Request::call("who").send(server.address).await.status != 200 {
        assert!(
            began.elapsed() < TEST_TIMEOUT,
            "its room was not given back"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_message_of_many_values_is_refused_before_it_is_parsed() {
    let server = Server::start(open());
    let many = format!("{{\"numbers\":[{}0]}}", "0,".repeat(300_000));
    let deep = "[".repeat(100) + &"]".repeat(100);
    let call = |arguments: &str, method: &str| {
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":\
             {{\"name\":\"wait\",\"arguments\":{arguments}}}}}"
        );
        let request = Request::call("wait").body(body);
        async move { request.send(server.address).await }
    };
    for arguments in [&many, &deep] {
        let answer = call(arguments, "tools/call").await;
        answer.is(413, "message-too-complex");
    }
    // A message that calls no tool needs less memory.
    let fewer = format!("[{}0]", "0,".repeat(30_000));
    let other = call(&fewer, "prompts/get").await;
    other.is(413, "message-too-complex");
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let other = call(&long, "prompts/get").await;
    other.is(413, "body-too-large");
    assert_eq!(server.count(|seen| &seen.started), 0);
    Request::call("who").send(server.address).await.handled();
}

#[tokio::test]
async fn principals_leave_memory_to_each_other_and_get_theirs_back() {
    let Two { alice, bob, tokens } = two();
    let mut settings = Settings::new(Authentication::Required(Arc::new(tokens)));
    settings.limits.memory = 4 << 20;
    let server = Server::start(settings);
    // The memory is held as long as the call waits.
    let call = |tool: &str, token: &str, values: usize| {
        let mut parameters = meta();
        parameters["name"] = json!(tool);
        parameters["arguments"] = json!({"numbers": vec![0; values]});
        let request = Request::stateless("tools/call", &parameters);
        request.header("Mcp-Name", tool).token(token)
    };
    let waiting = call("wait", &alice, 5000).begin(server.address).await;
    server.saw(|seen| &seen.started, 1).await;
    let answer = call("who", &alice, 5000).send(server.address).await;
    let answer = answer.is(429, "too-many-requests");
    assert_eq!(answer.header("retry-after"), Some("1"));
    // The other principal may take as much, but never all that is left.
    call("who", &bob, 2000).send(server.address).await.handled();
    let answer = call("who", &bob, 6000).send(server.address).await;
    let answer = answer.is(503, "server-busy");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let never = call("who", &bob, 10_000).send(server.address).await;
    never.is(413, "message-too-complex");
    // Small messages still pass.
    call("who", &alice, 1).send(server.address).await.handled();
    assert_eq!(server.count(|seen| &seen.started), 1);

    server.seen.release.add_permits(1);
    finish(waiting).await.handled();
    call("who", &bob, 6000).send(server.address).await.handled();
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_server_goes_on() {
    let server = Server::start(open());
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"params\":{}", "[".repeat(500_000));
    for (body, code) in [
        ("", "not-json"),
        ("{", "not-json"),
        (deep.as_str(), "not-json"),
        ("[]", "no-message"),
        ("42", "no-message"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
            "no-message",
        ),
        (
            "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
            "no-message",
        ),
    ] {
        let answer = Request::call("wait").body(body).send(server.address).await;
        answer.is(400, code);
    }
    let other = Request::call("wait").without("Content-Type");
    other.send(server.address).await.is(415, "media-type");
    let deaf = Request::call("wait")
        .without("Accept")
        .header("Accept", "text/html");
    deaf.send(server.address).await.is(406, "not-acceptable");
    let put = Request::new("PUT", "/mcp").send(server.address).await;
    let put = put.is(405, "method-not-allowed");
    assert_eq!(put.header("allow"), Some("get, post, delete"));
    for bytes in ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let answer = rest(stream).await;
        assert!(answer.is_empty() || Answer::parse(&answer).status == 400);
    }
    assert_eq!(server.count(|seen| &seen.started), 0);
    Request::call("who").send(server.address).await.handled();
}

#[tokio::test]
async fn readers_that_read_nothing_of_large_results_are_disconnected_for_others() {
    const TOTAL: u64 = 256 << 20;
    /// Each result has slightly more bytes than this.
    const LARGE: usize = 64 << 20;
    let limits = Limits {
        memory_total: Some(TOTAL),
        ..Limits::default()
    };
    let host = Host::builder().limits(limits).defer_engine().build();
    let host = host.unwrap();
    let mut settings = open();
    settings.shared_state = Some(host.shared_state().clone());
    // Only the limit on memory can disconnect a reader.
    settings.limits.read_within = TEST_TIMEOUT * 10;
    let server = Server::start(settings);
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push(Request::call("large").begin(server.address).await);
    }
    let began = Instant::now();
    let is_reset = |reader: &TcpStream| matches!(reader.take_error(), Ok(Some(_)));
    while !readers.iter().any(is_reset) {
        assert!(began.elapsed() < TEST_TIMEOUT, "none was disconnected");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Request::call("who").send(server.address).await.handled();
    let mut whole = 0;
    for mut reader in readers {
        let mut bytes = Vec::new();
        // The stream may end with an error.
        let _ = reader.read_to_end(&mut bytes).await;
        whole += usize::from(bytes.len() > LARGE);
    }
    // On a slow machine several may be disconnected before the memory of the first is free.
    assert!(whole < 5, "{whole} of 5 results were sent");
}
