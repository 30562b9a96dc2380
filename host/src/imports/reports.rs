//! What a driver reports while it runs, progress and log records, within the call's limits.

use std::sync::{Mutex, PoisonError};

use toolward_policy::LimitName;

use crate::api::limits::CallLimits;
use crate::exceeded::Exceeded;

/// What a call has reported so far, all its attempts together.
#[derive(Debug)]
pub(crate) struct Reports {
    counts: Mutex<Counts>,
    max_records: u64,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    progress: Rising,
    records: u64,
    bytes: u64,
}

impl Reports {
    pub(crate) fn new(limits: &CallLimits) -> Self {
        Self {
            counts: Mutex::default(),
            max_records: limits.log_records,
            max_bytes: limits.log_bytes,
        }
    }

    /// Whether a report of progress with this value is passed on.
    pub(super) fn admits_progress(&self, done: f64) -> bool {
        self.with(|counts| counts.progress.admit(done))
    }

    /// Counts a log record of `size` bytes before anything is made of it.
    pub(super) fn admit_log(&self, size: u64) -> Result<(), Exceeded> {
        self.with(|counts| {
            let count = counts.records.saturating_add(1);
            if count > self.max_records {
                return Err(Exceeded::new(
                    LimitName::LogRecords,
                    count,
                    self.max_records,
                ));
            }
            let bytes = counts.bytes.saturating_add(size);
            if bytes > self.max_bytes {
                return Err(Exceeded::new(LimitName::LogBytes, bytes, self.max_bytes));
            }
            (counts.records, counts.bytes) = (count, bytes);
            Ok(())
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Counts) -> T) -> T {
        act(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Progress reports that are passed on in one call; the rest is dropped.
const PROGRESS_REPORTS: u32 = 1000;

/// The progress of one call: only ever rises, and only so often.
#[derive(Debug, Default)]
struct Rising {
    last: Option<f64>,
    count: u32,
}

impl Rising {
    /// Whether a report with this value is passed on.
    fn admit(&mut self, done: f64) -> bool {
        let rises = done.is_finite() && self.last.is_none_or(|last| done > last);
        if !rises || self.count >= PROGRESS_REPORTS {
            return false;
        }
        self.last = Some(done);
        self.count = self.count.saturating_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_that_falls_repeats_or_is_no_number_is_dropped() {
        let mut rising = Rising::default();
        let admitted = [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0].map(|done| rising.admit(done));
        assert_eq!(admitted, [true, false, false, false, false, true]);
    }

    #[test]
    fn log_records_are_counted_by_number_and_by_bytes() {
        let limits = CallLimits {
            log_records: 3,
            log_bytes: 100,
            ..CallLimits::new(
                &crate::Limits::default(),
                std::time::Duration::from_secs(1),
                &toolward_contract::driver::DriverLimits::default(),
            )
        };
        let reports = Reports::new(&limits);
        for size in [10, 50] {
            reports.admit_log(size).expect("room for it");
        }
        let refused = |size| reports.admit_log(size).map_err(|over| over.limit);
        assert_eq!(refused(41), Err(LimitName::LogBytes));
        assert_eq!(refused(40), Ok(()));
        assert_eq!(refused(0), Err(LimitName::LogRecords));
    }

    #[test]
    fn progress_is_passed_on_so_often_and_no_more() {
        let mut rising = Rising::default();
        let passed = (0..5000).filter(|n| rising.admit(f64::from(*n))).count();
        assert_eq!(passed, 1000);
    }
}
