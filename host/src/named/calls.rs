//! Takes in the calls of ids: the first runs, others wait for it and get its reply.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use zeroize::Zeroizing;

use super::kept::KeptReply;
use super::memory::{Ending, Found, MAX_WAITING, Memory};
use super::{CallName, other_input};
use crate::api::result::{CallError, ErrorClass, ErrorCode};
use crate::sandbox::deadline;

/// The calls of ids, of all hosts that replace each other.
pub(crate) struct NamedCalls {
    secret: Zeroizing<[u8; 32]>,
    memory: Mutex<Memory>,
}

/// How a call of an id was taken in.
pub(crate) enum Entered {
    /// It runs: it is the first.
    Runs(RunningCall),
    /// It gets the reply of the first.
    Repeats(Arc<KeptReply>),
    /// The first one's reply is not kept.
    Ran,
}

impl Default for NamedCalls {
    /// With a random secret: processes give drivers different keys for the same id.
    fn default() -> Self {
        let mut secret = [0; 32];
        // Without randomness keys still differ between ids, but can be guessed.
        let _ = getrandom::fill(&mut secret);
        Self::keyed(secret)
    }
}

impl NamedCalls {
    /// With the secret of an installation.
    pub(crate) fn keyed(secret: [u8; 32]) -> Self {
        Self {
            secret: Zeroizing::new(secret),
            memory: Mutex::default(),
        }
    }

    /// What a driver gets as idempotency key.
    pub(crate) fn idempotency_key(&self, name: &CallName, driver: &str) -> String {
        name.idempotency_key(&self.secret, driver)
    }

    /// Takes in a call of this id. It waits for the first one at most so long.
    ///
    /// # Errors
    /// [`ErrorCode::INPUT_INVALID`] for another input, [`ErrorCode::RATE_LIMITED`] if too many wait, and
    /// [`ErrorCode::TIMEOUT`].
    pub(crate) async fn enter(
        self: &Arc<Self>,
        name: &Arc<CallName>,
        wait: Duration,
    ) -> Result<Entered, CallError> {
        let started = Instant::now();
        let until = started.checked_add(wait).unwrap_or(started);
        loop {
            let found = self.memory().find(name, Instant::now());
            let mut runs = match found {
                Found::New(running) => {
                    return Ok(Entered::Runs(RunningCall {
                        calls: self.clone(),
                        name: name.clone(),
                        changes: false,
                        dispatched: false,
                        running: Some(running),
                    }));
                }
                Found::Replied(reply) => return Ok(Entered::Repeats(reply)),
                Found::Ran => return Ok(Entered::Ran),
                Found::Differs => return Err(other_input()),
                Found::Busy => return Err(busy()),
                Found::Runs(runs) => runs,
            };
            let _waiting = Waiting(self.clone(), name.clone());
            // An error says that the call has ended.
            if deadline::before(until, pin!(runs.changed())).await.is_err() {
                return Err(CallError::timed_out(wait, started.elapsed()));
            }
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first call of an id.
pub(crate) struct RunningCall {
    calls: Arc<NamedCalls>,
    name: Arc<CallName>,
    /// Whether a driver that was picked for it may change something.
    pub(crate) changes: bool,
    /// Whether a driver was started.
    pub(crate) dispatched: bool,
    /// Until it ends; what waits for it goes on once this is dropped.
    running: Option<watch::Sender<()>>,
}

impl RunningCall {
    pub(crate) fn name(&self) -> &Arc<CallName> {
        &self.name
    }

    /// Ends it. `recorded` says that a ledger has the id. Without a `reply` there is none to repeat.
    pub(crate) fn end(mut self, recorded: bool, reply: Option<KeptReply>) {
        let counts = recorded || self.dispatched;
        let remembered = self.changes && !recorded;
        self.finish(match reply {
            Some(reply) if counts => Ending::Replied(Arc::new(reply), remembered),
            None if counts && remembered => Ending::Ran,
            _ => Ending::Forgotten,
        });
    }

    fn finish(&mut self, ending: Ending) {
        if let Some(_running) = self.running.take() {
            let mut memory = self.calls.memory();
            memory.end(&self.name, ending, Instant::now());
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let ran = self.dispatched && self.changes;
        self.finish(if ran { Ending::Ran } else { Ending::Forgotten });
    }
}

/// A call that waits.
struct Waiting(Arc<NamedCalls>, Arc<CallName>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let principal = self.1.principal();
        self.0.memory().waits_no_more(&principal);
    }
}

fn busy() -> CallError {
    CallError::new(
        ErrorCode::RATE_LIMITED,
        ErrorClass::RateLimited,
        format!("{MAX_WAITING} calls of this principal wait for the first call of their id"),
    )
    .with_retry_after(Duration::from_secs(1))
    .with_hint("wait for the reply of the first call")
}

impl std::fmt::Debug for NamedCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the secret.
        f.write_str("NamedCalls(..)")
    }
}
