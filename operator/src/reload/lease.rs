//! The lease of the served bundles: it expires unless verification renews it, even
//! while verification is blocked.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The lease since the latest verification.
#[derive(Debug)]
pub(super) struct Lease {
    duration: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    verified: Instant,
    /// Whether everything was withdrawn since then.
    over: bool,
}

impl Lease {
    /// A lease of this duration, from the start of verification.
    pub(super) fn new(verified: Instant, duration: Duration) -> Self {
        Self {
            duration,
            state: Mutex::new(State {
                verified,
                over: false,
            }),
        }
    }

    /// Renews the lease from the start of verification. Returns whether everything had
    /// been withdrawn, or `None` if the start is too long ago.
    pub(super) fn renew(&self, verified: Instant) -> Option<bool> {
        let mut state = self.lock();
        if verified.elapsed() >= self.duration {
            return None;
        }
        state.verified = verified;
        Some(std::mem::take(&mut state.over))
    }

    /// Whether the lease has ended.
    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Runs `work` under the lock of the lease, unless it has ended.
    pub(super) fn unless_over(&self, work: impl FnOnce()) -> bool {
        let state = self.lock();
        if !state.over {
            work();
        }
        !state.over
    }

    /// Calls `withdraw` once each time the lease ends, checked at this interval. Does
    /// not wait for verification.
    pub(super) async fn watch(&self, interval: Duration, withdraw: impl Fn()) {
        loop {
            tokio::time::sleep(interval).await;
            let mut state = self.lock();
            if !state.over && state.verified.elapsed() >= self.duration {
                state.over = true;
                withdraw();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LEASE: Duration = Duration::from_millis(200);

    /// How often `withdraw` is called within three times the lease.
    fn taken_back(lease: &Lease) -> usize {
        let count = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let watch = lease.watch(Duration::from_millis(5), || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            let _ = tokio::time::timeout(LEASE * 3, watch).await;
        });
        count.into_inner()
    }

    #[test]
    fn all_is_taken_back_once_when_nothing_is_verified_in_time_and_nothing_of_it_served_after() {
        let lease = Lease::new(Instant::now(), LEASE);
        assert!(lease.unless_over(|| ()));
        assert_eq!(taken_back(&lease), 1);
        assert!(lease.is_over());
        assert!(!lease.unless_over(|| panic!("it is over")));
        // The next renewal reports it, once.
        assert_eq!(lease.renew(Instant::now()), Some(true));
        assert!(lease.unless_over(|| ()));
        assert_eq!(lease.renew(Instant::now()), Some(false));
        assert_eq!(taken_back(&lease), 1);
    }

    #[test]
    fn what_took_too_long_to_verify_is_not_believed() {
        let lease = Lease::new(Instant::now(), LEASE);
        let began = Instant::now();
        std::thread::sleep(LEASE);
        assert_eq!(lease.renew(began), None);
        assert_eq!(taken_back(&lease), 1);
        assert_eq!(lease.renew(began), None);
        assert!(lease.is_over());
    }

    #[test]
    fn what_is_verified_in_time_is_not_taken_back() {
        let lease = Lease::new(Instant::now(), Duration::from_secs(3600));
        assert_eq!(taken_back(&lease), 0);
        assert_eq!(lease.renew(Instant::now()), Some(false));
    }
}
