//! Sizes and counts: each limit ends a request that exceeds it, and reports by how much.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use toolward_egress::{Error, LimitKind, NoSecrets, Rules, Timeouts, Transport, TransportSettings};
use toolward_policy::CallLimits;

use crate::server::{Server, ok, read_request};
use crate::world::{
    Chunks, Names, call_with, code, deadline, eventually, get, limits, local, request, send_get,
    settle, text, transport, writing,
};

fn url(server: &Server) -> String {
    format!("http://a.example:{}/", server.port)
}

fn limited(server: &Server, limits: CallLimits) -> toolward_egress::Call {
    call_with(
        &Names::local(),
        vec![writing("a.example", server.port)],
        limits,
    )
}

#[tokio::test]
async fn requests_in_flight_are_bounded() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let call = limited(
        &server,
        CallLimits {
            http_requests: 4,
            ..limits()
        },
    );
    let mut sends = JoinSet::new();
    for _ in 0..200 {
        sends.spawn(call.send(get(&url(&server)), Timeouts::default()));
    }
    for _ in 0..196 {
        let ended = sends.join_next().await.unwrap().unwrap();
        assert_eq!(code(ended), "requests-at-once");
    }
    eventually(|| server.heard.connections() == 4).await;
    settle().await;
    assert_eq!(server.heard.connections(), 4);
    // Dropping the requests frees the slots and the connections.
    sends.abort_all();
    while sends.join_next().await.is_some() {}
    eventually(|| server.heard.closed() == 4).await;
    let next = tokio::spawn(call.send(get(&url(&server)), Timeouts::default()));
    eventually(|| server.heard.connections() == 5).await;
    next.abort();
}

#[tokio::test]
async fn a_response_holds_its_slot_until_its_end() {
    let server = Server::replying(ok("body")).await;
    let call = limited(
        &server,
        CallLimits {
            http_requests: 1,
            ..limits()
        },
    );
    let first = send_get(&call, &url(&server)).await.unwrap();
    assert_eq!(
        code(send_get(&call, &url(&server)).await),
        "requests-at-once"
    );
    text(first).await.unwrap();
    drop(send_get(&call, &url(&server)).await.unwrap());
    assert_eq!(code(send_get(&call, &url(&server)).await), "sent");
}

#[tokio::test]
async fn requests_in_all_are_bounded_refused_ones_included() {
    let server = Server::replying(ok("")).await;
    let call = limited(
        &server,
        CallLimits {
            http_requests_total: 3,
            ..limits()
        },
    );
    assert_eq!(code(send_get(&call, &url(&server)).await), "sent");
    assert_eq!(
        code(send_get(&call, "http://b.example/").await),
        "host-not-granted"
    );
    assert_eq!(code(send_get(&call, &url(&server)).await), "sent");
    assert_eq!(code(send_get(&call, &url(&server)).await), "requests-total");
    assert_eq!(server.heard.requests().len(), 2);
    assert_eq!(call.usage().requests, 4);
}

#[tokio::test]
async fn a_request_body_is_bounded() {
    let server = Server::replying(ok("")).await;
    let call = limited(
        &server,
        CallLimits {
            http_body_bytes: 10,
            ..limits()
        },
    );
    let own = request(Method::POST, &url(&server), "0123456789a");
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "request-body-bytes"
    );
    let own = Request::post(url(&server))
        .header("content-length", "11")
        .body(Chunks::of(&["0"]))
        .unwrap();
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "request-body-bytes"
    );
    settle().await;
    assert_eq!(server.heard.connections(), 0);
    // A body that does not declare its length is cut off.
    let own = Request::post(url(&server))
        .body(Chunks::of(&["01234", "56789", "a"]))
        .unwrap();
    let error = call.send(own, Timeouts::default()).await.unwrap_err();
    let Error::Limit(limit) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (limit.kind, limit.used, limit.allowed),
        (LimitKind::RequestBodyBytes, 11, 10)
    );
    settle().await;
    assert_eq!(server.heard.requests().len(), 0);
    let own = request(Method::POST, &url(&server), "0123456789");
    assert_eq!(code(call.send(own, Timeouts::default()).await), "sent");
}

