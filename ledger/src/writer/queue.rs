//! The queue between callers that record and the thread that writes or sends, which is called the
//! taker. The queue is bounded in bytes. If it is full, callers wait. A row that finds no room is
//! dropped if its caller stops waiting or the taker does not answer; dropped rows are counted.

use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::record::{Code, Event};
use crate::recorder::{AnswerSender, Durability, Entry, Given, Pending, channel};
use crate::writer::counted::Refusals;

/// How long writing the row of an ended call is tried.
const ENDED: Duration = Duration::from_secs(2);
/// How long writing any other awaited row is tried.
const OTHERS: Duration = Duration::from_secs(5);

/// A row to be written.
pub(crate) struct QueuedRow {
    pub(crate) entry: Entry,
    /// The caller that waits until the row is on the disk.
    pub(crate) reply: Option<AnswerSender>,
    /// The time until which writing is tried.
    pub(crate) deadline: Instant,
}

impl QueuedRow {
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.entry.event, Event::Ended(_))
    }

    /// Whether the row is the start of a call, which runs once the row is on the disk.
    fn is_start(&self) -> bool {
        matches!(self.entry.event, Event::Started(_))
    }

    /// A row that is not awaited.
    pub(crate) fn queued(entry: Entry) -> Self {
        Self {
            entry,
            reply: None,
            deadline: Instant::now(),
        }
    }
}

/// The contents of the queue that the thread takes at once.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<QueuedRow>,
    pub(crate) flushes: Vec<AnswerSender>,
    pub(crate) questions: Vec<(Given, AnswerSender)>,
    /// How many rows were given up while the queue was full.
    pub(crate) given_up: u64,
    pub(crate) closing: bool,
    /// Why the session ends, if it does not end in good order.
    pub(crate) why: Option<Code>,
}

/// When rows that are not awaited are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gather {
    /// The longest time that a row waits. While such rows arrive, the thread checks for them by
    /// itself, since waking it costs the caller more than adding a row.
    pub(crate) time: Duration,
    /// How many rows are taken without waiting for more.
    pub(crate) rows: usize,
}

impl Gather {
    /// Gathers for at most this time, and at most so many rows.
    pub(crate) const fn new(milliseconds: u64, rows: usize) -> Self {
        let time = Duration::from_millis(milliseconds);
        Self { time, rows }
    }
}

#[derive(Default)]
struct State {
    batch: Batch,
    bytes: usize,
    refusals: Refusals,
    /// When the oldest row that is not awaited arrived.
    oldest: Option<Instant>,
    /// When the thread looks for rows without being woken; `None` if it must be woken.
    next_look: Option<Instant>,
    urgent: bool,
    waiting: Vec<Waker>,
    /// Whether the taker does not answer, so that callers do not wait for it.
    silent: bool,
}

impl State {
    /// Whether the next row enters without waiting. A closing queue accepts no rows, so no row
    /// waits.
    fn has_room(&self, limit: usize) -> bool {
        self.batch.closing || self.bytes < limit
    }

    /// Answers the caller of this row if the taker is silent. The row is still queued, unless it is
    /// a start.
    fn unanswered(&self, row: &mut QueuedRow) -> Option<Error> {
        let reply = row.reply.take_if(|_| self.silent)?;
        let error = match row.is_start() {
            true => Error::silent(),
            false => Error::Late,
        };
        reply.send(Err(error.clone()));
        Some(error)
    }
}

/// The queue.
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limit: usize,
    gather: Gather,
}

