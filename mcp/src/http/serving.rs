//! The server itself: takes connections, hands their requests on, and lets calls
//! finish when it is shut down.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::Stalling;
use super::connections::{Connections, Place};
use super::gates::Gates;
use super::guard::{Guard, routes};
use super::memory::Memory;
use super::names::Names;
use super::sessions::Sessions;
use super::{Access, HttpError, Settings};

/// Bytes that a connection may hold of what was sent and not yet understood; a
/// request's head fits.
const BUFFER: usize = 64 * 1024;

/// Headers of a request.
const HEADERS: usize = 64;

/// How often a stream says that it is still there, so that a client that has gone
/// is found out.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long to wait when the system has no room for another connection.
const NO_ROOM: Duration = Duration::from_millis(100);

/// What one is told for whom there is no room.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
    Retry-After: 1\r\nContent-Length: 0\r\n\r\n";

/// How the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Connections that were cut off, because what they waited for took too long.
    pub cut: usize,
}

/// Listens at an address. As many connections wait to be taken as the system allows:
/// what does not fit is lost for a second, and a flood fills what the standard library
/// asks for. To be called before the process confines itself.
///
/// # Errors
///
/// When the address is none of this machine's, or in use.
pub fn bind(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    rustix::net::listen(&listener, i32::MAX)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves on a socket that listens, until `shutdown` is cancelled: then it takes no
/// more connections, ends the streams on which clients only listen, lets calls
/// finish for [`Limits::finish_within`](super::Limits::finish_within) and cancels
/// the rest. `handler` makes a handler for each session, and for each request of
/// the newer era; the [`Principal`](crate::principal::Principal) is in the
/// extensions of the [`http::request::Parts`] of a request.
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
    let address = listener.local_addr().map_err(HttpError::Listener)?;
    let open = matches!(settings.access, Access::Open(_));
    if open && !address.ip().to_canonical().is_loopback() {
        return Err(HttpError::OpenAddress(address));
    }
    let names = Names::new(address, &settings)?;
    listener
        .set_nonblocking(true)
        .map_err(HttpError::Listener)?;
    let listener = TcpListener::from_std(listener).map_err(HttpError::Listener)?;
    let limits = settings.limits;

    let closing = shutdown.child_token();
    let end = CancellationToken::new();
    let _ends_with_this = end.clone().drop_guard();
    let sessions = Arc::new(Sessions::new(&limits, closing.clone()));
    // The names were checked, for all paths.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .with_sse_keep_alive(Some(KEEP_ALIVE))
        .with_max_request_body_bytes(limits.body)
        .with_cancellation_token(end.clone());
    let protocol = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
    let tidying = tokio::spawn(Arc::clone(&sessions).tidy());
    let guard = Arc::new(Guard {
        names,
        access: settings.access,
        limits: limits.clone(),
        gates: Gates::default(),
        handled: Memory::new(limits.memory),
        read: Memory::new(limits.memory / 4),
        sessions,
        protocol,
        closing,
    });
    let service = TowerToHyperService::new(routes(guard));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .max_buf_size(BUFFER)
        .max_headers(HEADERS)
        .half_close(false);

    let counts = Connections::new(&limits);
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener) => accepted,
        };
        let Some(mut counted) = counts.admit(peer, Instant::now()) else {
            // As much as the system takes at once: nobody waits for this client.
            let _ = stream.try_write(BUSY);
            continue;
        };
        set_up(&stream, limits.read_within);
        let reset = Arc::new(AtomicBool::new(false));
        let stalling = Stalling::new(stream, limits.read_within, Arc::clone(&reset));
        let served = answering(service.clone(), Arc::clone(counted.place()));
        let connection = http.serve_connection(TokioIo::new(stalling), served);
        let shutdown = shutdown.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ending = async {
                tokio::select! {
                    ended = connection.as_mut() => return ended,
                    () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
                }
                connection.await
            };
            tokio::select! {
                ended = ending => if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                },
                () = counted.left() => {
                    reset.store(true, Ordering::Relaxed);
                    tracing::debug!("a connection without a token made room for another");
                }
            }
        });
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    let cut = match tokio::time::timeout(limits.finish_within, all).await {
        Ok(()) => 0,
        Err(_) => connections.len(),
    };
    end.cancel();
    tidying.abort();
    connections.shutdown().await;
    Ok(Ended { cut })
}

/// Has the requests of a connection handled, which know their connection, and tells
/// the client when no more are taken on it.
fn answering<S, B>(
    service: S,
    place: Arc<Place>,
) -> impl Service<Request<Incoming>, Response = Response<B>, Error = S::Error, Future: Send>
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send>,
{
    service_fn(move |mut request: Request<Incoming>| {
        let place = Arc::clone(&place);
        request.extensions_mut().insert(Arc::clone(&place));
        let answer = service.call(request);
        async move {
            let mut answer = answer.await?;
            if place.is_last() {
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(CONNECTION, close);
            }
            Ok(answer)
        }
    })
}

/// The next connection. Connections that broke before they were taken, and a system
/// that has no room for the moment, are no reason to end.
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, SocketAddr::ip(&peer)),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(NO_ROOM).await;
            }
        }
    }
}

/// Has the system send what is written at once, and notice clients that are lost
/// without a word. Set on each connection: those that were made before the server
/// began to take them have nothing from the socket that they come from.
fn set_up(stream: &TcpStream, patience: Duration) {
    let kept = || -> rustix::io::Result<()> {
        rustix::net::sockopt::set_tcp_nodelay(stream, true)?;
        rustix::net::sockopt::set_socket_keepalive(stream, true)?;
        #[cfg(target_os = "linux")]
        {
            let milliseconds = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
            rustix::net::sockopt::set_tcp_keepidle(stream, patience)?;
            rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds)?;
        }
        Ok(())
    };
    if let Err(error) = kept() {
        tracing::debug!(%error, "a connection may be slow, and be lost without notice");
    }
}
