//! Connections are kept for the next request of the same route, and closed as soon as their data is
//! no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderValue, Method, Request};
use http_body_util::BodyExt;
use tokio::io::AsyncWriteExt;
use toolward_egress::{Egress, NoSecrets, Rules, Timeouts, Transport, TransportSettings};
use toolward_policy::HostGrant;

use crate::server::{Server, ok, read_head, read_request, reply};
use crate::world::{
    Chunks, Names, call, code, deadline, eventually, get, limits, local, on_terms, request,
    send_get, settle, text, transport, writing,
};

fn route(transport: &Transport, rule: HostGrant) -> Egress {
    static OWNERS: AtomicUsize = AtomicUsize::new(0);
    let owner = OWNERS.fetch_add(1, Ordering::Relaxed).to_string();
    transport.egress(
        &owner,
        Arc::new(Rules::new(vec![rule], Vec::new()).unwrap()),
    )
}

async fn fetch(egress: &Egress, url: &str) -> String {
    let call = egress.call(limits(), deadline(), None, Arc::new(NoSecrets));
    text(send_get(&call, url).await.unwrap()).await.unwrap()
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let egress = route(
        &transport(&Names::local()).build(),
        writing("a.example", server.port),
    );
    for _ in 0..50 {
        assert_eq!(fetch(&egress, &url).await, "hello");
    }
    let call = egress.call(limits(), deadline(), None, Arc::new(NoSecrets));
    for _ in 0..10 {
        let own = request(Method::POST, &url, "body");
        let response = call.send(own, Timeouts::default()).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "hello");
        let own = Request::post(&url).body(Chunks::of(&["a", "b"])).unwrap();
        let response = call.send(own, Timeouts::default()).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "hello");
    }
    assert_eq!(server.heard.requests().len(), 70);
    assert_eq!(server.heard.connections(), 1);
}

#[tokio::test]
async fn a_response_without_content_gives_its_connection_back_at_once() {
    let server = Server::replying("HTTP/1.1 204 No Content\r\n\r\n").await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![local("a.example", server.port)]);
    let mut kept = Vec::new();
    for _ in 0..5 {
        kept.push(send_get(&call, &url).await.unwrap());
    }
    assert_eq!(server.heard.connections(), 1);
}

#[tokio::test]
async fn a_connection_of_one_route_is_never_used_by_another() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let transport = transport(&Names::local()).build();
    let one = route(&transport, local("a.example", server.port));
    let other = route(&transport, local("a.example", server.port));
    fetch(&one, &url).await;
    fetch(&other, &url).await;
    fetch(&one, &url).await;
    assert_eq!(server.heard.connections(), 2);
    // A route that may not reach the address does not use the connections either.
    let narrow = on_terms(local("a.example", server.port), |terms| {
        terms.addresses.clear()
    });
    let call = route(&transport, narrow).call(limits(), deadline(), None, Arc::new(NoSecrets));
    assert_eq!(code(send_get(&call, &url).await), "address-not-granted");
    assert_eq!(server.heard.connections(), 2);
}

#[tokio::test]
async fn a_connection_is_for_one_host_and_port() {
    let server = Server::replying(ok("hello")).await;
    let rules = ["a.example", "b.example"].map(|host| local(host, server.port));
    let call = call(rules.to_vec());
    for host in ["a.example", "b.example", "a.example", "b.example"] {
        let url = format!("http://{host}:{}/", server.port);
        text(send_get(&call, &url).await.unwrap()).await.unwrap();
        assert!(server.heard.last().contains(&format!("host: {host}:")));
    }
    assert_eq!(server.heard.connections(), 2);
}

#[tokio::test]
async fn a_request_that_is_given_up_closes_its_connection() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![local("a.example", server.port)]);
    tokio::select! {
        answer = send_get(&call, &url) => panic!("{:?}", answer.map(drop)),
        () = eventually(|| server.heard.requests().len() == 1) => {}
    }
    eventually(|| server.heard.closed() == 1).await;
    assert_eq!(server.heard.requests().len(), 1);
}

#[tokio::test]
async fn a_body_that_is_dropped_closes_its_connection() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        let start = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc";
        client.write_all(start).await.unwrap();
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![local("a.example", server.port)]);
    let mut body = send_get(&call, &url).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    settle().await;
    assert_eq!(server.heard.closed(), 0);
    drop(body);
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn a_route_that_is_dropped_closes_its_connections() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let transport = transport(&Names::local()).build();
    let egress = route(&transport, local("a.example", server.port));
    fetch(&egress, &url).await;
    settle().await;
    assert_eq!(server.heard.closed(), 0);
    drop(egress);
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_a_while() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let transport = TransportSettings {
        idle_timeout: Duration::from_millis(100),
        ..transport(&Names::local())
    }
    .build();
    let egress = route(&transport, local("a.example", server.port));
    for round in 1..=2 {
        fetch(&egress, &url).await;
        eventually(|| server.heard.closed() == round).await;
    }
    assert_eq!(server.heard.connections(), 2);
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let transport = TransportSettings {
        idle_connections: 2,
        ..transport(&Names::local())
    }
    .build();
    let egress = route(&transport, local("a.example", server.port));
    let call = egress.call(limits(), deadline(), None, Arc::new(NoSecrets));
    let mut responses = Vec::new();
    for _ in 0..6 {
        responses.push(send_get(&call, &url).await.unwrap());
    }
    for response in responses {
        text(response).await.unwrap();
    }
    assert_eq!(server.heard.connections(), 6);
    eventually(|| server.heard.closed() == 4).await;
    settle().await;
    assert_eq!(server.heard.closed(), 4);
}

