//! The recent failures of a driver that the host itself saw. They only change the order among
//! drivers of equal rank: no driver is left out, and no call goes to another publisher.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use toolward_support::helper::lock;

/// How long a failure counts.
const WINDOW: Duration = Duration::from_secs(60);

/// If the calls of at least this many principals failed, the failures count for all principals. A
/// single principal may have caused a failure by its input, and must not move the calls of others.
const MIN_PRINCIPALS: usize = 3;

/// The most principals that are remembered, which bounds the memory. The latest stay.
const MAX_PRINCIPALS: usize = 64;

/// The failures of one driver: it could not be reached, answered with a status of 500 or above,
/// trapped, or did not end at its deadline.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failed: Mutex<Vec<Failed>>,
    /// The number of remembered failures, which is read without the lock.
    count: AtomicUsize,
    hasher: RandomState,
}

/// The last failure of a principal's calls.
#[derive(Debug, Clone, Copy)]
struct Failed {
    /// A hash of the name, which may be long.
    principal: u64,
    at: Instant,
}

impl Health {
    /// Notes that the driver failed in a call of this principal.
    pub(crate) fn failed(&self, principal: &str) {
        self.failed_at(principal, Instant::now());
    }

    /// Notes that the driver worked in a call of this principal.
    pub(crate) fn worked(&self, principal: &str) {
        if self.is_marked() {
            let principal = self.hash(principal);
            let mut failed = lock(&self.failed);
            failed.retain(|one| one.principal != principal);
            self.count.store(failed.len(), Ordering::Release);
        }
    }

    /// Whether any failure is remembered, so that the driver may rank lower for a principal.
    pub(crate) fn is_marked(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether the driver ranks below drivers of equal rank, for this principal.
    pub(crate) fn is_failing(&self, principal: &str) -> bool {
        self.is_marked() && self.is_failing_at(principal, Instant::now())
    }

    fn failed_at(&self, principal: &str, now: Instant) {
        let principal = self.hash(principal);
        let mut failed = lock(&self.failed);
        failed.retain(|one| one.principal != principal && is_fresh(one, now));
        if failed.len() >= MAX_PRINCIPALS {
            failed.remove(0);
        }
        failed.push(Failed { principal, at: now });
        self.count.store(failed.len(), Ordering::Release);
    }

    fn is_failing_at(&self, principal: &str, now: Instant) -> bool {
        let principal = self.hash(principal);
        let mut failed = lock(&self.failed);
        failed.retain(|one| is_fresh(one, now));
        self.count.store(failed.len(), Ordering::Release);
        failed.len() >= MIN_PRINCIPALS || failed.iter().any(|one| one.principal == principal)
    }

    fn hash(&self, principal: &str) -> u64 {
        self.hasher.hash_one(principal)
    }
}

fn is_fresh(failed: &Failed, now: Instant) -> bool {
    now.saturating_duration_since(failed.at) < WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_for_the_one_whose_call_it_was_until_it_is_old() {
        let health = Health::default();
        let now = Instant::now();
        assert!(!health.is_marked());
        health.failed_at("ada", now);
        assert!(health.is_failing_at("ada", now));
        assert!(!health.is_failing_at("bob", now));
        let old = now + WINDOW;
        assert!(health.is_failing_at("ada", old - Duration::from_millis(1)));
        assert!(!health.is_failing_at("ada", old));
        assert!(!health.is_marked());
    }

    #[test]
    fn failures_of_three_principals_count_for_everybody() {
        let health = Health::default();
        let now = Instant::now();
        for _ in 0..10 {
            health.failed_at("ada", now);
            health.failed_at("bob", now);
        }
        assert!(!health.is_failing_at("eve", now));
        health.failed_at("cyd", now);
        assert!(health.is_failing_at("eve", now));
        // A call that worked withdraws its principal's report.
        health.worked("bob");
        assert!(!health.is_failing_at("eve", now));
        assert!(health.is_failing_at("ada", now) && !health.is_failing_at("bob", now));
    }

    #[test]
    fn many_principals_take_no_more_memory_and_the_latest_are_known() {
        let health = Health::default();
        let now = Instant::now();
        for number in 0..10_000 {
            health.failed_at(&format!("p{number}"), now);
        }
        assert_eq!(lock(&health.failed).len(), MAX_PRINCIPALS);
        for name in ["p9999", "p9998", "p9997"] {
            health.worked(name);
        }
        assert_eq!(lock(&health.failed).len(), MAX_PRINCIPALS - 3);
    }
}