#[tokio::test]
async fn a_response_that_is_announced_as_too_large_is_not_read() {
    let server = Server::replying("HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n").await;
    let call = limited(
        &server,
        CallLimits {
            http_body_bytes: 10,
            ..limits()
        },
    );
    let error = send_get(&call, &url(&server)).await.unwrap_err();
    let Error::Limit(limit) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (limit.kind, limit.used, limit.allowed),
        (LimitKind::ResponseBodyBytes, 11, 10)
    );
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn an_endless_response_ends_at_its_limit() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        client.write_all(head).await.unwrap();
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(4096));
        while client.write_all(chunk.as_bytes()).await.is_ok() {}
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let call = limited(
        &server,
        CallLimits {
            http_body_bytes: 1 << 20,
            ..limits()
        },
    );
    let mut body = send_get(&call, &url(&server)).await.unwrap().into_body();
    let mut seen = 0;
    let error = loop {
        match body.frame().await.expect("an error comes first") {
            Ok(frame) => seen += frame.into_data().unwrap().len(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "response-body-bytes");
    assert!(seen <= 1 << 20);
    assert!(body.frame().await.is_none());
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn all_traffic_of_a_call_is_bounded() {
    let server = Server::replying(ok(&"x".repeat(1000))).await;
    let call = limited(
        &server,
        CallLimits {
            egress_bytes: 3000,
            ..limits()
        },
    );
    for _ in 0..2 {
        text(send_get(&call, &url(&server)).await.unwrap())
            .await
            .unwrap();
    }
    assert!(call.usage().bytes > 2000);
    // The third response and the next request declare lengths that do not fit.
    assert_eq!(code(send_get(&call, &url(&server)).await), "total-bytes");
    let own = request(Method::POST, &url(&server), &"x".repeat(1000));
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "total-bytes"
    );
    assert_eq!(server.heard.requests().len(), 3);
}

#[tokio::test]
async fn after_the_first_traffic_that_does_not_fit_nothing_is_sent() {
    let server = Server::replying(ok("")).await;
    let call = limited(
        &server,
        CallLimits {
            egress_bytes: 3000,
            ..limits()
        },
    );
    let own = request(Method::POST, &url(&server), &"x".repeat(5000));
    let refused = call.send(own, Timeouts::default()).await;
    assert_eq!(code(refused), "total-bytes");
    // This request would fit.
    assert_eq!(code(send_get(&call, &url(&server)).await), "total-bytes");
    settle().await;
    assert_eq!(server.heard.connections(), 0);
}

#[tokio::test]
async fn heads_count_as_traffic() {
    let headers = format!("x-long: {}\r\n", "x".repeat(1000));
    let server = Server::replying(crate::server::reply("200 OK", &headers, "")).await;
    let call = limited(
        &server,
        CallLimits {
            egress_bytes: 2500,
            ..limits()
        },
    );
    for _ in 0..2 {
        assert_eq!(code(send_get(&call, &url(&server)).await), "sent");
    }
    assert_eq!(code(send_get(&call, &url(&server)).await), "total-bytes");
    let long = format!("{}{}", url(&server), "x".repeat(1000));
    let connections = server.heard.connections();
    let call = limited(
        &server,
        CallLimits {
            egress_bytes: 900,
            ..limits()
        },
    );
    assert_eq!(code(send_get(&call, &long).await), "total-bytes");
    // If a body's declared length does not fit, no connection is opened.
    let call = limited(
        &server,
        CallLimits {
            egress_bytes: 900,
            ..limits()
        },
    );
    let own = request(Method::POST, &url(&server), &"x".repeat(1000));
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "total-bytes"
    );
    settle().await;
    assert_eq!(server.heard.connections(), connections);
    assert_eq!(server.heard.requests().len(), 3);
}

#[tokio::test]
async fn a_nested_call_uses_what_is_left_of_its_root() {
    let server = Server::replying(ok("")).await;
    let rules = Rules::new(vec![local("a.example", server.port)], Vec::new()).unwrap();
    let rules = Arc::new(rules);
    let transport = transport(&Names::local()).build();
    let few = CallLimits {
        http_requests_total: 3,
        ..limits()
    };
    let root = transport.egress("alpha", Arc::clone(&rules)).call(
        few,
        deadline(),
        None,
        Arc::new(NoSecrets),
    );
    let route = transport.egress("alpha", rules);
    for _ in 0..3 {
        let nested = route.call(
            limits(),
            deadline(),
            Some(&root.meter()),
            Arc::new(NoSecrets),
        );
        assert_eq!(code(send_get(&nested, &url(&server)).await), "sent");
    }
    let nested = route.call(
        limits(),
        deadline(),
        Some(&root.meter()),
        Arc::new(NoSecrets),
    );
    assert_eq!(
        code(send_get(&nested, &url(&server)).await),
        "requests-total"
    );
    assert_eq!(code(send_get(&root, &url(&server)).await), "requests-total");
    assert_eq!(server.heard.requests().len(), 3);
}

