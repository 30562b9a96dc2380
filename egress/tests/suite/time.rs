//! Slow servers, slow resolvers and slow guests: every stage has a time limit.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use tokio::io::AsyncWriteExt;
use toolward_egress::{
    Call, Error, LookupPermit, NoSecrets, Resolve, Resolving, Rules, Timeouts, TransportSettings,
};
use toolward_policy::CallLimits;

use crate::server::{Client, Heard, Server, read_request};
use crate::world::{
    Chunks, Names, call_with, code, deadline, eventually, get, limits, local, on_terms, send_get,
    settle, text, transport, writing,
};

const SHORT: Duration = Duration::from_millis(200);

fn short() -> CallLimits {
    CallLimits {
        http_timeout: SHORT,
        ..limits()
    }
}

fn own(timeouts: Timeouts) -> impl Fn(&Call, &str) -> Timed {
    move |call, url| Box::pin(call.send(get(url), timeouts))
}

type Timed = std::pin::Pin<
    Box<dyn Future<Output = Result<http::Response<toolward_egress::ResponseBody>, Error>> + Send>,
>;

/// The code of the error. Asserts that it came before [`limits`] would have ended the request.
async fn in_time<T>(future: impl Future<Output = Result<T, Error>>) -> &'static str {
    let began = Instant::now();
    let ended = tokio::time::timeout(limits().http_timeout, future).await;
    assert!(began.elapsed() < limits().http_timeout);
    code(ended.expect("it ends"))
}

async fn silent(mut client: Client, heard: Heard) {
    heard.wait_for_end(&mut client).await;
}

