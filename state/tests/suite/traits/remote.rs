//! A second implementation, which behaves like one over a network: operations take time, requests
//! and answers get lost, and clients restart while the server keeps its state.

mod approvals;
mod buckets;
mod calls;
mod keys;
mod leases;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use toolward_state::StateError;

use approvals::StoredApprovals;
use buckets::StoredBuckets;
use calls::StoredCalls;
use keys::SealedTexts;
use leases::{SharedWatched, StoredLeases};

/// A client of a [`Server`]. Of every five requests, one is lost, and the answer of another is
/// lost.
#[derive(Clone)]
pub(crate) struct Remote {
    server: Arc<Mutex<Server>>,
    sent: Arc<AtomicU64>,
    delay: Duration,
    watched: SharedWatched,
}

/// The state of the server.
#[derive(Default)]
struct Server {
    approvals: StoredApprovals,
    buckets: StoredBuckets,
    calls: StoredCalls,
    sealed: SealedTexts,
    leases: StoredLeases,
}

/// Why a request has no answer.
enum Lost {
    /// The request was not sent.
    Late,
    /// The request was sent.
    Unknown,
}

impl From<Lost> for StateError {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Late => Self::Late,
            Lost::Unknown => Self::Unknown,
        }
    }
}

impl Remote {
    pub(crate) fn new() -> Self {
        Self {
            server: Arc::default(),
            sent: Arc::default(),
            delay: Duration::from_micros(300),
            watched: SharedWatched::default(),
        }
    }

    /// The same client, behind a slower network.
    pub(crate) fn slow(&self, delay: Duration) -> Self {
        Self {
            delay,
            ..self.clone()
        }
    }

    /// Another client of the server, or this client after a restart.
    pub(crate) fn restarted(&self) -> Self {
        Self {
            server: self.server.clone(),
            ..Self::new()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an operation to the server, which may run it after the client has given up.
    async fn send<T>(
        &self,
        deadline: Instant,
        does: impl FnOnce(&mut Server) -> T,
    ) -> Result<T, Lost> {
        if Instant::now() >= deadline {
            return Err(Lost::Late);
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let travels = tokio::time::sleep(self.delay);
        let arrives = tokio::time::timeout_at(deadline.into(), travels).await;
        let mut server = self.lock();
        match (arrives, number % 5) {
            (Err(_), _) | (_, 3) => {
                does(&mut server);
                Err(Lost::Unknown)
            }
            (_, 1) => Err(Lost::Unknown),
            _ => Ok(does(&mut server)),
        }
    }
}
