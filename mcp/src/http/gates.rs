//! How many requests and streams a principal has open, and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::memory::Share;

/// What a principal holds while it is served; dropped, it makes room.
pub(super) type Room = OwnedSemaphorePermit;

/// What one principal may have open. One principal's requests never take the room
/// of another's.
#[derive(Debug)]
pub(super) struct Gate {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Messages of any kind whose body is read or handled. Beyond the requests
    /// themselves there is room for what must get through when all of them wait:
    /// their answers and cancellations.
    messages: Arc<Semaphore>,
    /// Memory of requests.
    pub(super) handled: Arc<Share>,
    /// Memory of what is being read, and of answers to the server's requests: for
    /// these there is room while requests that wait for them take all of theirs.
    pub(super) read: Arc<Share>,
}

impl Gate {
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

    /// Room for a request; `None` if the principal has all it may have.
    pub(super) fn request(&self) -> Option<Room> {
        Arc::clone(&self.requests).try_acquire_owned().ok()
    }

    /// Room for a stream on which the client listens.
    pub(super) fn stream(&self) -> Option<Room> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// Room for any message.
    pub(super) fn message(&self) -> Option<Room> {
        Arc::clone(&self.messages).try_acquire_owned().ok()
    }
}

/// The gates of all principals that are being served.
#[derive(Debug, Default)]
pub(super) struct Gates {
    by_name: Mutex<HashMap<Arc<str>, Arc<Gate>>>,
}

/// How many gates are kept before unused ones are dropped.
const KEPT: usize = 1024;

impl Gates {
    /// The gate of a principal.
    pub(super) fn of(&self, name: &Arc<str>, requests: usize, streams: usize) -> Arc<Gate> {
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = by_name.get(name) {
            return Arc::clone(gate);
        }
        if by_name.len() >= KEPT {
            // Whoever is being served holds its gate, or a room of it.
            by_name.retain(|_, gate| {
                Arc::strong_count(gate) > 1
                    || Arc::strong_count(&gate.messages) > 1
                    || Arc::strong_count(&gate.streams) > 1
                    || Arc::strong_count(&gate.requests) > 1
                    || Arc::strong_count(&gate.handled) > 1
                    || Arc::strong_count(&gate.read) > 1
            });
        }
        let gate = Arc::new(Gate::new(requests, streams));
        by_name.insert(Arc::clone(name), Arc::clone(&gate));
        gate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_takes_no_room_of_another() {
        let gates = Gates::default();
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let held = gates.of(&one, 1, 1).request();
        assert!(held.is_some());
        assert!(gates.of(&one, 1, 1).request().is_none());
        assert!(gates.of(&other, 1, 1).request().is_some());
        drop(held);
        assert!(gates.of(&one, 1, 1).request().is_some());
    }

    #[test]
    fn answers_get_through_when_all_requests_wait() {
        let gates = Gates::default();
        let gate = gates.of(&Arc::from("one"), 1, 0);
        let _message = gate.message();
        let _request = gate.request();
        assert!(gate.request().is_none());
        assert!(gate.message().is_some());
    }
}
