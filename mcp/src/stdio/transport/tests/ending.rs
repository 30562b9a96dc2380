//! When the end of a connection is noticed.

use std::io::Write as _;
use std::os::unix::net::UnixStream as Client;

use futures_util::FutureExt as _;
use tokio::net::UnixStream;

use super::*;

/// Sends a notification, and waits until the server's end of the socket has it.
async fn notify(client: &mut Client, server_end: &UnixStream) {
    let message = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    client.write_all(message).unwrap();
    client.write_all(b"\n").unwrap();
    let arrived = tokio::time::timeout(TEST_TIMEOUT, server_end.readable());
    arrived.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_message_that_has_arrived_is_read_before_the_end_and_none_after_it() {
    let (mut client, server) = Client::pair().unwrap();
    server.set_nonblocking(true).unwrap();
    let server_end = UnixStream::from_std(server.try_clone().unwrap()).unwrap();
    let (input, output) = UnixStream::from_std(server).unwrap().into_split();
    let end = CancellationToken::new();
    let threads = CallThreads::of_connection();
    let writer = LineWriter::to(output);
    let mut server = StdioTransport::new(input, writer, threads, end.clone(), end.clone());
    {
        let mut receiving = pin!(server.receive());
        assert!(receiving.as_mut().now_or_never().is_none());
        notify(&mut client, &server_end).await;
        end.cancel();
        let received = tokio::time::timeout(TEST_TIMEOUT, receiving).await.unwrap();
        assert!(
            matches!(received, Some(JsonRpcMessage::Notification(_))),
            "{received:?}"
        );
    }
    notify(&mut client, &server_end).await;
    let received = tokio::time::timeout(TEST_TIMEOUT, server.receive()).await;
    assert!(received.unwrap().is_none());
}
