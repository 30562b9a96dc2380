//! Shutting down: nothing new, what runs may finish, nothing waits for ever.

use std::time::Duration;

use tokio::net::TcpStream;
use toolward_mcp::http::Ended;

use crate::client::{Request, Session, TEST_TIMEOUT, finish, meta, rest, until};
use crate::fixture::{Server, open};

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
