//! One connection: how its requests are handled, how it ends, and how long its client may leave
//! sent data unread.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::connections::{ConnectionPlace, Connections};

/// The answer to a connection beyond the limits.
const SERVICE_UNAVAILABLE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\
    Retry-After: 1\r\nContent-Length: 0\r\n\r\n";

/// How long a shutdown waits for a connection without a request so far. Its first request may be on
/// its way.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings and state with which connections are served.
pub(super) struct ConnectionServer {
    pub(super) http: http1::Builder,
    pub(super) service: TowerToHyperService<Router>,
    pub(super) connections: Arc<Connections>,
    pub(super) read_within: Duration,
    /// Cancelled when each answer is to be the last of its connection.
    pub(super) draining: CancellationToken,
    pub(super) shutdown: CancellationToken,
}

impl ConnectionServer {
    /// Admits a connection, and serves it to its end as one of the `tasks`.
    pub(super) fn serve(&self, stream: TcpStream, peer: IpAddr, tasks: &mut JoinSet<()>) {
        let Some(mut counted) = self.connections.admit(peer, Instant::now()) else {
            // Best effort, since this client is not waited for.
            let _ = stream.try_write(SERVICE_UNAVAILABLE);
            return;
        };
        set_socket_options(&stream, self.read_within);
        let reset = Arc::new(AtomicBool::new(false));
        let stream = WriteTimeout {
            stream,
            timeout: self.read_within,
            waiting: None,
            reset: Arc::clone(&reset),
        };
        let place = Arc::clone(&counted.place);
        let service = self.request_service(Arc::clone(&place));
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        let shutdown = self.shutdown.clone();
        tasks.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let served = async {
                tokio::select! {
                    ended = connection.as_mut() => return ended,
                    () = shutdown.cancelled() => {}
                }
                if !place.was_used.load(Ordering::Relaxed) {
                    tokio::select! {
                        ended = connection.as_mut() => return ended,
                        () = tokio::time::sleep(FIRST_REQUEST_TIMEOUT) => {}
                    }
                }
                connection.as_mut().graceful_shutdown();
                connection.await
            };
            tokio::select! {
                served = served => if let Err(error) = served {
                    tracing::debug!(%error, "a connection broke");
                },
                () = place.unread.cancelled() => reset.store(true, Ordering::Relaxed),
                () = counted.left() => {
                    reset.store(true, Ordering::Relaxed);
                    tracing::debug!("a connection without a token made room for another");
                }
            }
        });
    }

    /// The service for the requests of a connection. It adds the connection to each
    /// request, and `Connection: close` to the last answer.
    fn request_service(
        &self,
        place: Arc<ConnectionPlace>,
    ) -> impl Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + use<> {
        let (service, draining) = (self.service.clone(), self.draining.clone());
        let shutdown = self.shutdown.clone();
        service_fn(move |mut request: Request<Incoming>| {
            place.was_used.store(true, Ordering::Relaxed);
            request.extensions_mut().insert(Arc::clone(&place));
            let answer = service.call(request);
            let (place, draining) = (Arc::clone(&place), draining.clone());
            let shutdown = shutdown.clone();
            async move {
                let mut answer = answer.await?;
                if place.is_last.load(Ordering::Relaxed)
                    || draining.is_cancelled()
                    || shutdown.is_cancelled()
                {
                    let close = HeaderValue::from_static("close");
                    answer.headers_mut().insert(CONNECTION, close);
                }
                Ok(answer)
            }
        })
    }
}

/// Disables Nagle's algorithm, and detects vanished clients. Set on each connection, since
/// connections in the backlog do not inherit the options of the listening socket.
fn set_socket_options(stream: &TcpStream, timeout: Duration) {
    let kept = || -> rustix::io::Result<()> {
        rustix::net::sockopt::set_tcp_nodelay(stream, true)?;
        rustix::net::sockopt::set_socket_keepalive(stream, true)?;
        #[cfg(target_os = "linux")]
        {
            let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
            rustix::net::sockopt::set_tcp_keepidle(stream, timeout)?;
            rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds)?;
        }
        Ok(())
    };
    if let Err(error) = kept() {
        tracing::debug!(%error, "a connection may be slow, and be lost without notice");
    }
}

/// A connection that fails if its client reads nothing for a while although data waits to be sent.
struct WriteTimeout {
    stream: TcpStream,
    timeout: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// If it is set when the value is dropped, the connection is reset rather than closed.
    reset: Arc<AtomicBool>,
}

impl WriteTimeout {
    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let timeout = self.timeout;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        let timed_out = waiting.as_mut().poll(context);
        timed_out.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for WriteTimeout {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // A flood must leave no state in the kernel, such as connections in TIME_WAIT.
            let none = Some(Duration::ZERO);
            let _ = rustix::net::sockopt::set_socket_linger(&self.stream, none);
        }
    }
}
