//! The real registry behind names that only a proxy on this machine knows: `registry.example` over
//! TLS, which requires a token from `auth.example` and redirects blobs to `blobs.example` or to a
//! host that a test sets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, mpsc};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::registry::Server;
use super::secure::Certificates;
use crate::support::{Machine, Run};

const HOSTS: [&str; 4] = [
    "registry.example",
    "auth.example",
    "blobs.example",
    "other.example",
];

/// The base64 form of `me:hunter2` and `ci:s3cret`.
const PROXY_LOGIN: &str = "Basic bWU6aHVudGVyMg==";
const REGISTRY_LOGIN: &str = "Basic Y2k6czNjcmV0";

/// A request that one of the hosts got.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) host: String,
    pub(super) line: String,
    pub(super) authorization: Option<String>,
}

/// The hosts that the registry names.
#[derive(Debug)]
struct Named {
    /// The hosts to which it redirects blobs, one after the other. The last one is repeated.
    blobs: VecDeque<String>,
    realm: String,
}

/// The registry, its front and the proxy. They run until this is dropped.
pub(super) struct Fronted {
    /// The port of the proxy.
    port: u16,
    pub(super) authority: String,
    /// The hosts that were requested from the proxy.
    tunnels: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<Seen>>>,
    named: Arc<Mutex<Named>>,
    _registry: Server,
    _runtime: tokio::runtime::Runtime,
}

impl Fronted {
    /// Starts everything, or reports visibly that no registry is installed.
    pub(super) fn start() -> Option<Self> {
        let registry = Server::start()?;
        let certificates = Certificates::of(&HOSTS);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (tunnels, requests) = (Arc::default(), Arc::default());
        let named = Arc::new(Mutex::new(Named {
            blobs: ["https://blobs.example".to_owned()].into(),
            realm: "https://auth.example/token".to_owned(),
        }));
        let front = Front {
            named: Arc::clone(&named),
            acceptor: certificates.acceptor(),
            registry: registry.address.clone(),
            tunnels: Arc::clone(&tunnels),
            requests: Arc::clone(&requests),
        };
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let front = front.clone();
                // A client that disconnects does not fail the test.
                tokio::spawn(async move { front.tunnel(stream).await.ok() });
            }
        });
        Some(Self {
            port: told.recv().unwrap(),
            authority: certificates.authority,
            tunnels,
            requests,
            named,
            _registry: registry,
            _runtime: runtime,
        })
    }

    /// Returns a run that knows the proxy and the registry's password.
    pub(super) fn toolward(&self, machine: &Machine, words: &str) -> Run {
        let proxy = format!("http://me:hunter2@127.0.0.1:{}", self.port);
        let run = machine.toolward(words).env("HTTPS_PROXY", proxy);
        run.env("REGISTRY_PASSWORD", "s3cret")
    }

    /// Returns the proxy's address without a login.
    pub(super) fn bare_proxy(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the `[[registry]]` with all needed lines, except the line with the key `without`.
    pub(super) fn table(&self, machine: &Machine, without: &str) -> String {
        let folder = machine.home().join(".config/toolward");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), &self.authority).unwrap();
        let lines = [
            "host = \"registry.example\"",
            "ca_file = \"ca.pem\"",
            "username = \"ci\"",
            "password = { env = \"REGISTRY_PASSWORD\" }",
            "realm = \"https://auth.example\"",
            "redirects_to = [\"https://blobs.example\"]",
        ];
        let lines = lines
            .iter()
            .filter(|line| !line.starts_with(without) || without.is_empty());
        let lines: Vec<String> = lines.map(|line| format!("{line}\n")).collect();
        format!("[[registry]]\n{}", lines.concat())
    }

    /// Makes the registry redirect its blobs to these hosts, one after the other.
    pub(super) fn redirects(&self, blobs: &[&str]) {
        let blobs = blobs.iter().map(|one| (*one).to_owned());
        self.named.lock().unwrap().blobs = blobs.collect();
    }

    /// Makes the registry name another realm.
    pub(super) fn names(&self, realm: &str) {
        realm.clone_into(&mut self.named.lock().unwrap().realm);
    }

    /// Returns the hosts that were requested from the proxy since the last call.
    pub(super) fn tunnels(&self) -> Vec<String> {
        std::mem::take(&mut self.tunnels.lock().unwrap())
    }

    /// Returns the requests that the hosts got since the last call.
    pub(super) fn requests(&self) -> Vec<Seen> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

