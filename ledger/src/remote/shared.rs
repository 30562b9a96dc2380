//! The callers that wait for answers of the recorder, and the end of the connection.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::recorder::{AnswerSender, Entry, Pending, channel};
use crate::writer::WrittenRows;

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The time without an answer after which the recorder counts as lost.
pub(super) const LOST: Duration = Duration::from_secs(30);

/// A request that is not answered yet.
struct Asked {
    at: Instant,
    /// `None` once the caller has given up.
    waiting: Option<AnswerSender>,
    /// The entry that revokes a start, if the start is written after the caller has given up.
    undo: Option<Box<Entry>>,
    /// Whether the request is the start of a call.
    is_start: bool,
}

#[derive(Default)]
struct State {
    next: u64,
    /// Requests by number, so that the oldest is first.
    asked: BTreeMap<u64, Asked>,
    /// Since when the sending thread has been busy with its current batch.
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
    /// Since when a request or a batch has waited for the recorder without any answer from it.
    fn waits_since(&self) -> Option<Instant> {
        let oldest = self.asked.values().next().map(|asked| asked.at);
        let since = [oldest, self.sending].into_iter().flatten().min()?;
        Some(since.max(self.answered.unwrap_or(since)))
    }

    /// Whether the oldest request, or sending the current batch, takes [`ANSWER`] or longer.
    fn is_silent(&self, now: Instant) -> bool {
        let mut oldest = self.asked.values().take(1);
        let late = |since: Instant| now.saturating_duration_since(since) >= ANSWER;
        oldest.any(|asked| late(asked.at)) || self.sending.is_some_and(late)
    }
}

/// Whether the recorder answers in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answering {
    InTime,
    /// New requests fail at once until the recorder answers again.
    Late,
    /// The recorder counts as lost.
    Never,
}

/// State of the connection.
#[derive(Default)]
pub(super) struct ConnectionState(Mutex<State>);

impl ConnectionState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts sent rows.
    pub(super) fn sent(&self, rows: u64) {
        let mut state = self.state();
        state.sent = state.sent.saturating_add(rows);
    }

    /// Counts rows that can't be sent any more.
    pub(super) fn lose(&self, rows: u64) {
        let mut state = self.state();
        state.lost = state.lost.saturating_add(rows);
    }

    /// The numbers of sent and of lost rows.
    pub(super) fn rows(&self) -> (u64, u64) {
        let state = self.state();
        (state.sent, state.lost)
    }

    /// Registers a waiting caller under a number. Once the connection has ended, the caller gets an
    /// error instead.
    pub(super) fn register(&self, waiting: AnswerSender, undo: Option<Box<Entry>>) -> Option<u64> {
        let mut state = self.state();
        if let Some(ended) = &state.ended {
            let error = ended.clone().err().unwrap_or(Error::Closed);
            drop(state);
            waiting.send(Err(error));
            return None;
        }
        if let Some(undo) = &undo {
            // The call starts again and will run, so its earlier start must not be revoked any
            // more.
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

    /// Removes a request that was registered but not sent.
    pub(super) fn withdraw(&self, id: u64, error: Error) {
        let asked = self.state().asked.remove(&id);
        if let Some(waiting) = asked.and_then(|asked| asked.waiting) {
            waiting.send(Err(error));
        }
    }

    /// Removes a start that was registered but not sent, if its caller has given up. Returns
    /// whether the start was removed.
    pub(super) fn withdraw_late(&self, id: u64) -> bool {
        let mut state = self.state();
        let late = |asked: &Asked| asked.waiting.is_none() && asked.is_start;
        let is_late = state.asked.get(&id).is_some_and(late);
        if is_late {
            state.asked.remove(&id);
        }
        is_late
    }

    /// Answers the waiting caller. If the caller has given up and the request was a start that was
    /// written, returns the entry that revokes the start.
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

    /// Notes that the sending thread starts or has finished a batch.
    pub(super) fn sends(&self, begins: bool) {
        self.state().sending = begins.then(Instant::now);
    }

    /// Sends an error to callers that have waited too long. Returns whether the recorder answers in
    /// time.
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

    /// Stores the recorder's report of the rows that it wrote.
    pub(super) fn wrote(&self, written: WrittenRows) {
        self.state().written = Some(written);
    }

    /// The rows that the recorder wrote, once it has reported them.
    pub(super) fn written(&self) -> Option<WrittenRows> {
        self.state().written.clone()
    }

    /// Notes that the connection has ended. If this was noted before, `how` is ignored.
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

    /// Why nothing can be recorded any more; `None` until the connection has ended.
    pub(super) fn problem(&self) -> Option<Error> {
        let state = self.state();
        let ended = state.ended.as_ref()?;
        Some(ended.clone().err().unwrap_or(Error::Closed))
    }

    /// An answer that comes at the end of the connection.
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
