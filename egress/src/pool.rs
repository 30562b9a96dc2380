//! The open connections of one route. They are never shared with another: they
//! were made under this route's rules.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;
use tokio::task::AbortHandle;

use crate::request_body::Outgoing;

/// Whom a connection leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) https: bool,
    /// In normal form.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// An open connection; closed when dropped.
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Outgoing>,
    pub(crate) address: IpAddr,
    task: AbortHandle,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(
        sender: SendRequest<Outgoing>,
        address: IpAddr,
        task: AbortHandle,
    ) -> Connection {
        Connection {
            sender,
            address,
            task,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How many requests wait for a permit to open a connection. While any does, no
/// connection is kept: it would hold the permit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    /// Counts one, until what is returned is dropped.
    pub(crate) fn enter(&self) -> Waiter {
        self.0.fetch_add(1, Ordering::SeqCst);
        Waiter(self.clone())
    }

    fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

/// One request that waits.
#[derive(Debug)]
pub(crate) struct Waiter(Waiting);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Idle connections.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Idle>,
    most: usize,
    longest: Duration,
    /// Of this route, and of all.
    waiting: [Waiting; 2],
}

#[derive(Debug, Default)]
struct Idle {
    /// Oldest first.
    connections: Vec<(Key, Connection, Instant)>,
    /// Whether a task waits to close those that were idle too long.
    swept: bool,
}

impl Pool {
    pub(crate) fn new(most: usize, longest: Duration, all: Waiting) -> Pool {
        Pool {
            idle: Mutex::default(),
            most,
            longest,
            waiting: [Waiting::default(), all],
        }
    }

    /// Who waits for a permit of this route.
    pub(crate) fn waiting(&self) -> &Waiting {
        let [own, _] = &self.waiting;
        own
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection to `key` that was used last and whose address passes.
    pub(crate) fn take(&self, key: &Key, passes: impl Fn(IpAddr) -> bool) -> Option<Connection> {
        let mut idle = self.idle();
        idle.connections
            .retain(|(_, connection, _)| !connection.sender.is_closed());
        let fits = |(own, connection, _): &(Key, Connection, Instant)| {
            own == key && passes(connection.address)
        };
        let at = idle.connections.iter().rposition(fits)?;
        let (_, connection, _) = idle.connections.remove(at);
        Some(connection)
    }

    /// Closes all of them.
    pub(crate) fn clear(&self) {
        self.idle().connections.clear();
    }

    fn put(self: &Arc<Self>, key: Key, connection: Connection) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut idle = self.idle();
        // Seen under the lock: whoever begins to wait clears the pool after.
        if self.waiting.iter().any(Waiting::any) {
            return;
        }
        idle.connections
            .retain(|(_, connection, _)| !connection.sender.is_closed());
        if idle.connections.len() >= self.most {
            if idle.connections.is_empty() {
                return;
            }
            idle.connections.remove(0);
        }
        idle.connections.push((key, connection, Instant::now()));
        if !idle.swept {
            idle.swept = true;
            runtime.spawn(sweep(Arc::downgrade(self), self.longest));
        }
    }

    /// Closes what was idle too long; when the next one will have been.
    fn sweep(&self) -> Option<Instant> {
        let mut idle = self.idle();
        let now = Instant::now();
        idle.connections.retain(|(_, connection, since)| {
            !connection.sender.is_closed() && now.duration_since(*since) < self.longest
        });
        let next = idle.connections.first().map(|(_, _, since)| *since);
        idle.swept = next.is_some();
        next.and_then(|since| since.checked_add(self.longest))
    }
}

async fn sweep(pool: Weak<Pool>, longest: Duration) {
    tokio::time::sleep(longest).await;
    loop {
        let next = pool.upgrade().and_then(|pool| pool.sweep());
        let Some(next) = next else { return };
        tokio::time::sleep_until(next.into()).await;
    }
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) connection: Connection,
    pool: Arc<Pool>,
    pub(crate) key: Key,
    /// Whether others of this route may use it after.
    reusable: bool,
}

impl Lease {
    pub(crate) fn new(connection: Connection, pool: Arc<Pool>, key: Key, reusable: bool) -> Lease {
        Lease {
            connection,
            pool,
            key,
            reusable,
        }
    }

    /// Ends the use at a response's end. A request whose body was not `sent`
    /// leaves a connection nobody can use.
    pub(crate) fn give_back(self, sent: bool) {
        if sent && self.reusable && !self.connection.sender.is_closed() {
            self.pool.put(self.key, self.connection);
        }
    }
}
