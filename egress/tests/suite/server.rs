//! Servers that send a test's replies, and remember the requests that they received.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A connection, with or without TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) type Client = Box<dyn Stream>;
type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;
type Behaviour = Arc<dyn Fn(Client, Heard) -> Serving + Send + Sync>;

/// The requests that a server received.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Record>);

#[derive(Default)]
struct Record {
    connections: AtomicUsize,
    closed: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Heard {
    pub(crate) fn connections(&self) -> usize {
        self.0.connections.load(Ordering::SeqCst)
    }

    /// Connections that the client closed, seen by [`Heard::wait_for_end`].
    pub(crate) fn closed(&self) -> usize {
        self.0.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.0.requests.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> String {
        self.requests().pop().expect("a request was heard")
    }

    /// Reads until the client closes, and counts the connection as closed.
    pub(crate) async fn wait_for_end(&self, client: &mut Client) {
        let mut rest = [0; 4096];
        while matches!(client.read(&mut rest).await, Ok(length) if length > 0) {}
        self.0.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// A listener on loopback.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) heard: Heard,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start<F, S>(tls: Option<TlsAcceptor>, behaviour: F) -> Server
    where
        F: Fn(Client, Heard) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        Server::start_at("127.0.0.1:0", tls, behaviour).await
    }

    pub(crate) async fn start_at<F, S>(
        address: &str,
        tls: Option<TlsAcceptor>,
        behaviour: F,
    ) -> Server
    where
        F: Fn(Client, Heard) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let port = listener.local_addr().unwrap().port();
        let heard = Heard::default();
        let behaviour: Behaviour =
            Arc::new(move |client, heard| Box::pin(behaviour(client, heard)));
        let task = tokio::spawn(accept(listener, tls, behaviour, heard.clone()));
        Server { port, heard, task }
    }

    /// Answers every request with `reply`, and keeps the connection.
    pub(crate) async fn replying(reply: impl Into<Vec<u8>>) -> Server {
        Server::start(None, answering(reply.into())).await
    }

    /// Answers every request over TLS with `reply`, and keeps the connection.
    pub(crate) async fn replying_over(tls: TlsAcceptor, reply: impl Into<Vec<u8>>) -> Server {
        Server::start(Some(tls), answering(reply.into())).await
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    behaviour: Behaviour,
    heard: Heard,
) {
    let mut clients = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        heard.0.connections.fetch_add(1, Ordering::SeqCst);
        let (behaviour, heard, tls) = (Arc::clone(&behaviour), heard.clone(), tls.clone());
        clients.spawn(async move {
            let client: Client = match tls {
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => Box::new(stream),
                    Err(_) => return,
                },
                None => Box::new(stream),
            };
            behaviour(client, heard).await;
        });
    }
}

/// Answers every request with `reply`.
pub(crate) fn answering(reply: Vec<u8>) -> impl Fn(Client, Heard) -> Serving + Send + Sync {
    let reply = Arc::new(reply);
    move |mut client, heard| {
        let reply = Arc::clone(&reply);
        Box::pin(async move {
            while read_request(&mut client, &heard).await.is_some() {
                if client.write_all(&reply).await.is_err() {
                    return;
                }
                let _ = client.flush().await;
            }
            heard.0.closed.fetch_add(1, Ordering::SeqCst);
        })
    }
}

/// The head of one request.
pub(crate) async fn read_head(client: &mut Client) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(client.read_u8().await.ok()?);
    }
    Some(text)
}

/// One request, with its body; also kept in `heard`.
pub(crate) async fn read_request(client: &mut Client, heard: &Heard) -> Option<String> {
    let mut text = read_head(client).await?;
    let head = String::from_utf8_lossy(&text).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map(|value| value.trim().parse::<usize>().unwrap());
    if let Some(length) = length {
        let mut body = vec![0; length];
        client.read_exact(&mut body).await.ok()?;
        text.extend_from_slice(&body);
    } else if head.contains("transfer-encoding: chunked") {
        while !text.ends_with(b"\r\n0\r\n\r\n") {
            text.push(client.read_u8().await.ok()?);
        }
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    heard.0.requests.lock().unwrap().push(text.clone());
    Some(text)
}

/// A response with a length.
pub(crate) fn ok(body: &str) -> String {
    reply("200 OK", "", body)
}

/// A response with more headers, each with its line end.
pub(crate) fn reply(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}")
}
