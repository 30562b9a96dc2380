//! The server itself: accepts connections, passes their requests on, and lets calls finish at
//! shutdown.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::concurrency::{Concurrency, MemoryBudget};
use super::connection::ConnectionServer;
use super::connections::Connections;
use super::guard::{Guard, pass_names, routes};
use super::host_header::AllowedNames;
use super::sessions::Sessions;
use super::{HttpError, HttpLimits, Settings};

/// Bytes of a connection that are buffered before they are parsed. A request's head must fit.
const MAX_READ_BUFFER: usize = 64 * 1024;

/// The most headers of a request.
const MAX_HEADERS: usize = 64;

/// The interval of keep-alives on a stream, by which a vanished client is detected.
const SSE_KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How long to wait when the system has no room for another connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Connections that were cut off, because their requests took too long.
    pub cut: usize,
}

/// Listens at an address, with the largest backlog that the system allows. A flood fills the
/// standard library's default, and a client retries a connection beyond the backlog only after a
/// second. Call this function before the process confines itself.
///
/// # Errors
///
/// If the address can't be used, for example because another process uses it.
pub fn bind(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    rustix::net::listen(&listener, i32::MAX)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Checks that [`serve`] accepts these settings at an address. Call this function before the server
/// is announced.
///
/// # Errors
///
/// If no token is required: if the address is not a loopback address, or if an allowed origin can
/// be any page. In any case: if clients can't name the address and the settings list no names, or
/// if a name is not valid.
pub fn check(address: SocketAddr, settings: &Settings) -> Result<(), HttpError> {
    AllowedNames::new(address, settings).map(drop)
}

/// A listener, and the names that requests to it may carry.
type AllowedListener = (TcpListener, Arc<AllowedNames>);

pub(super) fn allowed_listener(
    listener: std::net::TcpListener,
    settings: &Settings,
) -> Result<AllowedListener, HttpError> {
    let address = listener.local_addr().map_err(HttpError::Listener)?;
    let names = Arc::new(AllowedNames::new(address, settings)?);
    let listener = listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener));
    let listener = listener.map_err(HttpError::Listener)?;
    Ok((listener, names))
}

