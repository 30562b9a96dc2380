//! https on this machine, with a certificate authority of the test.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

/// A certificate authority and a certificate signed by it, by default for `localhost`. All in PEM.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    certificate: String,
    key: String,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        Self::of(&["localhost"])
    }

    /// Makes certificates for these names.
    pub(crate) fn of(names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>(),
        )
        .unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        Self {
            authority,
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Writes certificate and key to a registry's folder. Returns the lines of configuration that
    /// name them.
    pub(super) fn for_registry(&self, folder: &Path) -> String {
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        fs::write(&certificate, &self.certificate).unwrap();
        fs::write(&key, &self.key).unwrap();
        format!(
            "  tls:\n    certificate: {}\n    key: {}\n",
            certificate.display(),
            key.display()
        )
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A web server with files, over https.
pub(crate) struct SecureWeb {
    pub(crate) port: u16,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    // Its tasks end with the runtime.
    _runtime: tokio::runtime::Runtime,
}

impl SecureWeb {
    pub(crate) fn start(certificates: &Certificates) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let (acceptor, served) = (certificates.acceptor(), Arc::clone(&files));
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap().port()).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let (accepting, files) = (acceptor.accept(stream), Arc::clone(&served));
                tokio::spawn(async move {
                    let Ok(mut stream) = accepting.await else {
                        return;
                    };
                    let mut head = Vec::new();
                    while let Ok(byte) = stream.read_u8().await {
                        head.push(byte);
                        if head.ends_with(b"\r\n\r\n") {
                            break;
                        }
                    }
                    let head = String::from_utf8_lossy(&head).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default();
                    let name = path.trim_start_matches('/');
                    let file = files.lock().unwrap().get(name).cloned();
                    let status = if file.is_some() {
                        "200 OK"
                    } else {
                        "404 Not Found"
                    };
                    let body = file.unwrap_or_default();
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(head.as_bytes()).await;
                    let _ = stream.write_all(&body).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self {
            port: told.recv().unwrap(),
            files,
            _runtime: runtime,
        }
    }

    pub(super) fn put(&self, name: &str, bytes: Vec<u8>) {
        self.files.lock().unwrap().insert(name.to_owned(), bytes);
    }
}
