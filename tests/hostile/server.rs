//! A plain HTTP server on loopback that stores the requests that it gets.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_egress::{LookupPermit, Resolve, Resolving, Transport, TransportSettings};

/// A listener, and the data that arrived.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

/// Returns the bytes of the answer to a request, or `None` to send nothing.
type Respond = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

impl Server {
    /// Answers each request with the result of `respond` for its text.
    pub(crate) fn start(respond: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, connections, stop) = (
            server.seen.clone(),
            server.connections.clone(),
            server.stop.clone(),
        );
        let respond: Arc<Respond> = Arc::new(respond);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                connections.fetch_add(1, Ordering::AcqRel);
                let (seen, respond) = (seen.clone(), respond.clone());
                if let Ok(stream) = stream {
                    std::thread::spawn(move || serve(stream, &seen, &*respond));
                }
            }
        });
        server
    }

    /// Answers everything with `200` and this body.
    pub(crate) fn saying(body: &'static str) -> Self {
        Self::start(move |_| Some(ok(body)))
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the number of connections so far, including connections without a request.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Asserts that no connection reached this listener.
    pub(crate) fn assert_untouched(&self, why: &str) {
        assert_eq!(self.connections(), 0, "{why}: {:?}", self.seen());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// `200` with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ncontent-type: text/plain\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, respond: &Respond) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    while let Some(request) = read(&mut stream) {
        seen.lock().unwrap().push(request.clone());
        match respond(&request) {
            Some(answer) => {
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
            // Sends nothing, and waits for the other side to give up.
            None => {
                let _ = stream.read(&mut [0; 1]);
                return;
            }
        }
    }
}

/// Reads one request; `None` at the end of the connection.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    bytes.extend(body);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Answers each lookup, for any name, with the next of these lists. The last list is repeated.
pub(crate) struct Answers {
    lists: Vec<Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Answers {
    pub(crate) fn new(lists: &[&[&str]]) -> Self {
        Self {
            lists: lists
                .iter()
                .map(|list| list.iter().map(|text| text.parse().unwrap()).collect())
                .collect(),
            asked: AtomicUsize::new(0),
        }
    }

    /// Returns the number of lookups.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }
}

impl Resolve for Answers {
    fn resolve<'a>(&'a self, _host: &'a str, _: LookupPermit) -> Resolving<'a> {
        let asked = self.asked.fetch_add(1, Ordering::AcqRel);
        let list = self.lists[asked.min(self.lists.len() - 1)].clone();
        Box::pin(std::future::ready(Ok(list)))
    }
}

/// A transport whose names all lead to loopback.
pub(crate) fn to_loopback() -> Transport {
    resolving(Arc::new(Answers::new(&[&["127.0.0.1"]])))
}

pub(crate) fn resolving(answers: Arc<Answers>) -> Transport {
    let settings = TransportSettings {
        resolver: answers,
        system_roots: false,
        ..TransportSettings::default()
    };
    settings.build()
}