/// Serves on a listening socket until `shutdown` is cancelled. Then it accepts no more connections,
/// ends the streams on which clients only listen, lets calls finish for
/// [`HttpLimits::finish_within`](super::HttpLimits::finish_within), and cancels the rest. Clients
/// that reuse connections, and proxies, lose no request if [`Settings::draining`] is cancelled some
/// seconds before. `handler` makes a handler for each session, and for each request of the
/// stateless era. The [`Principal`](crate::principal::Principal) of a request is in the extensions
/// of its [`http::request::Parts`].
///
/// ```no_run
/// use std::time::Duration;
/// use tokio_util::sync::CancellationToken;
/// use toolward_mcp::http::{self, Ended, HttpError, Settings};
/// use toolward_mcp::{Connection, Service};
///
/// async fn serve(service: Service, settings: Settings) -> Result<Ended, HttpError> {
///     let listener = http::bind(([127, 0, 0, 1], 8080).into()).map_err(HttpError::Listener)?;
///     let (draining, shutdown) = (settings.draining.clone(), CancellationToken::new());
///     tokio::spawn({
///         let shutdown = shutdown.clone();
///         async move {
///             let _ = tokio::signal::ctrl_c().await;
///             draining.cancel();
///             tokio::time::sleep(Duration::from_secs(5)).await;
///             shutdown.cancel();
///         }
///     });
///     // Each request brings its principal.
///     let handler = move || -> Connection { service.connection(None) };
///     http::serve(listener, handler, settings, shutdown).await
/// }
/// ```
pub async fn serve<H, F>(
    listener: std::net::TcpListener,
    handler: F,
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<Ended, HttpError>
where
    H: ServerHandler,
    F: Fn() -> H + Send + Sync + 'static,
{
    let listener = allowed_listener(listener, &settings)?;
    let (limits, draining) = (settings.limits.clone(), settings.draining.clone());
    let end = CancellationToken::new();
    let closing = shutdown.child_token();
    let sessions = Arc::new(Sessions::new(&limits, closing.clone()));
    // `AllowedNames` has checked the names on all paths. The checks of rmcp cover only its own
    // path, use the first of several `Host` headers, accept names such as `evil@localhost`, and
    // refuse without an error code.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_sse_keep_alive(Some(SSE_KEEP_ALIVE_INTERVAL))
        .with_max_request_body_bytes(limits.body)
        .with_cancellation_token(end.clone());
    let protocol = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
    let pruning = tokio::spawn(Arc::clone(&sessions).prune());
    let guard = Arc::new(Guard {
        settings,
        concurrency: Concurrency::default(),
        handled: MemoryBudget::new(limits.memory),
        read: MemoryBudget::new(limits.memory / 4),
        sessions,
        protocol,
        closing,
        end: end.clone(),
    });
    let mut serving = pin!(async {
        let routes = routes(guard);
        let mut connections =
            take_connections(listener, routes, &limits, draining, shutdown).await?;
        let cut = finish(&mut connections, limits.finish_within).await;
        end.cancel();
        pruning.abort();
        connections.shutdown().await;
        Ok(Ended { cut })
    });
    // The guard is dropped before the connections, so that their calls end because of the shutdown
    // and not because their clients have gone.
    let _ends_with_this = end.clone().drop_guard();
    serving.as_mut().await
}

/// Waits until the connections have ended, for `within` at most. Returns the number of connections
/// that are still open.
pub(super) async fn finish(connections: &mut JoinSet<()>, within: Duration) -> usize {
    let all = async { while connections.join_next().await.is_some() {} };
    match tokio::time::timeout(within, all).await {
        Ok(()) => 0,
        Err(_) => connections.len(),
    }
}

/// Accepts connections and serves these routes to requests with allowed names, until `shutdown` is
/// cancelled. Returns the connections still open.
pub(super) async fn take_connections(
    (listener, names): AllowedListener,
    routes: Router,
    limits: &HttpLimits,
    draining: CancellationToken,
    shutdown: CancellationToken,
) -> Result<JoinSet<()>, HttpError> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .max_buf_size(MAX_READ_BUFFER)
        .max_headers(MAX_HEADERS)
        .half_close(false);

    let routes = routes.layer(from_fn(move |request, next| {
        pass_names(Arc::clone(&names), request, next)
    }));
    let server = ConnectionServer {
        http,
        service: TowerToHyperService::new(routes),
        connections: Connections::new(limits),
        read_within: limits.read_within,
        draining,
        shutdown: shutdown.clone(),
    };
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener) => accepted,
        };
        server.serve(stream, peer, &mut connections);
    }
    for (stream, peer) in backlog(listener, limits.connections)? {
        server.serve(stream, peer, &mut connections);
    }
    Ok(connections)
}

/// Returns the next connection. Tries again if a connection broke before it was accepted, or if the
/// system has no room for the moment.
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, SocketAddr::ip(&peer)),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Returns the connections that wait in the backlog when a listener is closed, so that clients that
/// connected in time are answered, too.
fn backlog(listener: TcpListener, most: usize) -> Result<Vec<(TcpStream, IpAddr)>, HttpError> {
    let listener = listener.into_std().map_err(HttpError::Listener)?;
    let mut waiting = Vec::new();
    // Bounded, since a flood has no end.
    for _ in 0..most {
        match listener.accept() {
            Ok((stream, peer)) => {
                let stream = stream.set_nonblocking(true).map(|()| stream);
                if let Ok(stream) = stream.and_then(TcpStream::from_std) {
                    waiting.push((stream, SocketAddr::ip(&peer)));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) => tracing::debug!(%error, "a connection could not be taken"),
        }
    }
    Ok(waiting)
}
