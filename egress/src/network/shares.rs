//! A fair semaphore: one holder cannot take all permits, since the last permits are reserved for
//! holders that have none.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use toolward_support::helper::lock;

/// An owner or a principal. The permits of each are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// The routes of one owner.
    Owner(Arc<str>),
    /// A principal.
    Caller(Arc<str>),
}

/// A number of permits.
pub(crate) struct FairPermits {
    /// Permits reserved for holders that have none.
    reserve: usize,
    state: Mutex<State>,
    freed: Notify,
}

struct State {
    left: usize,
    held: HashMap<Holder, usize>,
}

/// A permit, which is returned when dropped.
pub(crate) struct FairPermit {
    shares: Arc<FairPermits>,
    holders: Vec<Holder>,
}

impl FairPermits {
    /// A semaphore with `all` permits, a quarter of them reserved for holders that have none.
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self {
            reserve: all / 4,
            state: Mutex::new(State {
                left: all,
                held: HashMap::new(),
            }),
            freed: Notify::new(),
        })
    }

    /// Takes a permit that counts for all of these holders. `None` if no permit is left, or if one
    /// of the holders has a permit already and only the reserve is left.
    pub(crate) fn try_take(self: &Arc<Self>, holders: &[Holder]) -> Option<FairPermit> {
        let mut state = lock(&self.state);
        let holds_any = holders.iter().any(|one| state.held.contains_key(one));
        if state.left == 0 || (holds_any && state.left <= self.reserve) {
            return None;
        }
        state.left = state.left.saturating_sub(1);
        for holder in holders {
            let held = state.held.entry(holder.clone()).or_default();
            *held = held.saturating_add(1);
        }
        Some(FairPermit {
            shares: Arc::clone(self),
            holders: holders.to_vec(),
        })
    }

    /// Like [`FairPermits::try_take`], but waits until it succeeds.
    pub(crate) async fn take(self: &Arc<Self>, holders: &[Holder]) -> FairPermit {
        let mut freed = pin!(self.freed.notified());
        loop {
            // Registers first, so that a permit freed from now on is not missed.
            freed.as_mut().enable();
            if let Some(share) = self.try_take(holders) {
                return share;
            }
            freed.as_mut().await;
            freed.set(self.freed.notified());
        }
    }

    /// The number of free permits.
    pub(crate) fn left(&self) -> usize {
        lock(&self.state).left
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut state = lock(&self.shares.state);
        state.left = state.left.saturating_add(1);
        for holder in self.holders.drain(..) {
            if let Entry::Occupied(mut entry) = state.held.entry(holder) {
                if *entry.get() <= 1 {
                    entry.remove();
                } else {
                    *entry.get_mut() = entry.get().saturating_sub(1);
                }
            }
        }
        drop(state);
        // All waiters are woken, since the first may not be entitled to the permit.
        self.shares.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Whether a future is not ready within a short time.
    async fn waits(future: impl Future<Output = FairPermit>) -> bool {
        let soon = Duration::from_millis(20);
        tokio::time::timeout(soon, future).await.is_err()
    }

    fn caller(name: &str) -> Holder {
        Holder::Caller(name.into())
    }

    #[tokio::test]
    async fn the_last_permits_are_for_those_who_hold_none() {
        let shares = FairPermits::new(8);
        let (one, other) = ([caller("one")], [caller("other")]);
        let mut held: Vec<FairPermit> = (0..6).map(|_| shares.try_take(&one).unwrap()).collect();
        assert!(shares.try_take(&one).is_none());
        // The holder is refused on either account.
        assert!(shares.try_take(&[caller("third"), caller("one")]).is_none());
        let first = shares.try_take(&other).unwrap();
        assert!(shares.try_take(&other).is_none());
        let mut waiting = pin!(shares.take(&one));
        assert!(waits(&mut waiting).await);
        drop(first);
        assert!(waits(&mut waiting).await);
        drop(held.pop());
        drop(waiting.await);
        held.clear();
        let state = shares.state.lock().unwrap();
        assert_eq!((state.left, state.held.len()), (8, 0));
    }

    #[test]
    fn without_a_holder_there_are_as_many_as_there_are() {
        let shares = FairPermits::new(2);
        let _held = (shares.try_take(&[]).unwrap(), shares.try_take(&[]).unwrap());
        assert!(shares.try_take(&[]).is_none());
        assert_eq!(shares.left(), 0);
    }
}
