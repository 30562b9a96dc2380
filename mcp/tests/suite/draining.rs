//! A server that drains, behind a proxy that asks whether it is ready, and with clients that reuse
//! their connections: no request is lost. After that it shuts down: it accepts nothing new, lets
//! running calls finish, and never waits forever.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use toolward_mcp::http::Ended;

use crate::client::{Answer, Request, Session, TEST_TIMEOUT, finish, meta, rest, until};
use crate::fixture::{Server, open};

const ROUNDS: usize = 20;
/// Clients that follow the answers, and as many clients that follow the proxy.
const CLIENTS: usize = 4;

/// A connection that is used for one request after another.
struct Reused(TcpStream);

impl Reused {
    /// `None` if the server does not listen. Then nothing was sent, and nothing is lost.
    async fn to(address: SocketAddr) -> Option<Self> {
        Some(Self(TcpStream::connect(address).await.ok()?))
    }

    /// Sends a request and reads its answer, whose head states the length.
    async fn ask(&mut self, request: &Request) -> Answer {
        let lost = "a request was lost";
        self.0
            .write_all(request.whole().as_bytes())
            .await
            .expect(lost);
        let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let count = self.0.read(&mut part).await.expect(lost);
            assert_ne!(count, 0, "{lost}: {:?}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&part[..count]);
            if !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                continue;
            }
            let answer = Answer::parse(&bytes);
            let length = answer.header("content-length").map(|text| text.parse());
            if length == Some(Ok(answer.body.len())) {
                return answer;
            }
        }
    }
}

fn kept(request: Request) -> Request {
    request.without("Connection")
}

/// Asks repeatedly over one connection until an answer is the last one, or the server does not
/// listen. Returns how often it asked.
async fn until_told(address: SocketAddr) -> usize {
    let call = kept(Request::call("who"));
    let mut connection = Reused::to(address).await.expect("it listens");
    for asked in 1.. {
        let answer = connection.ask(&call).await.handled();
        if answer.header("connection") == Some("close") {
            return asked;
        }
    }
    0
}

/// Asks repeatedly, over a new connection if the last one was closed, until the proxy knows that
/// the server is not ready.
async fn until_not_ready(address: SocketAddr, not_ready: CancellationToken) -> usize {
    let call = kept(Request::call("who"));
    let mut connection = None;
    let mut asked = 0;
    while !not_ready.is_cancelled() {
        let mut open = match connection.take() {
            Some(open) => open,
            None => Reused::to(address).await.expect("it listens"),
        };
        let answer = open.ask(&call).await.handled();
        if answer.header("connection") != Some("close") {
            connection = Some(open);
        }
        asked += 1;
    }
    asked
}

/// Asks whether the server is ready until it is not.
async fn watch_ready(address: SocketAddr) {
    loop {
        let answer = Request::new("GET", "/readyz").send(address).await;
        match (answer.status, &*answer.body) {
            (200, "ready\n") => tokio::time::sleep(Duration::from_millis(10)).await,
            (503, "draining\n") => return,
            _ => panic!("{answer:?}"),
        }
    }
}