#[tokio::test]
async fn an_idle_connection_yields_to_another_route_that_needs_one() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let transport = TransportSettings {
        connections: 1,
        ..transport(&Names::local())
    }
    .build();
    let one = route(&transport, local("a.example", server.port));
    let other = route(&transport, local("a.example", server.port));
    assert_eq!(fetch(&one, &url).await, "hello");
    assert_eq!(fetch(&other, &url).await, "hello");
    assert_eq!(server.heard.connections(), 2);
}

#[tokio::test]
async fn a_connection_that_carried_the_guests_own_credentials_is_not_kept() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    let rule = on_terms(local("a.example", server.port), |terms| {
        terms.guest_headers = vec!["authorization".to_owned()];
    });
    let call = call(vec![rule]);
    let mut own = get(&url);
    own.headers_mut()
        .append("authorization", HeaderValue::from_static("NTLM TlRM"));
    text(call.send(own, Timeouts::default()).await.unwrap())
        .await
        .unwrap();
    text(send_get(&call, &url).await.unwrap()).await.unwrap();
    assert_eq!(server.heard.connections(), 2);
}

#[tokio::test]
async fn a_server_that_closes_between_requests_is_asked_again() {
    // The server promises to keep the connection, but closes it.
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        client.write_all(ok("hello").as_bytes()).await.unwrap();
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![local("a.example", server.port)]);
    for _ in 0..20 {
        let response = send_get(&call, &url).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "hello");
    }
    assert_eq!(server.heard.connections(), 20);
}

#[tokio::test]
async fn a_request_that_writes_is_not_sent_twice() {
    // The server reads the second request on a connection, but never answers it.
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        client.write_all(ok("hello").as_bytes()).await.unwrap();
        read_request(&mut client, &heard).await;
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![writing("a.example", server.port)]);
    text(send_get(&call, &url).await.unwrap()).await.unwrap();
    let own = request(Method::POST, &url, "pay");
    assert_eq!(
        code(call.send(own, Timeouts::default()).await),
        "terminated"
    );
    settle().await;
    let posts = server
        .heard
        .requests()
        .iter()
        .filter(|r| r.starts_with("POST"))
        .count();
    assert_eq!(posts, 1);
}

#[tokio::test]
async fn a_response_before_the_body_was_read_costs_the_connection() {
    let server = Server::start(None, |mut client, heard| async move {
        read_head(&mut client).await;
        let reply = reply("413 Too Large", "", "no");
        client.write_all(reply.as_bytes()).await.unwrap();
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call(vec![writing("a.example", server.port)]);
    let body = Chunks::of(&["a"]).hanging();
    let own = Request::post(&url).body(body).unwrap();
    let response = call.send(own, Timeouts::default()).await.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(text(response).await.unwrap(), "no");
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn a_request_that_is_given_up_frees_its_connection_whatever_the_server_does() {
    let stuck = Server::start(None, |client, _| async move {
        // The server reads nothing, and keeps the connection.
        std::future::pending::<()>().await;
        drop(client);
    })
    .await;
    let server = Server::replying(ok("hello")).await;
    let transport = TransportSettings {
        connections: 1,
        ..transport(&Names::local())
    }
    .build();
    let call = route(&transport, writing("a.example", stuck.port));
    let call = call.call(limits(), deadline(), None, Arc::new(NoSecrets));
    let large = "x".repeat(8 << 20);
    let url = format!("http://a.example:{}/", stuck.port);
    let sent = call.send(request(Method::POST, &url, &large), Timeouts::default());
    let under_way = async {
        eventually(|| stuck.heard.connections() == 1).await;
        settle().await;
    };
    tokio::select! {
        answer = sent => panic!("{:?}", answer.map(drop)),
        () = under_way => {}
    }
    let url = format!("http://a.example:{}/", server.port);
    let other = route(&transport, local("a.example", server.port));
    let fetched = tokio::time::timeout(Duration::from_secs(30), fetch(&other, &url));
    assert_eq!(fetched.await.expect("the connection is free"), "hello");
}

#[tokio::test]
async fn requests_beyond_the_connections_take_turns() {
    let server = Server::replying(ok("hello")).await;
    let url = format!("http://a.example:{}/", server.port);
    for (own, all) in [(2, 1024), (1024, 2)] {
        let transport = TransportSettings {
            connections: all,
            connections_per_route: own,
            ..transport(&Names::local())
        }
        .build();
        let egress = route(&transport, local("a.example", server.port));
        let call = egress.call(limits(), deadline(), None, Arc::new(NoSecrets));
        let one = |_| {
            let sent = call.send(get(&url), Timeouts::default());
            tokio::spawn(async move { text(sent.await.unwrap()).await.unwrap() })
        };
        let tasks: Vec<_> = (0..16).map(one).collect();
        // This is long before idle connections are closed because of their age.
        let all = async {
            for task in tasks {
                assert_eq!(task.await.unwrap(), "hello");
            }
        };
        assert!(
            tokio::time::timeout(Duration::from_secs(30), all)
                .await
                .is_ok()
        );
    }
}
