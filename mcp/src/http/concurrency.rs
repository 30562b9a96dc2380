//! What each principal may use at once: permits for requests, streams and messages, and a share of
//! the memory for messages. One principal may take at most half of the free memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolward_support::helper::lock;

use super::responses::HttpRejection;

/// Held while a request or stream is served.
pub(super) type RequestPermit = OwnedSemaphorePermit;

/// The permits of one principal. No other principal uses them.
#[derive(Debug)]
pub(super) struct PrincipalPermits {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Messages of any kind that are being read or handled. They outnumber the permits for
    /// requests, so that answers and cancellations get through while all requests wait for them.
    messages: Arc<Semaphore>,
    /// The share of memory for requests.
    pub(super) handled: Arc<MemoryShare>,
    /// The share of memory for bodies that are being read, and for answers to the server's
    /// requests. This share is separate, so that answers get through while requests wait for them.
    pub(super) read: Arc<MemoryShare>,
}

impl PrincipalPermits {
    fn new(requests: usize, streams: usize) -> Self {
        let requests = requests.min(Semaphore::MAX_PERMITS / 4);
        let streams = streams.min(Semaphore::MAX_PERMITS / 4);
        let messages = 2 * requests + streams + 8;
        Self {
            requests: Arc::new(Semaphore::new(requests)),
            streams: Arc::new(Semaphore::new(streams)),
            messages: Arc::new(Semaphore::new(messages)),
            handled: Arc::default(),
            read: Arc::default(),
        }
    }

    /// A permit for a request.
    pub(super) fn request(&self) -> Result<RequestPermit, HttpRejection> {
        permit(&self.requests, "requests")
    }

    /// A permit for a stream on which the client listens.
    pub(super) fn stream(&self) -> Result<RequestPermit, HttpRejection> {
        permit(&self.streams, "streams")
    }

    /// A permit for any message.
    pub(super) fn message(&self) -> Result<RequestPermit, HttpRejection> {
        permit(&self.messages, "messages")
    }
}

fn permit(all: &Arc<Semaphore>, what: &'static str) -> Result<RequestPermit, HttpRejection> {
    let permit = Arc::clone(all).try_acquire_owned();
    permit.map_err(|_| HttpRejection::TooMany(what))
}

/// The permits of all principals.
#[derive(Debug, Default)]
pub(super) struct Concurrency {
    by_name: Mutex<HashMap<Arc<str>, Arc<PrincipalPermits>>>,
}

/// The number of principals from which the permits of unused principals are dropped.
const PRUNE_ABOVE: usize = 1024;

impl Concurrency {
    /// The permits of a principal.
    pub(super) fn of(
        &self,
        name: &Arc<str>,
        requests: usize,
        streams: usize,
    ) -> Arc<PrincipalPermits> {
        let mut by_name = lock(&self.by_name);
        if let Some(permits) = by_name.get(name) {
            return Arc::clone(permits);
        }
        if by_name.len() >= PRUNE_ABOVE {
            // A principal that is being served holds a reference to its permits.
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

/// The memory that all principals share.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    all: usize,
    left: Mutex<usize>,
}

/// The memory that one principal has taken from the budget.
#[derive(Debug, Default)]
pub(super) struct MemoryShare {
    taken: Mutex<usize>,
}

/// Memory that a message holds. Dropping it returns it to the budget.
#[derive(Debug)]
pub(super) struct HeldMemory {
    memory: Arc<MemoryBudget>,
    share: Arc<MemoryShare>,
    bytes: usize,
}

impl MemoryBudget {
    /// A budget of this many bytes.
    pub(super) fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            all: bytes,
            left: Mutex::new(bytes),
        })
    }

    /// Takes bytes for a principal with this share.
    pub(super) fn hold(
        self: &Arc<Self>,
        share: &Arc<MemoryShare>,
        bytes: usize,
    ) -> Result<HeldMemory, HttpRejection> {
        let mut held = HeldMemory {
            memory: Arc::clone(self),
            share: Arc::clone(share),
            bytes: 0,
        };
        held.grow(bytes)?;
        Ok(held)
    }
}

/// Returns the bytes that are left, and the bytes that the principal has taken. The two counts are
/// always locked in this order.
fn counts<'a>(
    memory: &'a MemoryBudget,
    share: &'a MemoryShare,
) -> (MutexGuard<'a, usize>, MutexGuard<'a, usize>) {
    let left = lock(&memory.left);
    (left, lock(&share.taken))
}

impl HeldMemory {
    /// Takes more memory, unless the principal would then have more than is left for all.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), HttpRejection> {
        let (mut left, mut taken) = counts(&self.memory, &self.share);
        let then_taken = taken.saturating_add(bytes);
        match left.checked_sub(bytes) {
            Some(then_left) if then_taken <= then_left => {
                (*taken, *left) = (then_taken, then_left);
                self.bytes = self.bytes.saturating_add(bytes);
                Ok(())
            }
            _ if self.bytes.saturating_add(bytes) > self.memory.all / 2 => {
                let message = "expected a message that takes less memory: fewer values";
                Err(HttpRejection::TooComplex(message.to_owned()))
            }
            _ if *taken > self.bytes => Err(HttpRejection::TooMany("large messages")),
            _ => Err(HttpRejection::Busy),
        }
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        let (mut left, mut taken) = counts(&self.memory, &self.share);
        *left = left.saturating_add(self.bytes);
        *taken = taken.saturating_sub(self.bytes);
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
        assert!(held.is_ok());
        assert!(concurrency.of(&one, 1, 1).request().is_err());
        assert!(concurrency.of(&other, 1, 1).request().is_ok());
        drop(held);
        assert!(concurrency.of(&one, 1, 1).request().is_ok());
    }

    #[test]
    fn answers_get_through_when_all_requests_wait() {
        let concurrency = Concurrency::default();
        let permits = concurrency.of(&Arc::from("one"), 1, 0);
        let _message = permits.message();
        let _request = permits.request();
        assert!(permits.request().is_err());
        assert!(permits.message().is_ok());
    }

    #[test]
    fn nobody_takes_more_than_is_left_for_others_and_all_comes_back() {
        let memory = MemoryBudget::new(100);
        let [one, two, three] = [(); 3].map(|()| Arc::<MemoryShare>::default());
        let first = memory.hold(&one, 50).unwrap();
        assert_eq!(
            memory.hold(&one, 1).unwrap_err(),
            HttpRejection::TooMany("large messages")
        );
        let mut second = memory.hold(&two, 20).unwrap();
        second.grow(5).unwrap();
        assert_eq!(second.grow(1).unwrap_err(), HttpRejection::Busy);
        let third = memory.hold(&three, 12).unwrap();
        assert_eq!(
            memory.hold(&three, 1).unwrap_err(),
            HttpRejection::TooMany("large messages")
        );
        drop(first);
        second.grow(1).unwrap();
        drop((second, third));
        assert_eq!(*memory.left.lock().unwrap(), 100);
        assert_eq!(*two.taken.lock().unwrap(), 0);
    }

    #[test]
    fn what_never_fits_is_not_told_to_come_back() {
        let memory = MemoryBudget::new(100);
        let share = Arc::default();
        assert!(matches!(
            memory.hold(&share, 51),
            Err(HttpRejection::TooComplex(_))
        ));
        assert!(memory.hold(&share, usize::MAX).is_err());
        assert_eq!(*memory.left.lock().unwrap(), 100);
    }
}
