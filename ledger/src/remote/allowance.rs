//! How many bytes a session may have written: a rate, and a burst beyond it. A recording process that was taken over
//! would otherwise fill the disk in minutes.

use std::time::{Duration, Instant};

/// Bytes a second, for as long as it takes. Some 16,000 calls a second that change something take as much.
const BYTES_PER_SECOND: u64 = 16 * 1024 * 1024;
/// Bytes at once.
const BURST_BYTES: u64 = 64 * 1024 * 1024;
/// What a frame counts at least: about what a row takes on the disk beside its record.
const LEAST_BYTES: u64 = 256;

/// What is left.
pub(super) struct Allowance {
    /// Below 0 where more was taken than there was: that is waited for.
    left: i128,
    since: Instant,
}

impl Allowance {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: i128::from(BURST_BYTES),
            since: now,
        }
    }

    /// Takes a frame of so many bytes; says how long to wait before the next one.
    pub(super) fn take(&mut self, now: Instant, bytes: usize) -> Duration {
        let nanos = now.saturating_duration_since(self.since).as_nanos();
        let rate = i128::from(BYTES_PER_SECOND);
        let earned = i128::try_from(nanos)
            .unwrap_or(i128::MAX)
            .saturating_mul(rate)
            / 1_000_000_000;
        // The part of a byte stays earned.
        if earned > 0 {
            self.left = self
                .left
                .saturating_add(earned)
                .min(i128::from(BURST_BYTES));
            self.since = now;
        }
        self.left = self
            .left
            .saturating_sub(i128::from((bytes as u64).max(LEAST_BYTES)));
        let owed = u64::try_from(-self.left).unwrap_or_default();
        Duration::from_micros(owed.saturating_mul(1_000_000) / BYTES_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_all_beyond_it_is_delayed_to_the_rate() {
        let mut now = Instant::now();
        let mut allowance = Allowance::new(now);
        let each = 64 * 1024;
        for _ in 0..BURST_BYTES / each as u64 {
            assert_eq!(allowance.take(now, each), Duration::ZERO);
        }
        let begun = now;
        let mut bytes = 0;
        while bytes < 10 * BYTES_PER_SECOND {
            now += allowance.take(now, each);
            bytes += each as u64;
        }
        let took = (now - begun).as_secs_f64();
        assert!((9.9..10.1).contains(&took), "{took} s");
        // A pause earns a burst again, and no more.
        now += Duration::from_secs(3600);
        for _ in 0..BURST_BYTES / each as u64 {
            assert_eq!(allowance.take(now, each), Duration::ZERO);
        }
        assert!(allowance.take(now, each) > Duration::ZERO);
    }

    #[test]
    fn empty_frames_cost_what_a_row_costs() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..BURST_BYTES / LEAST_BYTES {
            assert_eq!(allowance.take(now, 0), Duration::ZERO);
        }
        assert!(allowance.take(now, 0) > Duration::ZERO);
    }
}
