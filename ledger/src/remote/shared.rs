//! What waits for answers of the recorder, and how the connection ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::recorder::{AnswerSender, Entry, Pending, channel};
use crate::writer::WrittenRows;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_secs(5);
/// After so long without an answer the recorder counts as lost.
pub(super) const LOST: Duration = Duration::from_secs(30);

/// A request that is not answered yet.
struct Asked {
    at: Instant,
    /// `None` once it was waited for long enough.
    waiting: Option<AnswerSender>,
    /// What takes it back, if it is done after that.
    undo: Option<Box<Entry>>,
    /// Whether a call waits for it to start.
    is_start: bool,
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
    watchers: Vec<AnswerSender>,
    /// Rows that were sent.
    sent: u64,
    /// Rows that can't be sent any more.
    lost: u64,
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
pub(super) struct ConnectionState(Mutex<State>);

impl ConnectionState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many rows were sent.
    pub(super) fn sent(&self, rows: u64) {
        let mut state = self.state();
        state.sent = state.sent.saturating_add(rows);
    }

    /// So many rows can't be sent any more.
    pub(super) fn lose(&self, rows: u64) {
        let mut state = self.state();
        state.lost = state.lost.saturating_add(rows);
    }

    /// How many rows were sent, and how many lost.
    pub(super) fn rows(&self) -> (u64, u64) {
        let state = self.state();
        (state.sent, state.lost)
    }

    /// Gives a waiter a number. Once the connection has ended, it fails instead.
    pub(super) fn register(&self, waiting: AnswerSender, undo: Option<Box<Entry>>) -> Option<u64> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            let error = ended.clone().err().unwrap_or(Error::Closed);
            drop(state);
            waiting.send(Err(error));
            return None;
        }
        if let Some(undo) = &undo {
            // A call that starts again runs: nothing may take back its start after that.
            let call = undo.event.of_call();
            for earlier in state.asked.values_mut() {
                earlier
                    .undo
                    .take_if(|earlier| earlier.event.of_call() == call);
            }
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
            waiting.send(Err(error));
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
                waiting.send(outcome);
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
        let late: Vec<AnswerSender> = (state.asked.values_mut())
            .take_while(|asked| now.saturating_duration_since(asked.at) >= ANSWER)
            .filter_map(|asked| asked.waiting.take())
            .collect();
        let is_silent = state.is_silent(now);
        let since = state.waits_since();
        drop(state);
        for waiting in late {
            waiting.send(Err(Error::silent()));
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
        let error = how.clone().err().unwrap_or(Error::Closed);
        for waiting in asked.into_values().filter_map(|asked| asked.waiting) {
            waiting.send(Err(error.clone()));
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
    pub(super) fn ended(&self) -> Pending {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Abandoned, Event, Hex, Invocation};

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
            (shared.register(reply, undo(call)), answer)
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
