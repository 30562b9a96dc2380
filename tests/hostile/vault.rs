//! An https server on loopback, with its own certificate authority.

use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};
use toolward_egress::{Transport, TransportSettings};

use crate::server::{Answers, ok};

/// An https server for `api.test` and `evil.test`, with the requests that it got.
pub(crate) struct Vault {
    pub(crate) port: u16,
    pem: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Vault {
    pub(crate) async fn saying(body: &'static str) -> Self {
        Self::start(move |_| ok(body)).await
    }

    pub(crate) async fn start(respond: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let (acceptor, pem) = certified(&["api.test", "evil.test"]);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let vault = Self {
            port: listener.local_addr().unwrap().port(),
            pem,
            seen: Arc::default(),
        };
        let (seen, respond) = (vault.seen.clone(), Arc::new(respond));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, respond) = (seen.clone(), respond.clone());
                let accepting = acceptor.accept(stream);
                tokio::spawn(async move {
                    let Ok(mut stream) = accepting.await else {
                        return;
                    };
                    let mut bytes = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        bytes.push(byte);
                        if !bytes.ends_with(b"\r\n\r\n") {
                            continue;
                        }
                        let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
                        let length = head
                            .lines()
                            .find_map(|line| line.strip_prefix("content-length:"))
                            .and_then(|length| length.trim().parse().ok());
                        let mut body = vec![0; length.unwrap_or(0)];
                        if stream.read_exact(&mut body).await.is_err() {
                            return;
                        }
                        bytes.extend(body);
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        seen.lock().unwrap().push(text.clone());
                        bytes.clear();
                        if stream.write_all(&respond(&text)).await.is_err() {
                            return;
                        }
                        let _ = stream.flush().await;
                    }
                });
            }
        });
        vault
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://api.test:{}{path}", self.port)
    }

    pub(crate) fn transport(&self) -> Transport {
        let settings = TransportSettings {
            resolver: Arc::new(Answers::new(&[&["127.0.0.1"]])),
            system_roots: false,
            ca_pem: vec![self.pem.clone().into()],
            ..TransportSettings::default()
        };
        settings.build()
    }

    /// Asserts that no request to the server contains the value.
    pub(crate) fn assert_not_told(&self, value: &str, why: &str) {
        assert!(
            self.seen().iter().all(|request| !request.contains(value)),
            "{why}: {:?}",
            self.seen()
        );
    }
}

fn certified(names: &[&str]) -> (TlsAcceptor, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), pem)
}
