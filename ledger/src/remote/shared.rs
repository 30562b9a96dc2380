//! What waits for answers of the recorder, and how the connection ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::record::Event;
use crate::recorder::{AnswerSender, Entry, Pending, Repeated, channel};
use crate::writer::WrittenRows;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// After so long without an answer the recorder counts as lost.
pub(super) const LOST: Duration = Duration::from_secs(30);

/// Who waits for an answer.
pub(super) enum AnswerWaiter {
    Row(AnswerSender<()>),
    Question(AnswerSender<Option<Repeated>>),
}

impl AnswerWaiter {
    fn answer(self, outcome: Result<(), Error>) {
        match self {
            Self::Row(reply) => reply.send(outcome),
            Self::Question(reply) => reply.send(match outcome {
                Err(Error::Given { same_input }) => Ok(Some(Repeated { same_input })),
                other => other.map(|()| None),
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

/// A request that is not answered yet.
struct Asked {
    at: Instant,
    /// `None` once it was waited for long enough.
    waiting: Option<AnswerWaiter>,
    /// What takes it back, if it is done after that.
    undo: Option<Box<Entry>>,
    /// Whether a call waits for it to start.
    is_start: bool,
}

impl Asked {
    /// Whether it would take back the same call.
    fn undoes(&self, event: &Event) -> bool {
        let call = |event: &Event| match event {
            Event::Abandoned(body) => Some(body.invocation),
            _ => None,
        };
        self.undo
            .as_ref()
            .is_some_and(|undo| call(&undo.event) == call(event))
    }
}

#[derive(Default)]
struct State {
    next: u64,
    /// By number, so that the oldest stands first.
    asked: BTreeMap<u64, Asked>,
    /// Since when the thread that sends has not got through with what it took.
    sending: Option<Instant>,
    /// When the recorder answered last.
    answered: Option<Instant>,
    /// How the connection ended, once it has.
    ended: Option<Result<(), Error>>,
    written: Option<WrittenRows>,
    watchers: Vec<AnswerSender<()>>,
}

impl State {
    /// Since when something is waited for.
    fn waits_since(&self) -> Option<Instant> {
        let oldest = self.asked.values().next().map(|asked| asked.at);
        let since = [oldest, self.sending].into_iter().flatten().min()?;
        Some(since.max(self.answered.unwrap_or(since)))
    }

    /// Whether a caller has given up on what is not answered yet.
    fn is_silent(&self, now: Instant) -> bool {
        let mut oldest = self.asked.values().take(1);
        let late = |since: Instant| now.saturating_duration_since(since) >= ANSWER;
        oldest.any(|asked| late(asked.at)) || self.sending.is_some_and(late)
    }
}

/// How the recorder answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answering {
    InTime,
    /// Nothing is waited for until it answers.
    Late,
    /// It counts as lost.
    Never,
}

/// State of the connection.
#[derive(Default)]
pub(super) struct ConnectionState {
    state: Mutex<State>,
    changed: Condvar,
    /// Rows that were sent.
    sent: AtomicU64,
    /// Rows that can't be sent any more.
    lost: AtomicU64,
}

impl ConnectionState {
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

    /// Gives a waiter a number. Once the connection has ended, it fails instead.
    pub(super) fn register(&self, waiting: AnswerWaiter, undo: Option<Box<Entry>>) -> Option<u64> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            let error = ended.clone().err().unwrap_or(Error::Closed);
            drop(state);
            waiting.fail(error);
            return None;
        }
        if let Some(undo) = &undo {
            // A call that starts again runs: nothing may take back its start after that.
            let same = |earlier: &Asked| earlier.undoes(&undo.event);
            (state.asked.values_mut().filter(|earlier| same(earlier)))
                .for_each(|earlier| earlier.undo = None);
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        let asked = Asked {
            at: Instant::now(),
            waiting: Some(waiting),
            is_start: undo.is_some(),
            undo,
        };
        state.asked.insert(id, asked);
        Some(id)
    }

    /// Takes back what was registered and not sent.
    pub(super) fn withdraw(&self, id: u64, error: Error) {
        let asked = self.state().asked.remove(&id);
        if let Some(waiting) = asked.and_then(|asked| asked.waiting) {
            waiting.fail(error);
        }
    }

    /// Takes back a start that was registered and not sent, if it was waited for long enough. Returns whether it was.
    pub(super) fn withdraw_late(&self, id: u64) -> bool {
        let mut state = self.state();
        let late = |asked: &Asked| asked.waiting.is_none() && asked.is_start;
        let is_late = state.asked.get(&id).is_some_and(late);
        if is_late {
            state.asked.remove(&id);
        }
        is_late
    }

    /// Answers the waiter. If it has given up, and the request was done all the same, returns what takes it back.
    pub(super) fn answer(&self, id: u64, outcome: Result<(), Error>) -> Option<Box<Entry>> {
        let mut state = self.state();
        state.answered = Some(Instant::now());
        let asked = state.asked.remove(&id);
        drop(state);
        let asked = asked?;
        match asked.waiting {
            Some(waiting) => {
                waiting.answer(outcome);
                None
            }
            None => asked.undo.filter(|_| outcome.is_ok()),
        }
    }

    /// The thread that sends starts with what it took, or has sent it.
    pub(super) fn sends(&self, begins: bool) {
        self.state().sending = begins.then(Instant::now);
    }

    /// Tells those who have waited for long enough; how the recorder answers.
    pub(super) fn look(&self, now: Instant) -> Answering {
        let mut state = self.state();
        let late: Vec<AnswerWaiter> = (state.asked.values_mut())
            .take_while(|asked| now.saturating_duration_since(asked.at) >= ANSWER)
            .filter_map(|asked| asked.waiting.take())
            .collect();
        let is_silent = state.is_silent(now);
        let since = state.waits_since();
        drop(state);
        for waiting in late {
            waiting.fail(Error::silent());
        }
        match since {
            Some(since) if now.saturating_duration_since(since) >= LOST => Answering::Never,
            _ if is_silent => Answering::Late,
            _ => Answering::InTime,
        }
    }

    /// What the recorder reports of the rows that it wrote.
    pub(super) fn wrote(&self, written: WrittenRows) {
        self.state().written = Some(written);
    }

    /// The rows that the recorder wrote, once it has reported them.
    pub(super) fn written(&self) -> Option<WrittenRows> {
        self.state().written.clone()
    }

    /// The connection has ended. The first report counts.
    pub(super) fn end(&self, how: Result<(), Error>) {
        let mut state = self.state();
        let how = state.ended.get_or_insert(how).clone();
        let asked = std::mem::take(&mut state.asked);
        let watchers = std::mem::take(&mut state.watchers);
        drop(state);
        self.changed.notify_all();
        let error = how.clone().err().unwrap_or(Error::Closed);
        for waiting in asked.into_values().filter_map(|asked| asked.waiting) {
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
                answer
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Abandoned, Hex, Invocation};

    fn undo(call: u8) -> Option<Box<Entry>> {
        let event = Event::Abandoned(Abandoned {
            invocation: Invocation::from_bytes([call; 16]),
            of: Hex([0; 16]),
            why: None,
        });
        Some(Box::new(Entry::new(event)))
    }

    #[test]
    fn a_call_that_starts_again_is_not_taken_back_for_its_first_start() {
        let shared = ConnectionState::default();
        let start = |call| {
            let (reply, answer) = channel();
            (
                shared.register(AnswerWaiter::Row(reply), undo(call)),
                answer,
            )
        };
        let [first, other] = [1, 2].map(|call| start(call).0.expect("a number"));
        let late = Instant::now() + ANSWER;
        assert_eq!(shared.look(late), Answering::Late);
        let (again, answer) = start(1);
        assert!(shared.answer(first, Ok(())).is_none());
        assert!(shared.answer(other, Ok(())).is_some());
        assert!(shared.answer(again.expect("a number"), Ok(())).is_none());
        assert!(answer.wait().is_ok());
    }
}
