//! What waits for answers of the recorder, and how the connection ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::frame::Outcome;
use crate::entry::Repeated;
use crate::error::Error;
use crate::pending::{Pending, Reply, channel};

/// Who waits for an answer.
pub(super) enum Waiting {
    Row(Reply<()>),
    Question(Reply<Option<Repeated>>),
}

impl Waiting {
    fn answer(self, outcome: Outcome) {
        match self {
            Self::Row(reply) => reply.send(outcome.result()),
            Self::Question(reply) => reply.send(match outcome {
                Outcome::Given { same_input } => Ok(Some(Repeated { same_input })),
                other => other.result().map(|()| None),
            }),
        }
    }

    pub(super) fn fail(self, error: Error) {
        match self {
            Self::Row(reply) => reply.send(Err(error)),
            Self::Question(reply) => reply.send(Err(error)),
        }
    }
}

#[derive(Default)]
struct State {
    next: u64,
    waiting: HashMap<u64, Waiting>,
    /// How the connection ended, once it has.
    ended: Option<Result<(), Error>>,
    watchers: Vec<Reply<()>>,
}

/// State of the connection.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Rows that were sent.
    sent: AtomicU64,
    /// Rows that can't be sent any more.
    lost: AtomicU64,
}

impl Shared {
    /// So many rows were sent.
    pub(super) fn sent(&self, rows: u64) {
        self.sent.fetch_add(rows, Ordering::Relaxed);
    }

    /// So many rows can't be sent any more.
    pub(super) fn lose(&self, rows: u64) {
        self.lost.fetch_add(rows, Ordering::Relaxed);
    }

    /// How many rows were sent, and how many lost.
    pub(super) fn rows(&self) -> (u64, u64) {
        let [sent, lost] = [&self.sent, &self.lost].map(|count| count.load(Ordering::Relaxed));
        (sent, lost)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who waits gets a number. Once the connection has ended, nobody waits.
    pub(super) fn register(&self, waiting: Waiting) -> Option<u64> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            let error = ended.clone().err().unwrap_or(Error::Closed);
            drop(state);
            waiting.fail(error);
            return None;
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        state.waiting.insert(id, waiting);
        Some(id)
    }

    /// Takes back what was registered and not sent.
    pub(super) fn withdraw(&self, id: u64, error: Error) {
        let waiting = self.state().waiting.remove(&id);
        if let Some(waiting) = waiting {
            waiting.fail(error);
        }
    }

    pub(super) fn answer(&self, id: u64, outcome: Outcome) {
        let waiting = self.state().waiting.remove(&id);
        if let Some(waiting) = waiting {
            waiting.answer(outcome);
        }
    }

    /// The connection has ended. What was said first counts.
    pub(super) fn end(&self, how: Result<(), Error>) {
        let mut state = self.state();
        let how = state.ended.get_or_insert(how).clone();
        let waiting = std::mem::take(&mut state.waiting);
        let watchers = std::mem::take(&mut state.watchers);
        drop(state);
        self.changed.notify_all();
        let error = how.clone().err().unwrap_or(Error::Closed);
        for waiting in waiting.into_values() {
            waiting.fail(error.clone());
        }
        for watcher in watchers {
            watcher.send(how.clone());
        }
    }

    /// Why nothing can be recorded any more.
    pub(super) fn problem(&self) -> Option<Error> {
        let state = self.state();
        let ended = state.ended.as_ref()?;
        Some(ended.clone().err().unwrap_or(Error::Closed))
    }

    /// Answered at the end of the connection.
    pub(super) fn ended(&self) -> Pending<()> {
        let mut state = self.state();
        match &state.ended {
            Some(ended) => Pending::ready(ended.clone()),
            None => {
                let (reply, answer) = channel();
                state.watchers.push(reply);
                Pending::later(answer)
            }
        }
    }

    /// Waits for the end of the connection; `None` if it takes longer.
    pub(super) fn wait(&self, longest: Duration) -> Option<Result<(), Error>> {
        let until = Instant::now().checked_add(longest);
        let mut state = self.state();
        loop {
            if let Some(ended) = &state.ended {
                return Some(ended.clone());
            }
            let left = until.map_or(longest, |until| {
                until.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