/// Sends one byte at a time, forever.
async fn loris(mut client: Client, heard: Heard, start: &'static str) {
    read_request(&mut client, &heard).await;
    client.write_all(start.as_bytes()).await.unwrap();
    while client.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    heard.wait_for_end(&mut client).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_left() {
    let server = Server::start(None, silent).await;
    let url = format!("http://a.example:{}/", server.port);
    let rules = vec![local("a.example", server.port)];
    let call = call_with(&Names::local(), rules.clone(), short());
    assert_eq!(in_time(send_get(&call, &url)).await, "timeout-first-byte");
    // The guest may set a shorter time.
    let call = call_with(&Names::local(), rules, limits());
    let guest = own(Timeouts {
        first_byte: Some(SHORT),
        ..Timeouts::default()
    });
    assert_eq!(in_time(guest(&call, &url)).await, "timeout-first-byte");
    eventually(|| server.heard.closed() == 2).await;
}

#[tokio::test]
async fn a_guest_cannot_take_more_time_than_its_call_has() {
    let server = Server::start(None, silent).await;
    let url = format!("http://a.example:{}/", server.port);
    let year = Some(Duration::from_secs(31_536_000));
    let guest = own(Timeouts {
        connect: year,
        first_byte: year,
        between_bytes: Some(Duration::MAX),
    });
    let call = call_with(
        &Names::local(),
        vec![local("a.example", server.port)],
        short(),
    );
    assert_eq!(in_time(guest(&call, &url)).await, "timeout-first-byte");
}

#[tokio::test]
async fn the_deadline_of_the_call_comes_before_all() {
    let server = Server::start(None, silent).await;
    let url = format!("http://a.example:{}/", server.port);
    let deadline = Instant::now() + SHORT;
    let rules = Rules::new(vec![local("a.example", server.port)], Vec::new()).unwrap();
    let egress = transport(&Names::local())
        .build()
        .egress("alpha", Arc::new(rules));
    let call = egress.call(limits(), deadline, None, Arc::new(NoSecrets));
    let Err(Error::Timeout(timeout)) = send_get(&call, &url).await else {
        panic!("it was answered");
    };
    assert!(timeout.deadline);
    assert!(Instant::now() < deadline + Duration::from_secs(30));
    // After the deadline, nothing is sent.
    assert_eq!(in_time(send_get(&call, &url)).await, "timeout-queue");
    settle().await;
    assert_eq!(server.heard.connections(), 1);
}

#[tokio::test]
async fn a_slow_loris_does_not_outlast_the_request() {
    for start in ["HTTP/1.1 200 OK\r\na: ", "HTTP/1.1 200 "] {
        let server = Server::start(None, move |client, heard| loris(client, heard, start)).await;
        let url = format!("http://a.example:{}/", server.port);
        let call = call_with(
            &Names::local(),
            vec![local("a.example", server.port)],
            short(),
        );
        assert_eq!(in_time(send_get(&call, &url)).await, "timeout-first-byte");
        eventually(|| server.heard.closed() == 1).await;
    }
    // The body always has one more byte.
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n";
    let server = Server::start(None, move |client, heard| loris(client, heard, start)).await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call_with(
        &Names::local(),
        vec![local("a.example", server.port)],
        short(),
    );
    let response = send_get(&call, &url).await.unwrap();
    assert_eq!(in_time(text(response)).await, "timeout-between-bytes");
    eventually(|| server.heard.closed() == 1).await;
}

#[tokio::test]
async fn a_body_that_stops_is_left() {
    let server = Server::start(None, |mut client, heard| async move {
        read_request(&mut client, &heard).await;
        let start = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc";
        client.write_all(start).await.unwrap();
        heard.wait_for_end(&mut client).await;
    })
    .await;
    let url = format!("http://a.example:{}/", server.port);
    let rules = vec![local("a.example", server.port)];
    let call = call_with(&Names::local(), rules.clone(), limits());
    let guest = own(Timeouts {
        between_bytes: Some(SHORT),
        ..Timeouts::default()
    });
    let response = guest(&call, &url).await.unwrap();
    assert_eq!(in_time(text(response)).await, "timeout-between-bytes");
    let call = call_with(&Names::local(), rules, short());
    let response = send_get(&call, &url).await.unwrap();
    assert_eq!(in_time(text(response)).await, "timeout-between-bytes");
    eventually(|| server.heard.closed() == 2).await;
}

#[tokio::test]
async fn a_tls_handshake_that_never_comes_is_left() {
    let server = Server::start(None, silent).await;
    let rule = on_terms(local("a.example", server.port), |terms| {
        terms.plain_http = false;
    });
    let rules = Arc::new(Rules::new(vec![rule], Vec::new()).unwrap());
    let authority = crate::tls::Authority::new();
    let transport = TransportSettings {
        ca_pem: vec![authority.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    let call =
        transport
            .egress("alpha", rules)
            .call(short(), deadline(), None, Arc::new(NoSecrets));
    let url = format!("https://a.example:{}/", server.port);
    assert_eq!(in_time(send_get(&call, &url)).await, "timeout-tls");
    eventually(|| server.heard.closed() == 1).await;
}

#[derive(Default)]
struct NeverAnswers(AtomicUsize);

impl Resolve for NeverAnswers {
    fn resolve<'a>(&'a self, _host: &'a str, _: LookupPermit) -> Resolving<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending::<std::io::Result<Vec<IpAddr>>>())
    }
}

#[tokio::test]
async fn a_resolver_that_never_answers_is_left() {
    let resolver = Arc::new(NeverAnswers::default());
    let own_resolver = Arc::<NeverAnswers>::clone(&resolver);
    let rules = Arc::new(Rules::new(vec![local("a.example", 1)], Vec::new()).unwrap());
    let transport = TransportSettings {
        resolver: own_resolver,
        ..transport(&Names::local())
    }
    .build();
    let egress = transport.egress("alpha", rules);
    let url = "http://a.example:1/";
    let call = egress.call(short(), deadline(), None, Arc::new(NoSecrets));
    assert_eq!(in_time(send_get(&call, url)).await, "timeout-resolve");
    let call = egress.call(limits(), deadline(), None, Arc::new(NoSecrets));
    let guest = own(Timeouts {
        connect: Some(SHORT),
        ..Timeouts::default()
    });
    assert_eq!(in_time(guest(&call, url)).await, "timeout-resolve");
    // Abandoned lookups still hold threads, so a route may have only a few.
    for _ in 0..4 {
        let sends = [(); 4].map(|()| tokio::spawn(guest(&call, url)));
        for sent in sends {
            assert_eq!(
                in_time(async { sent.await.unwrap() }).await,
                "timeout-resolve"
            );
        }
    }
    assert_eq!(resolver.0.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn a_guest_that_does_not_finish_its_body_is_left() {
    let server = Server::start(None, silent).await;
    let url = format!("http://a.example:{}/", server.port);
    let call = call_with(
        &Names::local(),
        vec![writing("a.example", server.port)],
        short(),
    );
    let reading = Request::get(&url).body(Chunks::of(&[]).hanging()).unwrap();
    let sent = call.send(reading, Timeouts::default());
    assert_eq!(in_time(sent).await, "timeout-request-body");
    assert_eq!(server.heard.connections(), 0);
    let writing = Request::post(&url)
        .body(Chunks::of(&["a"]).hanging())
        .unwrap();
    let sent = call.send(writing, Timeouts::default());
    assert_eq!(in_time(sent).await, "timeout-first-byte");
    eventually(|| server.heard.closed() == 1).await;
}
