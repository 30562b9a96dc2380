//! Opens connections. The name is resolved once, every address is checked, and only these addresses
//! are connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use toolward_policy::HostGrant;

use super::pool::PooledConnection;
use super::shares::FairPermit;
use super::{Egress, LookupPermit, Transport, TransportSettings};
use crate::address;
use crate::authority::{Host, Origin};
use crate::call_state::RequestClock;
use crate::error::{Denied, Error, NetworkError, NetworkKind, Rule, Stage};

/// The most addresses that are tried; all addresses are checked.
const MAX_TRIED_ADDRESSES: usize = 8;

/// How long one attempt has before the next address is tried as well (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The most bytes of a response's head, and of the buffer for reading bodies. A server that sends a
/// longer head is trying to fill memory.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// How long a lookup may run, even after its request was dropped.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(60);

/// The permits of the route and of the transport for one connection.
type Permits = (FairPermit, FairPermit);

/// Opens a connection to `host`, whose addresses one of `rules` must allow.
pub(crate) async fn open(
    egress: &Egress,
    rules: &[&HostGrant],
    host: &Host,
    origin: &Origin,
    clock: &RequestClock,
) -> Result<PooledConnection, Error> {
    let end = clock.end(clock.timeouts.connect);
    let permits = clock
        .within(end, Stage::Queue, pin!(permits(egress)))
        .await?;
    let addresses = addresses(egress, rules, host, origin, clock, end).await?;
    let (stream, address) = clock
        .within(end, Stage::Connect, pin!(dial(&addresses, origin.port)))
        .await??;
    // Requests are written in one piece, so waiting for more data only delays them.
    let _ = stream.set_nodelay(true);
    if !origin.https {
        return speak(stream, address, permits).await;
    }
    // The TLS future is large. It is boxed, so that plain connections need no room for it.
    Box::pin(async move {
        let connector = clock
            .within(end, Stage::Tls, pin!(connector(&egress.route.transport)))
            .await??;
        let name = server_name(host)?;
        let stream = clock
            .within(end, Stage::Tls, pin!(connector.connect(name, stream)))
            .await?
            .map_err(|error| tls_error(&error))?;
        speak(stream, address, permits).await
    })
    .await
}

async fn permits(egress: &Egress) -> Permits {
    // Idle connections hold permits, so they are closed when no permit is left.
    let callers = egress.caller();
    let own = match egress.route.open.try_take(&callers) {
        Some(permit) => permit,
        None => {
            let _waiter = egress.route.pool.waiting().enter();
            egress.route.pool.clear();
            egress.route.open.take(&callers).await
        }
    };
    let transport = &egress.route.transport;
    let holders = egress.holders();
    let shared = match transport.0.open.try_take(&holders) {
        Some(permit) => permit,
        None => {
            let _waiter = transport.0.waiting.enter();
            transport.close_idle();
            transport.0.open.take(&holders).await
        }
    };
    (own, shared)
}

/// Returns all addresses of a name. A lookup whose request was dropped keeps its permit until it
/// ends, since its thread cannot be cancelled.
async fn lookup(egress: &Egress, name: &str) -> Result<Vec<IpAddr>, NetworkError> {
    let failed = |error: io::Error| NetworkError::new(NetworkKind::Dns, error);
    let transport = &egress.route.transport.0;
    let own = egress.route.lookups.take(&egress.caller()).await;
    let shared = transport.lookups.take(&egress.holders()).await;
    let permit = LookupPermit {
        _shares: Arc::new([own, shared]),
    };
    let resolver = Arc::clone(&transport.settings.resolver);
    let name = name.to_owned();
    let task = tokio::spawn(async move {
        let _permit = permit.clone();
        let resolving = resolver.resolve(&name, permit);
        let answer = tokio::time::timeout(LOOKUP_TIMEOUT, resolving).await;
        answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    });
    task.await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(failed)
}

/// Returns the addresses to try, if all addresses of the host are allowed.
async fn addresses(
    egress: &Egress,
    rules: &[&HostGrant],
    host: &Host,
    origin: &Origin,
    clock: &RequestClock,
    end: Instant,
) -> Result<Vec<IpAddr>, Error> {
    let found = match host {
        Host::V4(address) => vec![IpAddr::V4(*address)],
        Host::V6(address) => vec![IpAddr::V6(*address)],
        Host::Name(name) => {
            clock
                .within(end, Stage::Resolve, pin!(lookup(egress, name)))
                .await??
        }
    };
    if found.is_empty() {
        return Err(NetworkError::new(NetworkKind::Dns, "the name has no address").into());
    }
    // One rule must allow all addresses. A name with both a public and a private address may be
    // changing from the public to the private one.
    let mut refused = None;
    for rule in rules {
        let checked: Result<Vec<IpAddr>, Denied> = found
            .iter()
            .map(|own| {
                address::check(*own, &rule.terms.addresses).map_err(|kind| {
                    let subject = format!("{}:{} at {own}: {kind}", origin.host, origin.port);
                    Denied::new(Rule::Address, subject)
                })
            })
            .collect();
        match checked {
            Ok(mut addresses) => {
                addresses.truncate(MAX_TRIED_ADDRESSES);
                return Ok(addresses);
            }
            Err(denied) => refused = refused.or(Some(denied)),
        }
    }
    let refused = refused.unwrap_or_else(|| Denied::new(Rule::HostNotGranted, &origin.host));
    Err(refused.into())
}