async fn ends(server: &mut Server) -> Ended {
    let running = tokio::time::timeout(TEST_TIMEOUT, &mut server.running);
    running.await.unwrap().unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_restarts_under_load_lose_no_request() {
    let mut asked = 0;
    for _ in 0..ROUNDS {
        let draining = CancellationToken::new();
        let mut settings = open();
        settings.draining = draining.clone();
        let mut server = Server::start(settings);
        let not_ready = CancellationToken::new();
        let told = (0..CLIENTS).map(|_| tokio::spawn(until_told(server.address)));
        let told: Vec<_> = told.collect();
        let proxied =
            (0..CLIENTS).map(|_| tokio::spawn(until_not_ready(server.address, not_ready.clone())));
        let proxied: Vec<_> = proxied.collect();
        let watching = tokio::spawn(watch_ready(server.address));
        tokio::time::sleep(Duration::from_millis(50)).await;

        // However long the proxy takes to notice, the server waits for it.
        draining.cancel();
        let noticed = async {
            watching.await.unwrap();
            not_ready.cancel();
            for client in told.into_iter().chain(proxied) {
                asked += client.await.unwrap();
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, noticed).await.unwrap();
        server.shutdown.cancel();
        assert_eq!(ends(&mut server).await, Ended { cut: 0 });
    }
    assert!(asked >= ROUNDS * CLIENTS * 2, "{asked}");
}

#[tokio::test]
async fn while_it_drains_it_takes_connections_and_each_answer_is_the_last_one() {
    let draining = CancellationToken::new();
    let mut settings = open();
    settings.draining = draining.clone();
    let mut server = Server::start(settings);
    let call = kept(Request::call("who"));
    let mut before = Reused::to(server.address).await.unwrap();
    let answer = before.ask(&call).await.handled();
    assert_eq!(answer.header("connection"), None);
    let ready = Request::new("GET", "/readyz").send(server.address).await;
    assert_eq!((ready.status, &*ready.body), (200, "ready\n"));

    draining.cancel();
    let mut after = Reused::to(server.address).await.unwrap();
    for connection in [&mut before, &mut after] {
        let answer = connection.ask(&call).await.handled();
        assert_eq!(answer.header("connection"), Some("close"), "{answer:?}");
    }
    let ready = Request::new("GET", "/readyz").send(server.address).await;
    assert_eq!((ready.status, &*ready.body), (503, "draining\n"));
    // The process is live the whole time.
    let alive = Request::new("GET", "/healthz").send(server.address).await;
    assert_eq!(alive.status, 200);
    server.shutdown.cancel();
    assert_eq!(ends(&mut server).await, Ended { cut: 0 });
}

#[tokio::test]
async fn a_request_on_a_connection_that_was_just_made_is_answered_at_the_end() {
    let mut server = Server::start(open());
    // A call keeps the server running until it is released.
    let waiting = Request::call("wait").begin(server.address).await;
    server.saw(|seen| &seen.started, 1).await;
    let mut made = Reused::to(server.address).await.unwrap();
    server.shutdown.cancel();
    let answer = made.ask(&kept(Request::call("who"))).await.handled();
    assert_eq!(answer.header("connection"), Some("close"));
    server.seen.release.add_permits(1);
    finish(waiting).await.handled();
    assert_eq!(ends(&mut server).await, Ended { cut: 0 });
}

#[tokio::test]
async fn whether_it_is_ready_is_told_under_its_names_only_and_streams_go_on_while_it_drains() {
    let draining = CancellationToken::new();
    let mut settings = open();
    settings.draining = draining.clone();
    let server = Server::start(settings);
    let foreign = Request::new("GET", "/readyz").without("Host");
    let foreign = foreign.header("Host", "evil.example");
    foreign
        .send(server.address)
        .await
        .is(421, "host-not-allowed");
    let posted = Request::new("POST", "/readyz").send(server.address).await;
    assert_eq!(posted.status, 405);

    let session = Session::begin(server.address, "none").await.unwrap();
    let mut listens = session.listen().begin(server.address).await;
    until(&mut listens, "text/event-stream").await;
    draining.cancel();
    let mut call = session.call(1, "wait").begin(server.address).await;
    until(&mut call, "progress").await;
    server.seen.release.add_permits(1);
    until(&mut call, "waited").await;
    // In the meantime only comments arrived, and the stream did not end.
    let mut bytes = [0; 64];
    let read = tokio::time::timeout(Duration::from_millis(100), listens.read(&mut bytes)).await;
    assert!(read.is_err() || bytes[0] == b':', "{read:?}");
}

async fn ended(server: &mut Server) -> Ended {
    let running = tokio::time::timeout(TEST_TIMEOUT, &mut server.running);
    running.await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn calls_finish_and_nothing_new_is_taken() {
    let mut server = Server::start(open());
    let newer = Request::call("wait").begin(server.address).await;
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut older = session.call(1, "wait").begin(server.address).await;
    until(&mut older, "progress").await;
    server.saw(|seen| &seen.started, 2).await;
    server.shutdown.cancel();

    let refused = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, refused).await.unwrap();
    assert!(!server.running.is_finished());

    server.seen.release.add_permits(2);
    let answer = finish(newer).await.handled();
    assert!(answer.body.contains("waited"), "{answer:?}");
    until(&mut older, "waited").await;
    assert_eq!(ended(&mut server).await, Ended { cut: 0 });
    assert_eq!(server.count(|seen| &seen.cancelled), 0);
}

#[tokio::test]
async fn a_call_that_does_not_finish_is_cancelled() {
    let mut settings = open();
    settings.limits.finish_within = Duration::from_millis(300);
    let mut server = Server::start(settings);
    let newer = Request::call("wait").begin(server.address).await;
    let session = Session::begin(server.address, "none").await.unwrap();
    let older = session.call(1, "wait").begin(server.address).await;
    server.saw(|seen| &seen.started, 2).await;
    server.shutdown.cancel();
    assert_eq!(ended(&mut server).await, Ended { cut: 2 });
    server.saw(|seen| &seen.cancelled, 2).await;
    for stream in [newer, older] {
        let rest = String::from_utf8(rest(stream).await).unwrap();
        assert!(!rest.contains("waited"), "{rest}");
    }
}

#[tokio::test]
async fn clients_that_only_listen_or_idle_hold_nothing_up() {
    let mut settings = open();
    settings.limits.finish_within = Duration::from_secs(3600);
    let mut server = Server::start(settings);
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut listens = session.listen().begin(server.address).await;
    until(&mut listens, "text/event-stream").await;
    let mut parameters = meta();
    parameters["notifications"] = serde_json::json!({});
    let _newer = Request::stateless("subscriptions/listen", &parameters)
        .begin(server.address)
        .await;
    let _idle = TcpStream::connect(server.address).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.shutdown.cancel();
    assert_eq!(ended(&mut server).await, Ended { cut: 0 });
}
