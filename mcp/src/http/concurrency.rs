//! Concurrency limits of each principal: permits for requests, streams and messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::memory_budget::MemoryShare;

/// Held while a request or stream is served.
pub(super) type Permit = OwnedSemaphorePermit;

/// The permits of one principal. One principal never takes those of another.
#[derive(Debug)]
pub(super) struct PrincipalPermits {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Messages of any kind that are read or handled: more than requests, so that answers
    /// and cancellations get through while all requests wait for them.
    messages: Arc<Semaphore>,
    /// The share of memory for requests.
    pub(super) handled: Arc<MemoryShare>,
    /// The share of memory for bodies that are being read, and for answers to the server's
    /// requests: separate, so that answers get through while requests wait for them.
    pub(super) read: Arc<MemoryShare>,
}

impl PrincipalPermits {
    fn new(requests: usize, streams: usize) -> Self {
        let requests = requests.min(Semaphore::MAX_PERMITS / 4);
        let streams = streams.min(Semaphore::MAX_PERMITS / 4);
        Self {
            requests: Arc::new(Semaphore::new(requests)),
            streams: Arc::new(Semaphore::new(streams)),
            messages: Arc::new(Semaphore::new(
                requests
                    .saturating_mul(2)
                    .saturating_add(streams)
                    .saturating_add(8),
            )),
            handled: Arc::default(),
            read: Arc::default(),
        }
    }

    /// A permit for a request; `None` if all are taken.
    pub(super) fn request(&self) -> Option<Permit> {
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// A permit for a stream on which the client listens.
    pub(super) fn stream(&self) -> Option<Permit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// A permit for any message.
    pub(super) fn message(&self) -> Option<Permit> {
        Arc::clone(&self.messages).try_acquire_owned().ok()
    }
}

/// The permits of all principals.
#[derive(Debug, Default)]
pub(super) struct Concurrency {
    by_name: Mutex<HashMap<Arc<str>, Arc<PrincipalPermits>>>,
}

/// How many principals are kept before unused ones are dropped.
const PRUNE_ABOVE: usize = 1024;

impl Concurrency {
    /// The permits of a principal.
    pub(super) fn of(
        &self,
        name: &Arc<str>,
        requests: usize,
        streams: usize,
    ) -> Arc<PrincipalPermits> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(permits) = by_name.get(name) {
            return Arc::clone(permits);
        }
        if by_name.len() >= PRUNE_ABOVE {
            // A principal that is being served holds its permits, or one of them.
            by_name.retain(|_, permits| {
                Arc::strong_count(permits) > 1
                    || Arc::strong_count(&permits.messages) > 1
                    || Arc::strong_count(&permits.streams) > 1
                    || Arc::strong_count(&permits.requests) > 1
                    || Arc::strong_count(&permits.handled) > 1
                    || Arc::strong_count(&permits.read) > 1
            });
        }
        let permits = Arc::new(PrincipalPermits::new(requests, streams));
        by_name.insert(Arc::clone(name), Arc::clone(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_takes_no_room_of_another() {
        let concurrency = Concurrency::default();
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let held = concurrency.of(&one, 1, 1).request();
        assert!(held.is_some());
        assert!(concurrency.of(&one, 1, 1).request().is_none());
        assert!(concurrency.of(&other, 1, 1).request().is_some());
        drop(held);
        assert!(concurrency.of(&one, 1, 1).request().is_some());
    }

    #[test]
    fn answers_get_through_when_all_requests_wait() {
        let concurrency = Concurrency::default();
        let permits = concurrency.of(&Arc::from("one"), 1, 0);
        let _message = permits.message();
        let _request = permits.request();
        assert!(permits.request().is_none());
        assert!(permits.message().is_some());
    }
}
