//! The idle connections of one route. They are never shared with another route, since this route's
//! rules admitted them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;
use tokio::task::AbortHandle;
use toolward_support::helper::lock;

use super::request_body::Outgoing;
use crate::authority::Origin;

/// An open connection; closed when dropped.
pub(crate) struct PooledConnection {
    pub(crate) sender: SendRequest<Outgoing>,
    pub(crate) address: IpAddr,
    pub(crate) task: AbortHandle,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How many requests wait for a permit to open a connection. While any request waits, no idle
/// connection is kept, since it would hold a permit.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitCount(Arc<AtomicUsize>);

impl WaitCount {
    /// Counts one request, until the returned guard is dropped.
    pub(crate) fn enter(&self) -> WaitGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        WaitGuard(self.clone())
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// One waiting request.
pub(crate) struct WaitGuard(WaitCount);

impl Drop for WaitGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Idle connections.
pub(crate) struct ConnectionPool {
    idle: Mutex<Idle>,
    max_idle: usize,
    idle_timeout: Duration,
    /// The waiting requests of this route, and of all routes.
    waiting: [WaitCount; 2],
}

#[derive(Default)]
struct Idle {
    /// The idle connections, oldest first.
    connections: Vec<(Origin, PooledConnection, Instant)>,
    /// Whether a task waits to close connections that were idle too long.
    swept: bool,
}

impl ConnectionPool {
    pub(crate) fn new(max_idle: usize, idle_timeout: Duration, all: WaitCount) -> ConnectionPool {
        ConnectionPool {
            idle: Mutex::default(),
            max_idle,
            idle_timeout,
            waiting: [WaitCount::default(), all],
        }
    }

    /// The requests that wait for a permit of this route.
    pub(crate) fn waiting(&self) -> &WaitCount {
        let [own, _] = &self.waiting;
        own
    }

    /// Takes the most recently used connection to `origin` whose address is allowed.
    pub(crate) fn take(
        &self,
        origin: &Origin,
        passes: impl Fn(IpAddr) -> bool,
    ) -> Option<PooledConnection> {
        let mut idle = lock(&self.idle);
        idle.connections
            .retain(|(_, connection, _)| !connection.sender.is_closed());
        let fits = |(own, connection, _): &(Origin, PooledConnection, Instant)| {
            own == origin && passes(connection.address)
        };
        let at = idle.connections.iter().rposition(fits)?;
        let (_, connection, _) = idle.connections.remove(at);
        Some(connection)
    }

    /// Closes all idle connections.
    pub(crate) fn clear(&self) {
        lock(&self.idle).connections.clear();
    }

    fn put(self: &Arc<Self>, origin: Origin, connection: PooledConnection) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut idle = lock(&self.idle);
        // Checked under the lock, so that a request that starts to wait after the check clears the
        // pool after the connection was added.
        if self.waiting.iter().any(WaitCount::any) {
            return;
        }
        idle.connections
            .retain(|(_, connection, _)| !connection.sender.is_closed());
        if idle.connections.len() >= self.max_idle {
            if idle.connections.is_empty() {
                return;
            }
            idle.connections.remove(0);
        }
        idle.connections.push((origin, connection, Instant::now()));
        if !idle.swept {
            idle.swept = true;
            runtime.spawn(sweep(Arc::downgrade(self), self.idle_timeout));
        }
    }

    /// Drops connections that are closed or were idle too long. Returns when to sweep again.
    fn sweep(&self) -> Option<Instant> {
        let mut idle = lock(&self.idle);
        let now = Instant::now();
        idle.connections.retain(|(_, connection, since)| {
            !connection.sender.is_closed() && now.duration_since(*since) < self.idle_timeout
        });
        let next = idle.connections.first().map(|(_, _, since)| *since);
        idle.swept = next.is_some();
        next.and_then(|since| since.checked_add(self.idle_timeout))
    }
}

async fn sweep(pool: Weak<ConnectionPool>, idle_timeout: Duration) {
    tokio::time::sleep(idle_timeout).await;
    loop {
        let next = pool.upgrade().and_then(|pool| pool.sweep());
        let Some(next) = next else { return };
        tokio::time::sleep_until(next.into()).await;
    }
}

/// A connection in use.
pub(crate) struct Lease {
    pub(crate) connection: PooledConnection,
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) origin: Origin,
    /// Whether other requests of this route may use the connection afterwards.
    pub(crate) reusable: bool,
}

impl Lease {
    /// Returns the connection to the pool at a response's end. If the request's body was not fully
    /// `sent`, the connection is closed, since it can't be reused.
    pub(crate) fn give_back(self, sent: bool) {
        if sent && self.reusable && !self.connection.sender.is_closed() {
            self.pool.put(self.origin, self.connection);
        }
    }
}
