//! The clients of unread results: when a client last read, and how to end it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use toolward_support::helper::lock;

/// When a client last took a part of its results. Clones share the time; all results on one
/// connection have clones.
#[derive(Debug, Clone)]
pub struct ReadProgress(Arc<Mutex<Instant>>);

impl ReadProgress {
    /// Notes that the client has taken a part now.
    pub fn advance(&self) {
        self.set(Instant::now());
    }

    pub(super) fn set(&self, at: Instant) {
        *lock(&self.0) = at;
    }

    pub(super) fn idle(&self) -> Duration {
        let at = lock(&self.0);
        at.elapsed()
    }
}

impl Default for ReadProgress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

/// The client of one result.
pub(super) struct Reader {
    pub(super) progress: ReadProgress,
    pub(super) end: Box<dyn Fn() + Send + Sync>,
}

toolward_support::opaque!(Reader);
