//! Ids that callers give their calls, as idempotency keys: a call of one id runs once for its principal and tool.
//!
//! An id replaces dispatch alone: a repeated call is resolved, validated, decided and approved like any other. Then
//! it gets the reply of the first one, which the state keeps for a while ([`NamedCalls`]); while that one runs,
//! it waits. The ledger, if there is one, knows ids longer than this process lives.

mod kept;
mod name;

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolward_state::{
    Begun, CallEnding, CallId, Calls, HostState, Keys, StateError, StoredReply, detach, settled,
};

use crate::api::result::{CallError, ErrorClass, ErrorCode};
pub(crate) use kept::{KeptReply, ReplySource};
use name::custom;
pub(crate) use name::{CallName, Named, NamedFacts};

/// A call with this id was started before, and its reply is missing.
pub(crate) fn already_run() -> CallError {
    CallError::new(
        ErrorCode::ALREADY_RUN,
        ErrorClass::ExecutionFailed,
        "a call with this id was started before, and its reply is not kept; it was not made again",
    )
    .with_hint(
        "find out what the first call did before you call again under another id: the operator's ledger has it, \
         where there is one",
    )
}

/// The id was given with another input.
pub(crate) fn other_input() -> CallError {
    CallError::new(
        ErrorCode::INPUT_INVALID,
        ErrorClass::InvalidArguments,
        "this id was given to a call with another input",
    )
    .with_hint("give each call an id of its own; repeat one only to repeat its call unchanged")
}

/// How long the state may take to learn that a call has ended.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// The calls of ids, of all hosts that replace each other.
pub(crate) struct NamedCalls {
    calls: Arc<dyn Calls>,
    keys: Arc<dyn Keys>,
}

/// How a call of an id was taken in.
pub(crate) enum Entered {
    /// It runs: it is the first.
    Runs(RunningCall),
    /// It gets the reply of the first.
    Repeats(Box<KeptReply>),
    /// The first one's reply is not kept.
    Ran,
}

impl NamedCalls {
    pub(crate) fn new(state: &Arc<dyn HostState>) -> Self {
        Self {
            calls: state.clone(),
            keys: state.clone(),
        }
    }

    /// What a driver gets as idempotency key.
    ///
    /// # Errors
    /// If the keys can't be used.
    pub(crate) async fn idempotency_key(
        &self,
        name: &CallName,
        driver: &str,
        deadline: Instant,
    ) -> Result<String, CallError> {
        let hash = || self.keys.id_hash(name.for_driver(driver), deadline);
        let hash = settled(deadline, hash).await.map_err(|error| {
            tracing::error!(%error, "a driver's idempotency key can't be made");
            CallError::internal(error.to_string())
        })?;
        Ok(custom(&hash).to_string())
    }

    /// Takes in a call of this id. It waits for the first one at most so long.
    ///
    /// # Errors
    /// [`ErrorCode::INPUT_INVALID`] for another input, [`ErrorCode::RATE_LIMITED`] if too many wait, and
    /// [`ErrorCode::TIMEOUT`].
    pub(crate) async fn enter(
        &self,
        name: &Arc<CallName>,
        wait: Duration,
    ) -> Result<Entered, CallError> {
        let started = Instant::now();
        let until = started.checked_add(wait).unwrap_or(started);
        let call = name.new_call();
        // Ends the call if this future is dropped while its start is unknown.
        let mut running = RunningCall {
            calls: self.calls.clone(),
            name: name.clone(),
            changes: false,
            dispatched: false,
            running: Some(call),
        };
        let begun = settled(until, || self.calls.begin(call, until)).await;
        if matches!(begun, Ok(Begun::New)) {
            return Ok(Entered::Runs(running));
        }
        let late = || CallError::timed_out(wait, started.elapsed());
        let begun = begun.map_err(|error| match error {
            StateError::Late => late(),
            error => {
                tracing::error!(%error, "a call of an id was not started");
                CallError::internal(error.to_string())
            }
        })?;
        running.running = None;
        match begun {
            Begun::Replied(bytes) => Ok(KeptReply::read(&bytes)
                .map_or(Entered::Ran, |kept| Entered::Repeats(Box::new(kept)))),
            Begun::New | Begun::Running => Err(late()),
            Begun::Ran => Ok(Entered::Ran),
            Begun::Differs => Err(other_input()),
            Begun::Busy(waiting) => Err(busy(waiting)),
        }
    }
}

/// The first call of an id.
pub(crate) struct RunningCall {
    calls: Arc<dyn Calls>,
    name: Arc<CallName>,
    /// Whether a driver that was picked for it may change something.
    pub(crate) changes: bool,
    /// Whether a driver was started.
    pub(crate) dispatched: bool,
    /// Until it ends.
    running: Option<CallId>,
}

impl RunningCall {
    pub(crate) fn name(&self) -> &Arc<CallName> {
        &self.name
    }

    /// Ends it. `recorded` specifies whether a ledger has the id. Without a `reply` there is none to repeat.
    pub(crate) fn end(mut self, recorded: bool, reply: Option<StoredReply>) {
        let counts = recorded || self.dispatched;
        let remembered = self.changes && !recorded;
        self.finish(match reply {
            Some(reply) if counts => CallEnding::Replied { reply, remembered },
            None if counts && remembered => CallEnding::Ran,
            _ => CallEnding::Forgotten,
        });
    }

    fn finish(&mut self, ending: CallEnding) {
        let Some(call) = self.running.take() else {
            return;
        };
        let calls = self.calls.clone();
        let now = Instant::now();
        let deadline = now.checked_add(END_TIMEOUT).unwrap_or(now);
        // Nothing waits for it: this also runs when the call is dropped.
        detach(Box::pin(async move {
            let end = || calls.end(call, ending.clone(), deadline);
            if let Err(error) = settled(deadline, end).await {
                tracing::error!(%error, "the end of a call of an id is not known");
            }
        }));
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let ran = self.dispatched && self.changes;
        self.finish(if ran {
            CallEnding::Ran
        } else {
            CallEnding::Forgotten
        });
    }
}

fn busy(waiting: usize) -> CallError {
    CallError::new(
        ErrorCode::RATE_LIMITED,
        ErrorClass::RateLimited,
        format!("{waiting} calls of this principal wait for the first call of their id"),
    )
    .with_retry_after(Duration::from_secs(1))
    .with_hint("wait for the reply of the first call")
}
