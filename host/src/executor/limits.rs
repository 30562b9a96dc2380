//! The time that a call has, and the errors of a call that exceeded a limit.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_policy::LimitName;
use toolward_sandbox::deadline;
use toolward_sandbox::exceeded::Exceeded;

use crate::api::result::{CallError, ErrorClass, ErrorCode, Hit};

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

    /// Drives a future until the deadline at the latest.
    pub(crate) async fn bound<T>(
        &self,
        future: impl Future<Output = T> + Unpin,
    ) -> Result<T, CallError> {
        let done = deadline::before(self.deadline, future).await;
        done.map_err(|deadline::Elapsed| self.late())
    }

    pub(crate) fn late(&self) -> CallError {
        CallError::timed_out(self.allowed, self.spent())
    }

    pub(crate) fn remaining_ms(&self) -> u64 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The retry-after of a call that ended for the memory of all.
const NO_MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn over(exceeded: Exceeded) -> CallError {
    let hit = Hit::from(exceeded);
    let limit = exceeded.limit;
    let (code, raise) = match limit {
        LimitName::Output => return CallError::too_large(hit.used, hit.allowed),
        LimitName::MemoryTotal => return no_memory(hit),
        LimitName::Memory if exceeded.by_host => return held_too_much(hit),
        LimitName::Memory => (ErrorCode::MEMORY_EXCEEDED, RAISE_MEMORY.to_owned()),
        _ if limit.own().is_none() => (
            ErrorCode::LIMIT_EXCEEDED,
            format!("raise the host's limit `{limit}`"),
        ),
        _ => {
            let does = match limit {
                LimitName::Stack => "recurses too deeply",
                LimitName::HostCall => "hands the host too much at once",
                LimitName::SecretStores | LimitName::SecretStoreBytes => {
                    "stores too many secrets in one call"
                }
                _ => "does too much with its buckets in one call",
            };
            (
                ErrorCode::LIMIT_EXCEEDED,
                format!("the driver {does}; report this to its publisher"),
            )
        }
    };
    CallError::new(
        code,
        ErrorClass::ExecutionFailed,
        format!(
            "the driver asked for {} {}, {} are allowed (limit `{}`)",
            hit.used,
            hit.limit.unit(),
            hit.allowed,
            hit.limit
        ),
    )
    .with_limit(hit)
    .with_hint(raise)
}

/// What to do about too little memory.
const RAISE_MEMORY: &str = "ask for less, or raise `limits.memory_mib` in DRIVER.md and the \
                            host's limit `memory_bytes`";

/// All calls together need more memory than there is, and this one ends for the others.
fn no_memory(hit: Hit) -> CallError {
    CallError::of(ErrorCode::MEMORY_EXCEEDED,
        format!(
            "all calls together need {} bytes of memory, {} are allowed (limit `memory_total`); this call \
             grew last of those that hold most",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_cause(json!("memory_total"))
    .with_hint("try again later, make fewer calls at once, or raise the host's limit `memory_total`")
    .with_retry_after(NO_MEMORY_RETRY_AFTER)
}

/// The guest's memory and what the host holds for it are one limit.
fn held_too_much(hit: Hit) -> CallError {
    CallError::of(ErrorCode::MEMORY_EXCEEDED,
        format!(
            "the host would hold too much for the driver (handles, header fields, bodies, \
             records): {} bytes with the driver's own memory, {} are allowed (limit `memory_bytes`)",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_hint(RAISE_MEMORY)
}