#[tokio::test]
async fn heads_are_bounded_both_ways() {
    let server = Server::replying(ok("")).await;
    let call = limited(
        &server,
        CallLimits {
            http_head_bytes: 1000,
            ..limits()
        },
    );
    let mut own = get(&url(&server));
    let long = HeaderValue::from_str(&"x".repeat(1000)).unwrap();
    own.headers_mut().append("x-long", long);
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "request-head-bytes"
    );
    let long = format!("{}{}", url(&server), "x".repeat(1000));
    assert_eq!(code(send_get(&call, &long).await), "request-head-bytes");
    let mut own = get(&url(&server));
    for _ in 0..101 {
        own.headers_mut().append("a", HeaderValue::from_static("b"));
    }
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "request-head-bytes"
    );
    settle().await;
    assert_eq!(server.heard.connections(), 0);

    let many = "a: b\r\n".repeat(200);
    let large = format!("a: {}\r\n", "x".repeat(70_000));
    let over = format!("a: {}\r\n", "x".repeat(1000));
    for headers in [many, large, over] {
        let server = Server::replying(crate::server::reply("200 OK", &headers, "")).await;
        let call = limited(
            &server,
            CallLimits {
                http_head_bytes: 1000,
                ..limits()
            },
        );
        assert_eq!(
            code(send_get(&call, &url(&server)).await),
            "response-head-bytes"
        );
    }
}

#[tokio::test]
async fn an_endless_head_ends_at_its_limit() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        client.write_all(b"HTTP/1.1 200 OK\r\na: ").await.unwrap();
        while client.write_all(&[b'x'; 4096]).await.is_ok() {}
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let call = limited(&server, limits());
    assert_eq!(
        code(send_get(&call, &url(&server)).await),
        "response-head-bytes"
    );
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn trailers_are_bounded() {
    let mut wire = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n".to_owned();
    wire.push_str(&format!("x-sum: {}\r\n\r\n", "x".repeat(2000)));
    let server = Server::replying(wire).await;
    let call = limited(
        &server,
        CallLimits {
            http_head_bytes: 1000,
            ..limits()
        },
    );
    let response = send_get(&call, &url(&server)).await.unwrap();
    assert_eq!(code(text(response).await), "response-head-bytes");
}

#[tokio::test]
async fn open_connections_of_a_host_are_bounded() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let rules = Rules::new(vec![local("a.example", server.port)], Vec::new()).unwrap();
    let transport: Transport = TransportSettings {
        connections: 2,
        ..transport(&Names::local())
    }
    .build();
    let call = transport.egress("alpha", Arc::new(rules)).call(
        limits(),
        deadline(),
        None,
        Arc::new(NoSecrets),
    );
    let held: Vec<_> = (0..2)
        .map(|_| tokio::spawn(call.send(get(&url(&server)), Timeouts::default())))
        .collect();
    eventually(|| server.heard.connections() == 2).await;
    let own = Timeouts {
        connect: Some(Duration::from_millis(100)),
        ..Timeouts::default()
    };
    assert_eq!(
        code(call.send(get(&url(&server)), own).await),
        "timeout-queue"
    );
    settle().await;
    assert_eq!(server.heard.connections(), 2);
    for task in held {
        task.abort();
    }
    eventually(|| server.heard.closed() == 2).await;
    let next = tokio::spawn(call.send(get(&url(&server)), Timeouts::default()));
    eventually(|| server.heard.connections() == 3).await;
    next.abort();
}

#[tokio::test]
async fn a_route_that_takes_all_its_connections_leaves_others_theirs() {
    let tarpit = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let server = Server::replying(ok("")).await;
    let transport = TransportSettings {
        connections: 5,
        connections_per_route: 4,
        ..transport(&Names::local())
    }
    .build();
    let route = |port| {
        let rules = Rules::new(vec![local("a.example", port)], Vec::new()).unwrap();
        transport.egress(&port.to_string(), Arc::new(rules)).call(
            limits(),
            deadline(),
            None,
            Arc::new(NoSecrets),
        )
    };
    let greedy = route(tarpit.port);
    let mut held = JoinSet::new();
    for _ in 0..16 {
        held.spawn(greedy.send(get(&url(&tarpit)), Timeouts::default()));
    }
    eventually(|| tarpit.heard.connections() == 4).await;
    assert_eq!(
        code(send_get(&route(server.port), &url(&server)).await),
        "sent"
    );
    assert_eq!(tarpit.heard.connections(), 4);
}
