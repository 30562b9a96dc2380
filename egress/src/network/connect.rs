//! Opens connections: the name is resolved once, every answer is checked, and
//! one of exactly these addresses is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::{Duration, Instant};

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::pool::PooledConnection;
use super::resolve::LookupPermit;
use super::shares::Share;
use super::transport::{Egress, Transport};
use crate::address;
use crate::authority::Host;
use crate::clock::Clock;
use crate::error::{Denied, Error, NetworkError, NetworkKind, Rule, Stage};
use crate::origin::Origin;
use crate::rules::HostRule;

/// Addresses that are tried; all are checked.
const MAX_TRIED_ADDRESSES: usize = 8;

/// How long one attempt has before the next address is tried beside it (RFC
/// 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Bytes of a response's head, and of the buffer that bodies are read through.
/// A server that sends more than this before its first body byte means to fill
/// memory.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// How long a lookup runs after its request was dropped.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(60);

/// The route's and the host's permits for one connection.
type Permits = (Share, Share);

/// Opens a connection to `host`, whose addresses one of `rules` must allow.
pub(crate) async fn open(
    egress: &Egress,
    rules: &[&HostRule],
    host: &Host,
    origin: &Origin,
    clock: &Clock,
) -> Result<PooledConnection, Error> {
    let end = clock.end(clock.timeouts.connect);
    let permits = clock
        .within(end, Stage::Queue, pin!(permits(egress)))
        .await?;
    let addresses = addresses(egress, rules, host, origin, clock, end).await?;
    let (stream, address) = clock
        .within(end, Stage::Connect, pin!(dial(&addresses, origin.port)))
        .await??;
    // Requests are written at once; waiting for more only delays them.
    let _ = stream.set_nodelay(true);
    if !origin.https {
        return speak(stream, address, permits).await;
    }
    // TLS is large; plain connections need no room for it.
    Box::pin(async move {
        let connector = clock
            .within(end, Stage::Tls, pin!(connector(egress.transport())))
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
    // Idle connections hold permits: close them when none is left.
    let callers = egress.caller();
    let own = match egress.open().try_take(&callers) {
        Some(permit) => permit,
        None => {
            let _waiter = egress.pool().waiting().enter();
            egress.pool().clear();
            egress.open().take(&callers).await
        }
    };
    let transport = egress.transport();
    let holders = egress.holders();
    let shared = match transport.open().try_take(&holders) {
        Some(permit) => permit,
        None => {
            let _waiter = transport.waiting().enter();
            transport.close_idle();
            transport.open().take(&holders).await
        }
    };
    (own, shared)
}

/// All addresses of a name. A lookup whose request was dropped keeps its permit
/// until it ends: the thread behind it cannot be cancelled.
async fn lookup(egress: &Egress, name: &str) -> Result<Vec<IpAddr>, NetworkError> {
    let failed = |error: io::Error| NetworkError::new(NetworkKind::Dns, error);
    let own = egress.lookups().take(&egress.caller()).await;
    let shared = egress.transport().lookups().take(&egress.holders()).await;
    let permit = LookupPermit::new([own, shared]);
    let resolver = egress.transport().resolver();
    let name = name.to_owned();
    let task = tokio::spawn(async move {
        let resolving = resolver.resolve_with(&name, permit);
        let answer = tokio::time::timeout(LOOKUP_TIMEOUT, resolving).await;
        answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    });
    task.await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(failed)
}

/// The addresses to try: all that the host has, each of them allowed.
async fn addresses(
    egress: &Egress,
    rules: &[&HostRule],
    host: &Host,
    origin: &Origin,
    clock: &Clock,
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
    // One rule must allow every answer: a name with a public and a private
    // address is on its way from one to the other.
    let mut refused = None;
    for rule in rules {
        let checked: Result<Vec<IpAddr>, Denied> = found
            .iter()
            .map(|own| {
                address::check(*own, &rule.addresses).map_err(|kind| {
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

/// Connects to the first that answers, in order, each with a head start.
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
            // There is at least one attempt.
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
    let loaded = match transport.tls().get() {
        Some(loaded) => loaded,
        None => {
            let own = transport.clone();
            let task = tokio::task::spawn_blocking(move || own.load_roots().map(|_| ()));
            task.await
                .map_err(|error| NetworkError::new(NetworkKind::TlsRoots, error))?
                .map_err(|error| NetworkError::new(NetworkKind::TlsRoots, error))?;
            let missing = || NetworkError::new(NetworkKind::TlsRoots, "not loaded");
            transport.tls().get().ok_or_else(missing)?
        }
    };
    loaded.map_err(|error| NetworkError::new(NetworkKind::TlsRoots, error))
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

/// HTTP/1.1 over `stream`. Its task ends with the [`PooledConnection`].
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
    Ok(PooledConnection::new(sender, address, task.abort_handle()))
}