impl Queue {
    /// A queue of at most `limit` bytes.
    pub(crate) fn new(limit: usize, gather: Gather) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            limit,
            gather,
        })
    }

    /// The bytes of the rows in it.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn append(self: &Arc<Self>, entry: Entry, durability: Durability) -> Pending {
        let now = Instant::now();
        let ended = matches!(entry.event, Event::Ended(_));
        let deadline = now + if ended { ENDED } else { OTHERS };
        let (reply, answer) = (durability == Durability::Disk).then(channel).unzip();
        let mut row = Some(QueuedRow {
            entry,
            reply,
            deadline,
        });
        let pushed = self.push(&mut row, None, now);
        match (pushed, answer) {
            (Poll::Ready(Ok(())), Some(answer)) => answer,
            (Poll::Ready(done), _) => Pending::ready(done),
            (Poll::Pending, answer) => {
                let mut unsent = Unsent {
                    queue: self.clone(),
                    row,
                };
                Pending::later(async move {
                    poll_fn(|context| {
                        let waker = Some(context.waker());
                        unsent.queue.push(&mut unsent.row, waker, Instant::now())
                    })
                    .await?;
                    match answer {
                        Some(answer) => answer.await,
                        None => Ok(()),
                    }
                })
            }
        }
    }

    /// Takes the row if the queue has room; otherwise `waker` is woken when room may be available.
    fn push(
        &self,
        row: &mut Option<QueuedRow>,
        waker: Option<&Waker>,
        now: Instant,
    ) -> Poll<Result<(), Error>> {
        let mut state = self.state();
        if state.batch.closing {
            return Poll::Ready(Err(Error::Closed));
        }
        let Some(mut taken) = row.take() else {
            return Poll::Ready(Ok(()));
        };
        let unanswered = state.unanswered(&mut taken);
        if let (Some(error), true) = (&unanswered, taken.is_start()) {
            return Poll::Ready(Err(error.clone()));
        }
        let weight = taken.entry.weight();
        // A row that is larger than the queue is accepted while the queue is empty.
        if state.bytes.saturating_add(weight) > self.limit && state.bytes > 0 {
            if state.silent {
                state.batch.given_up = state.batch.given_up.saturating_add(1);
                return Poll::Ready(Err(Error::silent()));
            }
            *row = Some(taken);
            state.waiting.extend(waker.cloned());
            return Poll::Pending;
        }
        let urgent = taken.reply.is_some();
        let kept = match urgent {
            true => Some(taken),
            false => state.refusals.take(taken.entry, now).map(QueuedRow::queued),
        };
        // A counted refusal needs a wake-up like a row, since its window must end.
        let was_idle = state.oldest.is_none() && !state.urgent;
        let (was_urgent, must_be_woken) = (state.urgent, state.next_look.is_none());
        if let Some(row) = kept {
            state.batch.rows.push(row);
            state.bytes = state.bytes.saturating_add(weight);
        }
        state.oldest.get_or_insert(now);
        let is_full = state.bytes > self.limit / 2 || state.batch.rows.len() >= self.gather.rows;
        state.urgent |= urgent || is_full;
        let notify = was_idle && must_be_woken || state.urgent && !was_urgent;
        drop(state);
        if notify {
            self.changed.notify_one();
        }
        Poll::Ready(unanswered.map_or(Ok(()), Err))
    }

    /// Adds a row that is not awaited, even if the queue is full. Drops the row if the queue is
    /// closed.
    pub(crate) fn put(&self, entry: Entry) {
        let mut state = self.state();
        if state.batch.closing {
            return;
        }
        state.bytes = state.bytes.saturating_add(entry.weight());
        state.batch.rows.push(QueuedRow::queued(entry));
        state.urgent = true;
        drop(state);
        self.changed.notify_one();
    }

    /// Sets whether the taker is silent. If it is, waiting callers get an error: questions and
    /// flushes fail, starts are removed, and other rows stay.
    pub(crate) fn set_silent(&self, silent: bool) {
        let mut state = self.state();
        state.silent = silent;
        if !silent {
            return;
        }
        let flushes = std::mem::take(&mut state.batch.flushes);
        let questions = std::mem::take(&mut state.batch.questions);
        let mut rows = std::mem::take(&mut state.batch.rows);
        rows.retain_mut(|row| {
            let taken_out = state.unanswered(row).is_some() && row.is_start();
            if taken_out {
                state.bytes = state.bytes.saturating_sub(row.entry.weight());
            }
            !taken_out
        });
        state.batch.rows = rows;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for reply in flushes
            .into_iter()
            .chain(questions.into_iter().map(|(_, reply)| reply))
        {
            reply.send(Err(Error::silent()));
        }
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn flush(&self) -> Pending {
        self.ask(|state, reply| state.batch.flushes.push(reply))
    }

    pub(crate) fn given(&self, given: Given) -> Pending {
        self.ask(|state, reply| state.batch.questions.push((given, reply)))
    }

    fn ask(&self, put: impl FnOnce(&mut State, AnswerSender)) -> Pending {
        let mut state = self.state();
        if state.silent {
            return Pending::ready(Err(Error::silent()));
        }
        let (reply, answer) = channel();
        // If the question is not added, `reply` is dropped, which answers with `Error::Closed`.
        if !state.batch.closing {
            put(&mut state, reply);
            state.urgent = true;
        }
        drop(state);
        self.changed.notify_one();
        answer
    }

    /// An answer that comes once the next row can enter without waiting.
    pub(crate) fn room(self: &Arc<Self>) -> Pending {
        if self.state().has_room(self.limit) {
            return Pending::ready(Ok(()));
        }
        let queue = self.clone();
        Pending::later(poll_fn(move |context| {
            let mut state = queue.state();
            if state.has_room(queue.limit) {
                return Poll::Ready(Ok(()));
            }
            state.waiting.push(context.waker().clone());
            Poll::Pending
        }))
    }

    /// Closes the queue: it accepts no more rows, and the accepted rows are written. `why` is set
    /// if the session does not end in good order.
    pub(crate) fn close(&self, why: Option<Code>) {
        let mut state = self.state();
        state.batch.closing = true;
        state.batch.why = state.batch.why.take().or(why);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_one();
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether the queue accepts no more rows.
    pub(crate) fn is_closing(&self) -> bool {
        self.state().batch.closing
    }

    /// Waits for something to do, at most until `until`, and takes the contents of the queue.
    pub(crate) fn take(&self, until: Instant) -> Batch {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let due = state
                .oldest
                .map(|oldest| state.next_look.unwrap_or(oldest + self.gather.time));
            if state.urgent
                || state.batch.closing
                || due.is_some_and(|due| due <= now)
                || until <= now
            {
                break;
            }
            state.next_look = state.next_look.filter(|next| *next > now);
            let looks = [due, state.next_look, state.refusals.next()];
            let next = looks.into_iter().flatten().fold(until, Instant::min);
            let wait = next.saturating_duration_since(now);
            if wait.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let closing = state.batch.closing;
        let next = Batch {
            closing,
            why: state.batch.why.clone(),
            ..Batch::default()
        };
        let mut batch = std::mem::replace(&mut state.batch, next);
        let counted = state.refusals.ended(Instant::now(), closing);
        let gathered = batch.rows.iter().any(|row| row.reply.is_none());
        state.next_look = gathered.then(|| Instant::now() + self.gather.time);
        batch
            .rows
            .extend(counted.into_iter().map(QueuedRow::queued));
        state.bytes = 0;
        state.oldest = None;
        state.urgent = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        batch
    }
}

/// A row that waits for room. If its caller stops waiting, the row is counted.
struct Unsent {
    queue: Arc<Queue>,
    row: Option<QueuedRow>,
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if self.row.is_some() {
            let mut state = self.queue.state();
            state.batch.given_up = state.batch.given_up.saturating_add(1);
            state.oldest.get_or_insert_with(Instant::now);
            drop(state);
            self.queue.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