#[derive(Clone)]
struct Front {
    acceptor: tokio_rustls::TlsAcceptor,
    registry: String,
    tunnels: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<Seen>>>,
    named: Arc<Mutex<Named>>,
}

/// The head of a request.
struct Head {
    line: String,
    headers: BTreeMap<String, String>,
}

impl Head {
    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default().to_owned();
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Ok(Self {
            line,
            headers: headers.collect(),
        })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

impl Front {
    /// Serves one connection to the proxy.
    async fn tunnel(&self, mut stream: TcpStream) -> io::Result<()> {
        let head = Head::read(&mut stream).await?;
        self.tunnels.lock().unwrap().push(head.line.clone());
        let target = head.line.strip_prefix("CONNECT ").unwrap_or_default();
        let known = HOSTS
            .iter()
            .any(|host| target.starts_with(&format!("{host}:443 ")));
        if head.header("proxy-authorization") != Some(PROXY_LOGIN) {
            return answer(&mut stream, "407 Proxy Authentication Required", "", "").await;
        }
        if !known {
            return answer(&mut stream, "403 Forbidden", "", "").await;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        let mut stream = self.acceptor.accept(stream).await?;
        self.serve(&mut stream).await
    }

    /// Serves one request to one of the hosts.
    async fn serve(&self, stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> io::Result<()> {
        let head = Head::read(stream).await?;
        let host = head.header("host").unwrap_or_default();
        let authorization = head.header("authorization");
        self.requests.lock().unwrap().push(Seen {
            host: host.to_owned(),
            line: head.line.clone(),
            authorization: authorization.map(str::to_owned),
        });
        let path = head.line.split(' ').nth(1).unwrap_or_default();
        match (host, authorization) {
            ("auth.example", Some(REGISTRY_LOGIN)) => {
                answer(stream, "200 OK", "", "{\"token\":\"granted\"}").await
            }
            ("auth.example", _) => answer(stream, "401 Unauthorized", "", "").await,
            ("blobs.example" | "other.example", None) => self.forward(&head, stream).await,
            ("registry.example", Some("Bearer granted")) => {
                if head.line.starts_with("GET ") && path.contains("/blobs/") {
                    let location = format!("Location: {}{path}\r\n", self.next_target());
                    return answer(stream, "307 Temporary Redirect", &location, "").await;
                }
                self.forward(&head, stream).await
            }
            ("registry.example", _) => {
                let realm = self.named.lock().unwrap().realm.clone();
                let challenge =
                    format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"s\"\r\n");
                answer(stream, "401 Unauthorized", &challenge, "").await
            }
            _ => answer(stream, "400 Bad Request", "", "").await,
        }
    }

    /// Returns the host to which the next blob is redirected.
    fn next_target(&self) -> String {
        let mut named = self.named.lock().unwrap();
        let next = match named.blobs.len() {
            1 => named.blobs.front().cloned(),
            _ => named.blobs.pop_front(),
        };
        next.unwrap()
    }

    /// Sends a request to the real registry.
    async fn forward(
        &self,
        head: &Head,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let mut text = format!("{}\r\n", head.line);
        for (name, value) in &head.headers {
            if !["authorization", "connection"].contains(&name.as_str()) {
                text += &format!("{name}: {value}\r\n");
            }
        }
        text += "X-Forwarded-Proto: https\r\nConnection: close\r\n\r\n";
        let length = head
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let mut registry = TcpStream::connect(&self.registry).await?;
        registry.write_all(text.as_bytes()).await?;
        registry.write_all(&body).await?;
        tokio::io::copy(&mut registry, stream).await?;
        stream.shutdown().await
    }
}

async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    status: &str,
    more: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
