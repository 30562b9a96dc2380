//! TLS: the server must prove its name, by the configured roots.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::PrivateKeyDer;
use tokio_rustls::TlsAcceptor;
use toolward_egress::{NoSecrets, Rules, Transport, TransportSettings};
use toolward_policy::HostGrant;

use crate::server::{Server, ok};
use crate::world::{Names, code, deadline, limits, local, on_terms, send_get, text, transport};

/// A certificate authority of a test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Authority { issuer, pem }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A server's side of TLS, for `names`.
    pub(crate) fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn https(host: &str, port: u16) -> HostGrant {
    on_terms(local(host, port), |terms| {
        terms.plain_http = false;
    })
}

async fn fetch(transport: &Transport, host: &str, port: u16) -> &'static str {
    let rules = Rules::new(vec![https(host, port)], Vec::new()).unwrap();
    let call = transport.egress("alpha", Arc::new(rules)).call(
        limits(),
        deadline(),
        None,
        Arc::new(NoSecrets),
    );
    code(send_get(&call, &format!("https://{host}:{port}/")).await)
}

#[tokio::test]
async fn a_server_proves_its_name_to_a_known_authority() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let transport = TransportSettings {
        ca_pem: vec![ours.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    let good = Server::replying_over(ours.acceptor(&["a.example"]), ok("")).await;
    assert_eq!(fetch(&transport, "a.example", good.port).await, "sent");
    assert_eq!(
        fetch(&transport, "b.example", good.port).await,
        "tls-certificate"
    );
    let unknown = Server::replying_over(theirs.acceptor(&["a.example"]), ok("")).await;
    assert_eq!(
        fetch(&transport, "a.example", unknown.port).await,
        "tls-certificate"
    );
    assert_eq!(unknown.heard.requests().len(), 0);
    assert_eq!(good.heard.requests().len(), 1);
}

#[tokio::test]
async fn an_address_is_proven_too() {
    let authority = Authority::new();
    let transport = TransportSettings {
        ca_pem: vec![authority.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    let good = Server::replying_over(authority.acceptor(&["127.0.0.1"]), ok("")).await;
    assert_eq!(fetch(&transport, "127.0.0.1", good.port).await, "sent");
    let name = Server::replying_over(authority.acceptor(&["a.example"]), ok("")).await;
    assert_eq!(
        fetch(&transport, "127.0.0.1", name.port).await,
        "tls-certificate"
    );
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_hears_no_request() {
    let authority = Authority::new();
    let transport = TransportSettings {
        ca_pem: vec![authority.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    let plain = Server::start(None, |mut client, _| async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut start = [0; 5];
        client.read_exact(&mut start).await.unwrap();
        assert_eq!(start[0], 22, "a handshake");
        client.write_all(ok("").as_bytes()).await.unwrap();
    })
    .await;
    assert_eq!(
        fetch(&transport, "a.example", plain.port).await,
        "tls-protocol"
    );
}

#[tokio::test]
async fn without_roots_nobody_is_trusted() {
    let authority = Authority::new();
    let server = Server::replying_over(authority.acceptor(&["a.example"]), ok("")).await;
    let none = transport(&Names::local()).build();
    assert_eq!(fetch(&none, "a.example", server.port).await, "tls-roots");
    assert!(none.load_roots().is_err());
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n",
    ] {
        let odd = TransportSettings {
            ca_pem: vec![pem.into()],
            ..transport(&Names::local())
        }
        .build();
        assert!(odd.load_roots().is_err(), "{pem:?}");
    }
    assert_eq!(server.heard.requests().len(), 0);
}

#[tokio::test]
async fn roots_are_loaded_when_asked() {
    let authority = Authority::new();
    let transport = TransportSettings {
        ca_pem: vec![authority.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    assert_eq!(transport.load_roots(), Ok(1));
    let server = Server::replying_over(authority.acceptor(&["a.example"]), ok("x")).await;
    assert_eq!(fetch(&transport, "a.example", server.port).await, "sent");
}

#[tokio::test]
async fn a_tls_connection_is_kept_for_the_next_request() {
    let authority = Authority::new();
    let server = Server::replying_over(authority.acceptor(&["a.example"]), ok("hello")).await;
    let transport = TransportSettings {
        ca_pem: vec![authority.pem().into()],
        ..transport(&Names::local())
    }
    .build();
    let rules = Rules::new(vec![https("a.example", server.port)], Vec::new()).unwrap();
    let call = transport.egress("alpha", Arc::new(rules)).call(
        limits(),
        deadline(),
        None,
        Arc::new(NoSecrets),
    );
    for _ in 0..10 {
        let url = format!("https://a.example:{}/", server.port);
        let response = send_get(&call, &url).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "hello");
    }
    assert_eq!(server.heard.connections(), 1);
    let host = format!("host: a.example:{}\r\n", server.port);
    assert!(server.heard.last().contains(&host));
}
