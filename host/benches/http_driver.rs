//! Compares a call of a driver of `kind: http` with a plain request by hyper. Measures in pairs:
//! some calls of one, then as many of the other, to the same https server on loopback. Each side
//! uses one connection that stays open.
//!
//! `cargo bench --workspace --bench http_driver` prints one line.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop, and reports"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use toolward_bundle::content::Content;
use toolward_egress::{LookupPermit, Resolve, Resolving, TransportSettings};
use toolward_host::{Host, Request};
use toolward_policy::Policy;

/// Calls in each half of a pair. One half takes some milliseconds.
const CALLS: u32 = 20;
const PAIRS: usize = 1000;

/// About 200 bytes each way.
const INPUT: &str = r#"{"customer":"c-1029","items":[{"sku":"a-1","count":3,"price":12.5},{"sku":"b-2","count":1,"price":99.0}],"note":"leave it with the neighbours, please","urgent":false,"tags":["x","y"]}"#;

struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str, _: LookupPermit) -> Resolving<'a> {
        Box::pin(std::future::ready(Ok(vec![IpAddr::V4(
            Ipv4Addr::LOCALHOST,
        )])))
    }
}

/// An https server for `api.test` that echoes each request, on a separate thread.
struct Server {
    port: u16,
    authority: String,
    root: CertificateDer<'static>,
}

impl Server {
    fn start() -> Server {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = params.self_signed(&key).expect("a certificate");
        let (authority, root) = (root.pem(), root.der().clone());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().expect("a key");
        let own = CertificateParams::new(vec!["api.test".to_owned()]).expect("parameters");
        let own = own.signed_by(&key, &issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .expect("a certificate");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (send, port) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let port = listener.local_addr().expect("an address").port();
                send.send(port).expect("the benchmark waits");
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).expect("an option");
                    let accepting = acceptor.accept(stream);
                    tokio::spawn(async move {
                        let stream = accepting.await.expect("TLS");
                        let echo =
                            service_fn(|request: http::Request<hyper::body::Incoming>| async {
                                let body = request.into_body().collect().await?.to_bytes();
                                let reply = http::Response::builder()
                                    .header("content-type", "application/json")
                                    .body(Full::new(body));
                                Ok::<_, hyper::Error>(reply.expect("a response"))
                            });
                        let serving = hyper::server::conn::http1::Builder::new();
                        let _ = serving.serve_connection(TokioIo::new(stream), echo).await;
                    });
                }
            });
        });
        Server {
            port: port.recv().expect("the server starts"),
            authority,
            root,
        }
    }

    /// Opens a connection in the same way as the host.
    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(("127.0.0.1", self.port))
            .await
            .expect("connects");
        stream.set_nodelay(true).expect("an option");
        let name = ServerName::try_from("api.test").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.expect("TLS");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }

    fn host(&self, directory: &Path) -> Host {
        let port = self.port;
        let write = |path: &str, text: String| {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("writes");
        };
        let bundle = "id = \"bench.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
                      created = \"2026-01-01T00:00:00Z\"\n";
        write("bundle.toml", bundle.to_owned());
        write(
            "tools/orders.send/TOOL.md",
            format!(
                "---\nname: Send\nid: orders.send\ndescription: Sends an order.\nversion: 1.0.0\n\
                 inputs: {{ type: object }}\noutputs: {{ type: object }}\nmutates: [\"network:api.test:{port}\"]\n---\n"
            ),
        );
        write(
            "drivers/orders-http/DRIVER.md",
            format!(
                "---\nname: Orders\nid: orders-http\ndescription: Sends an order.\nversion: 1.0.0\nkind: http\n\
                 base_url: https://api.test:{port}\nnetwork: {{ egress: [\"api.test:{port}\"] }}\nimplements:\n  \
                 - tool: orders.send\n    version: ^1.0.0\n    metadata: {{ http: {{ endpoint: /orders }} }}\n---\n"
            ),
        );
        let content = Content::from_dev(directory).expect("a bundle");
        let policy = format!(
            "[[grant]]\npublisher = {:?}\npreapproved = true\nmutates = [\"network:api.test:{port}\"]\n\
             addresses = [\"127.0.0.1\"]\n",
            content.origin.publisher()
        );
        let transport = TransportSettings {
            resolver: Arc::new(Loopback),
            system_roots: false,
            ca_pem: vec![self.authority.clone().into()],
            ..TransportSettings::default()
        };
        Host::builder()
            .bundle(content)
            .policy(Policy::from_toml(&policy).expect("a policy"))
            .transport(transport.build())
            .build()
            .expect("a host")
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Sends the driver's request, and reads the whole response.
async fn bare(sender: &mut SendRequest<Full<Bytes>>, port: u16) {
    let request = http::Request::post("/orders")
        .header("host", format!("api.test:{port}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(INPUT.as_bytes())))
        .expect("a request");
    sender.ready().await.expect("a connection");
    let reply = sender.send_request(request).await.expect("an answer");
    assert!(reply.status().is_success());
    let body = reply
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    assert_eq!(body.len(), INPUT.len());
}

fn main() {
    let server = Server::start();
    let directory = tempfile::tempdir().expect("a directory");
    let host = server.host(directory.path());
    let runtime = runtime();
    let mut sender = runtime.block_on(server.connect());
    let mut run_bare = || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                bare(&mut sender, server.port).await;
            }
        });
    };
    let run_host = || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let reply = host.call(Request::new("orders.send", INPUT)).await;
                assert!(reply.result.is_ok(), "{}", reply.envelope());
            }
        });
    };
    run_bare();
    run_host();
    let mut bares = Vec::with_capacity(PAIRS);
    let mut over = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        // The order within a pair alternates.
        let (bare, host) = if pair % 2 == 0 {
            let bare = timed(&mut run_bare);
            (bare, timed(run_host))
        } else {
            let host = timed(run_host);
            (timed(&mut run_bare), host)
        };
        bares.push(bare);
        over.push(host - bare);
    }
    let [low, bare, high] = quartiles(bares);
    println!("hyper: {bare:.1} us a request (quartiles {low:.1} to {high:.1})");
    let [low, over, high] = quartiles(over);
    println!("host:  {over:.1} us more (quartiles {low:.1} to {high:.1}, {PAIRS} pairs)");
}

/// Microseconds per call.
fn timed(mut run: impl FnMut()) -> f64 {
    let started = Instant::now();
    run();
    started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

fn quartiles(mut times: Vec<f64>) -> [f64; 3] {
    times.sort_by(f64::total_cmp);
    [1, 2, 3].map(|part| {
        times
            .get(times.len() * part / 4)
            .copied()
            .unwrap_or(f64::NAN)
    })
}