/// Connects to the first address that answers. Addresses are tried in order, each with a head start
/// over the next.
async fn dial(addresses: &[IpAddr], port: u16) -> Result<(TcpStream, IpAddr), NetworkError> {
    let mut failure = None;
    let mut attempts = JoinSet::new();
    let mut left = addresses.iter().copied().peekable();
    loop {
        if let Some(address) = left.next() {
            let target = SocketAddr::new(address, port);
            attempts.spawn(async move { (TcpStream::connect(target).await, address) });
        } else if attempts.is_empty() {
            break;
        }
        let more = left.peek().is_some();
        tokio::select! {
            // At least one attempt is running, so `join_next` returns one.
            Some(attempt) = attempts.join_next() => match attempt {
                Ok((Ok(stream), address)) => return Ok((stream, address)),
                Ok((Err(error), _)) => failure = Some(NetworkError::new(NetworkKind::Connect, error)),
                Err(error) => failure = Some(NetworkError::new(NetworkKind::Connect, error)),
            },
            () = tokio::time::sleep(ATTEMPT_DELAY), if more => {}
        }
    }
    Err(failure.unwrap_or_else(|| NetworkError::new(NetworkKind::Connect, "no address")))
}

async fn connector(transport: &Transport) -> Result<TlsConnector, NetworkError> {
    if transport.0.tls.get().is_none() {
        let own = transport.clone();
        let task = tokio::task::spawn_blocking(move || own.load_roots());
        let loaded = task.await.map(|_| ());
        loaded.map_err(|error| NetworkError::new(NetworkKind::TlsRoots, error))?;
    }
    match transport.0.tls.get() {
        Some(Ok((connector, _))) => Ok(connector.clone()),
        Some(Err(error)) => Err(NetworkError::new(NetworkKind::TlsRoots, error)),
        None => Err(NetworkError::new(NetworkKind::TlsRoots, "not loaded")),
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, Denied> {
    match host {
        Host::V4(address) => Ok(ServerName::from(IpAddr::V4(*address))),
        Host::V6(address) => Ok(ServerName::from(IpAddr::V6(*address))),
        Host::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|_| Denied::new(Rule::Host, name))
        }
    }
}

fn tls_error(error: &io::Error) -> NetworkError {
    let inner = error.get_ref();
    let kind = match inner.and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => NetworkKind::TlsCertificate,
        _ => NetworkKind::TlsProtocol,
    };
    NetworkError::new(kind, error)
}

/// Starts HTTP/1.1 over `stream`. The connection's task ends with the [`PooledConnection`].
async fn speak<S>(stream: S, address: IpAddr, permits: Permits) -> Result<PooledConnection, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD).max_header_size(MAX_HEAD);
    let spoken = builder.handshake(TokioIo::new(stream)).await;
    let failed = |error| NetworkError::new(NetworkKind::HttpProtocol, error);
    let (sender, connection) = spoken.map_err(failed)?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%address, %error, "a connection ended");
        }
        drop(permits);
    });
    let task = task.abort_handle();
    Ok(PooledConnection {
        sender,
        address,
        task,
    })
}

/// Why the certificate authorities could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RootsError(String);

/// The TLS connector, and the number of authorities that it trusts.
pub(crate) type LoadedRoots = Result<(TlsConnector, usize), RootsError>;

/// Loads the authorities. Reads files.
pub(crate) fn load(settings: &TransportSettings) -> LoadedRoots {
    let mut store = RootCertStore::empty();
    let mut problems = Vec::new();
    if settings.system_roots {
        let system = rustls_native_certs::load_native_certs();
        problems.extend(system.errors.iter().map(ToString::to_string));
        // Roots that can't be parsed, such as very old certificates, are skipped.
        store.add_parsable_certificates(system.certs);
    }
    for pem in &settings.ca_pem {
        let before = store.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate
                .map_err(|error| RootsError(format!("expected certificates in PEM: {error}")))?;
            store
                .add(certificate)
                .map_err(|error| RootsError(format!("expected an authority: {error}")))?;
        }
        if store.len() == before {
            return Err(RootsError(
                "expected at least one certificate in PEM, found none".to_owned(),
            ));
        }
    }
    if store.is_empty() {
        problems.insert(0, "no certificate authority was found".to_owned());
        return Err(RootsError(problems.join("; ")));
    }
    let count = store.len();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| RootsError(error.to_string()))?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsConnector::from(Arc::new(config)), count))
}
