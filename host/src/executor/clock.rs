//! The time that a call has.

use std::time::{Duration, Instant};

use crate::api::result::CallError;

/// The clock of one call: starts when it gets its first slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    /// Time spent before it started, if the call resumes after questions.
    spent: Duration,
    allowed: Duration,
    pub(crate) deadline: Instant,
}

impl Clock {
    /// A clock that ends after `allowed`, and no later than `latest`.
    pub(crate) fn start(allowed: Duration, latest: Option<Instant>) -> Self {
        let started = Instant::now();
        let own = started.checked_add(allowed).unwrap_or(started);
        let deadline = latest.map_or(own, |latest| own.min(latest));
        Self {
            started,
            spent: Duration::ZERO,
            allowed: deadline.saturating_duration_since(started),
            deadline,
        }
    }

    /// The same clock with this much of its time spent.
    pub(crate) fn after(self, spent: Duration) -> Self {
        let left = self.allowed.saturating_sub(spent);
        Self {
            spent,
            deadline: self.started.checked_add(left).unwrap_or(self.started),
            ..self
        }
    }

    /// The same clock, which also ends once a driver had the time that it may have.
    pub(crate) fn within(self, own: Duration) -> Self {
        match Instant::now().checked_add(own) {
            Some(end) if end < self.deadline => Self {
                allowed: self.spent().saturating_add(own),
                deadline: end,
                ..self
            },
            _ => self,
        }
    }

    /// The time that is spent.
    pub(crate) fn spent(&self) -> Duration {
        self.spent.saturating_add(self.started.elapsed())
    }

    pub(crate) fn late(&self) -> CallError {
        CallError::timed_out(self.allowed, self.spent())
    }

    pub(crate) fn remaining_ms(&self) -> u64 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }
}
