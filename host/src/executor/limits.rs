//! The time and memory that a call has, and the errors of a call that exceeded a limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_contract::json::{self as strict, JsonError, JsonErrorKind};
use toolward_policy::LimitName;
use toolward_sandbox::deadline;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::limits::MemoryBudget as _;

use crate::admission::MemoryLease;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Result};
use crate::imports::SlotCell;

/// The clock of one call: starts when the call gets its first slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    /// Time spent before it started, if the call resumes after questions.
    spent: Duration,
    allowed: Duration,
    pub(crate) deadline: Instant,
}

impl Clock {
    /// Starts a clock that ends after `allowed`, and no later than `latest`.
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

    /// The same clock, of which this much time is already spent.
    pub(crate) fn after(self, spent: Duration) -> Self {
        let left = self.allowed.saturating_sub(spent);
        Self {
            spent,
            deadline: self.started.checked_add(left).unwrap_or(self.started),
            ..self
        }
    }

    /// The same clock, but with the deadline `own` from now, if that is earlier.
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

    /// The time that has been spent.
    pub(crate) fn spent(&self) -> Duration {
        self.spent.saturating_add(self.started.elapsed())
    }

    /// Drives a future until the deadline at the latest.
    pub(crate) async fn bound<T>(&self, future: impl Future<Output = T> + Unpin) -> Result<T> {
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

/// The retry-after of a call that ended because all calls together needed too much memory.
const NO_MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn over(hit: Exceeded) -> CallError {
    let limit = hit.limit;
    let (code, raise) = match limit {
        LimitName::Output => return CallError::too_large(hit.used, hit.allowed),
        LimitName::MemoryTotal => return no_memory(hit),
        LimitName::Memory if hit.by_host => return held_too_much(hit),
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

/// The hint about too little memory.
const RAISE_MEMORY: &str = "ask for less, or raise `limits.memory_mib` in DRIVER.md and the \
                            host's limit `memory_bytes`";

/// The error of a call that gets no more memory, or must end to make room: its principal's share,
/// its publisher's share, or the memory of all calls is full.
fn no_memory(hit: Exceeded) -> CallError {
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

/// The error if the host's memory for the guest exceeds the memory limit. The guest's own memory
/// and the host's memory for it share one limit.
fn held_too_much(hit: Exceeded) -> CallError {
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

/// The memory of one call: its lease from the memory of all calls, and its limit.
#[derive(Debug, Clone)]
pub(crate) struct AttemptMemory {
    lease: Option<Arc<MemoryLease>>,
    limit: u64,
}

impl AttemptMemory {
    pub(crate) fn of(slot: &SlotCell, limit: u64) -> Self {
        Self {
            lease: slot.memory(),
            limit,
        }
    }

    /// Leases at least `used` bytes, up to the limit. Returns the leased bytes.
    pub(crate) fn cover(&self, used: u64) -> Result<u64> {
        let Some(lease) = &self.lease else {
            return Ok(self.limit);
        };
        let covered = lease.cover(used.min(self.limit), self.limit);
        covered.map_err(over)
    }

    /// Parses a text while `held` bytes are in memory, the text's own included. Also returns the
    /// memory that the value takes.
    pub(crate) fn parse(
        &self,
        text: &[u8],
        json: &strict::Limits,
        held: u64,
    ) -> Result<Result<(Value, u64), JsonError>> {
        let most = self.limit.saturating_sub(held);
        let mut room = self.cover(held)?.saturating_sub(held).min(most);
        loop {
            let mut left = room;
            match strict::parse_within(text, json, &mut left) {
                Err(error) if error.kind == JsonErrorKind::TooMuchMemory && room < most => {
                    // Lease more in steps: leasing for the largest possible values first would be
                    // too much for nearly all texts.
                    let more = held.saturating_add(room.saturating_mul(2).max(1));
                    room = self.cover(more)?.saturating_sub(held).min(most);
                }
                parsed => return Ok(parsed.map(|value| (value, room.saturating_sub(left)))),
            }
        }
    }

    /// Drives a future until the call must end to make room for others.
    pub(crate) async fn until_ended<F: Future + Unpin>(&self, mut future: F) -> Result<F::Output> {
        poll_fn(|context| {
            let polled = Pin::new(&mut future).poll(context);
            if polled.is_pending()
                && let Some(lease) = &self.lease
                && let Poll::Ready(exceeded) = lease.poll_ended(context)
            {
                return Poll::Ready(Err(over(exceeded)));
            }
            polled.map(Ok)
        })
        .await
    }
}
