//! How long what was verified is believed, whatever verifying it again waits for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is believed, and since when.
#[derive(Debug)]
pub(super) struct Lease {
    lasts: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    verified: Instant,
    /// Whether all was taken back since.
    over: bool,
}

impl Lease {
    /// What was verified from this moment on is believed for so long.
    pub(super) fn new(verified: Instant, lasts: Duration) -> Self {
        Self {
            lasts,
            state: Mutex::new(State {
                verified,
                over: false,
            }),
        }
    }

    /// Believes what was verified from this moment on. True if all that was served
    /// had been taken back; nothing if that moment is too long ago by now.
    pub(super) fn renew(&self, verified: Instant) -> Option<bool> {
        let mut state = self.lock();
        if verified.elapsed() >= self.lasts {
            return None;
        }
        state.verified = verified;
        Some(std::mem::take(&mut state.over))
    }

    /// Whether all was taken back.
    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Does this while nothing can be taken back, or not at all if it was.
    pub(super) fn unless_over(&self, work: impl FnOnce()) -> bool {
        let state = self.lock();
        if !state.over {
            work();
        }
        !state.over
    }

    /// Has all taken back, once, whenever nothing was verified for too long. It looks
    /// this often, and waits for nobody who verifies.
    pub(super) async fn watch(&self, often: Duration, take_back: impl Fn()) {
        loop {
            tokio::time::sleep(often).await;
            let mut state = self.lock();
            if !state.over && state.verified.elapsed() >= self.lasts {
                state.over = true;
                take_back();
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

    const LASTS: Duration = Duration::from_millis(200);

    /// How often all is taken back within three times that.
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
            let _ = tokio::time::timeout(LASTS * 3, watch).await;
        });
        count.into_inner()
    }

    #[test]
    fn all_is_taken_back_once_when_nothing_is_verified_in_time_and_nothing_of_it_served_after() {
        let lease = Lease::new(Instant::now(), LASTS);
        assert!(lease.unless_over(|| ()));
        assert_eq!(taken_back(&lease), 1);
        assert!(lease.is_over());
        assert!(!lease.unless_over(|| panic!("it is over")));
        // Whoever verifies next learns of it, once.
        assert_eq!(lease.renew(Instant::now()), Some(true));
        assert!(lease.unless_over(|| ()));
        assert_eq!(lease.renew(Instant::now()), Some(false));
        assert_eq!(taken_back(&lease), 1);
    }

    #[test]
    fn what_took_too_long_to_verify_is_not_believed() {
        let lease = Lease::new(Instant::now(), LASTS);
        let began = Instant::now();
        std::thread::sleep(LASTS);
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
