//! Clients that disconnect, and clients that come back.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::client::{Request, Session, TEST_TIMEOUT, rest, until};
use crate::fixture::{Server, open};

#[tokio::test]
async fn in_the_newer_era_a_client_that_vanishes_cancels_its_call_at_once() {
    let mut settings = open();
    // In this time, a client of the older era could come back.
    settings.limits.resume_within = Duration::from_secs(3600);
    let server = Server::start(settings);
    let stream = Request::call("wait").begin(server.address).await;
    server.saw(|seen| &seen.started, 1).await;
    drop(stream);
    server.saw(|seen| &seen.cancelled, 1).await;
    assert_eq!(server.count(|seen| &seen.finished), 0);
}

#[tokio::test]
async fn a_client_that_closes_its_half_cancels_its_call() {
    let server = Server::start(open());
    let mut stream = Request::call("wait").begin(server.address).await;
    server.saw(|seen| &seen.started, 1).await;
    stream.shutdown().await.unwrap();
    server.saw(|seen| &seen.cancelled, 1).await;
    assert_eq!(rest(stream).await, b"");
}

#[tokio::test]
async fn in_the_older_era_a_client_that_stays_away_cancels_its_call() {
    let mut settings = open();
    settings.limits.resume_within = Duration::from_millis(300);
    let server = Server::start(settings);
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut stream = session.call(1, "wait").begin(server.address).await;
    until(&mut stream, "progress").await;
    let mut other = session.call(2, "wait").begin(server.address).await;
    until(&mut other, "progress").await;
    drop(stream);
    server.saw(|seen| &seen.cancelled, 1).await;
    // The other call of the same session continues.
    server.seen.release.add_permits(1);
    until(&mut other, "waited").await;
    assert_eq!(server.count(|seen| &seen.cancelled), 1);
}

#[tokio::test]
async fn in_the_older_era_a_client_that_comes_back_in_time_gets_its_result() {
    let mut settings = open();
    settings.limits.resume_within = Duration::from_secs(6);
    let server = Server::start(settings);
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut stream = session.call(1, "wait").begin(server.address).await;
    let seen = until(&mut stream, "progressToken").await;
    let event = seen
        .lines()
        .filter_map(|line| line.strip_prefix("id: ").or(line.strip_prefix("id:")))
        .next_back()
        .unwrap()
        .trim()
        .to_owned();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut again = session
        .listen()
        .header("Last-Event-ID", &event)
        .begin(server.address)
        .await;
    until(&mut again, "text/event-stream").await;
    // Longer than the call would have continued without its client.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(server.count(|seen| &seen.cancelled), 0);
    server.seen.release.add_permits(1);
    until(&mut again, "waited").await;
}

#[tokio::test]
async fn a_call_whose_client_has_gone_takes_its_room_until_it_has_ended() {
    let mut settings = open();
    settings.limits.resume_within = Duration::from_secs(6);
    settings.limits.requests = 1;
    let server = Server::start(settings);
    let session = Session::begin(server.address, "none").await.unwrap();
    let mut stream = session.call(1, "wait").begin(server.address).await;
    until(&mut stream, "progress").await;
    drop(stream);
    // Gives the server time to see that no one reads its answer any more.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let refused = session.call(2, "wait").send(server.address).await;
    refused.is(429, "too-many-requests");
    assert_eq!(server.count(|seen| &seen.cancelled), 0);

    server.saw(|seen| &seen.cancelled, 1).await;
    let began = Instant::now();
    while session.call(3, "who").send(server.address).await.status != 200 {
        assert!(
            began.elapsed() < TEST_TIMEOUT,
            "its room was not given back"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.count(|seen| &seen.started), 1);
}
