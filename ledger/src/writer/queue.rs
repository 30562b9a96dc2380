//! The queue between those who record and the thread that writes: bounded in bytes. Where it is full, callers wait;
//! nothing is dropped.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::entry::{Entry, Given, Repeated};
use crate::error::Error;
use crate::pending::{Pending, Reply, channel};
use crate::record::{Code, Event};
use crate::recorder::Durability;
use crate::writer::refusals::Refusals;

/// How long the row of an ended call is tried.
const ENDED: Duration = Duration::from_secs(2);
/// How long other rows that somebody waits for are tried.
const OTHERS: Duration = Duration::from_secs(5);

/// A row to be written.
pub(crate) struct Row {
    pub(crate) entry: Entry,
    /// Who waits for it to be on the disk.
    pub(crate) reply: Option<Reply<()>>,
    /// Until when it is tried.
    pub(crate) deadline: Instant,
}

impl Row {
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.entry.event, Event::Ended(_))
    }

    /// Its call runs once it is on the disk.
    fn is_start(&self) -> bool {
        matches!(self.entry.event, Event::Started(_))
    }

    /// A row that nobody waits for.
    pub(crate) fn queued(entry: Entry) -> Self {
        Self {
            entry,
            reply: None,
            deadline: Instant::now(),
        }
    }
}

/// What the thread takes at once.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Row>,
    pub(crate) flushes: Vec<Reply<()>>,
    pub(crate) questions: Vec<(Given, Reply<Option<Repeated>>)>,
    /// How many rows were given up while the queue was full.
    pub(crate) given_up: u64,
    pub(crate) closing: bool,
    /// Why it ends, where that is not in good order.
    pub(crate) why: Option<Code>,
}

/// How long rows that nobody waits for are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gather {
    /// At most this long. While such rows come, the thread looks for them by itself: to wake it costs the caller more
    /// than its row.
    For(Duration),
    /// Until [`Queue::take_gathered`], or until something else has the thread take what is there.
    UntilTold,
}

#[derive(Default)]
struct State {
    rows: VecDeque<Row>,
    bytes: usize,
    flushes: Vec<Reply<()>>,
    questions: Vec<(Given, Reply<Option<Repeated>>)>,
    refusals: Refusals,
    /// When the oldest row that nobody waits for came.
    oldest: Option<Instant>,
    /// When the thread looks for rows without being woken; `None` where it has to be.
    next_look: Option<Instant>,
    urgent: bool,
    waiting: Vec<Waker>,
    given_up: u64,
    /// Whether who takes the rows does not answer: nobody waits for that.
    silent: bool,
    closing: bool,
    why: Option<Code>,
}

impl State {
    /// Whether the next row gets in without waiting. A queue that closes takes none, so that none waits.
    fn has_room(&self, limit: usize) -> bool {
        self.closing || self.bytes < limit
    }

    /// Whether nobody waits for this row: it is queued without. A start that nobody waits for is not queued.
    fn unanswered(&self, row: &mut Row) -> Option<Error> {
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
    /// A queue of at most so many bytes.
    pub(crate) fn new(limit: usize, gather: Gather) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            limit,
            gather,
        })
    }

    /// Bytes of the rows in it.
    pub(crate) fn bytes(&self) -> usize {
        self.state().bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn append(self: &Arc<Self>, entry: Entry, durability: Durability) -> Pending<()> {
        let now = Instant::now();
        let ended = matches!(entry.event, Event::Ended(_));
        let deadline = now + if ended { ENDED } else { OTHERS };
        let (reply, answer) = match durability {
            Durability::Disk => {
                let (reply, answer) = channel();
                (Some(reply), Some(answer))
            }
            Durability::Queued => (None, None),
        };
        let mut row = Some(Row {
            entry,
            reply,
            deadline,
        });
        let pushed = self.push(&mut row, None, now);
        match (pushed, answer) {
            (Poll::Ready(Err(error)), _) => Pending::ready(Err(error)),
            (Poll::Ready(Ok(())), None) => Pending::ready(Ok(())),
            (Poll::Ready(Ok(())), Some(answer)) => Pending::later(answer),
            (Poll::Pending, answer) => {
                let mut unsent = Unsent {
                    queue: self.clone(),
                    row,
                };
                Pending::later(async move {
                    poll_fn(|context| unsent.push(context.waker())).await?;
                    match answer {
                        Some(answer) => answer.await,
                        None => Ok(()),
                    }
                })
            }
        }
    }

    /// Takes the row if there is room; else `waker` is told when there may be.
    fn push(
        &self,
        row: &mut Option<Row>,
        waker: Option<&Waker>,
        now: Instant,
    ) -> Poll<Result<(), Error>> {
        let mut state = self.state();
        if state.closing {
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
        // Alone in the queue, even what is larger than the queue gets through.
        if state.bytes.saturating_add(weight) > self.limit && state.bytes > 0 {
            if state.silent {
                state.given_up = state.given_up.saturating_add(1);
                return Poll::Ready(Err(Error::silent()));
            }
            *row = Some(taken);
            state.waiting.extend(waker.cloned());
            return Poll::Pending;
        }
        let Row {
            entry,
            reply,
            deadline,
        } = taken;
        let urgent = reply.is_some();
        let kept = match urgent {
            true => Some(entry),
            false => state.refusals.take(entry, now),
        };
        // A refusal that is counted is like a row: its window has to end.
        let was_idle = state.oldest.is_none() && !state.urgent;
        let has_to_be_woken = matches!(self.gather, Gather::For(_)) && state.next_look.is_none();
        if let Some(entry) = kept {
            state.rows.push_back(Row {
                entry,
                reply,
                deadline,
            });
            state.bytes = state.bytes.saturating_add(weight);
        }
        state.oldest.get_or_insert(now);
        state.urgent |= urgent || state.bytes > self.limit / 2;
        let notify = was_idle && has_to_be_woken || state.urgent;
        drop(state);
        if notify {
            self.changed.notify_one();
        }
        Poll::Ready(unanswered.map_or(Ok(()), Err))
    }

    /// Takes a row that is not dropped for lack of room, and that nobody waits for.
    pub(crate) fn put(&self, entry: Entry) {
        let mut state = self.state();
        if state.closing {
            return;
        }
        state.bytes = state.bytes.saturating_add(entry.weight());
        state.rows.push_back(Row::queued(entry));
        state.urgent = true;
        drop(state);
        self.changed.notify_one();
    }

    /// Says whether who takes the rows answers. Where not, nobody waits: questions fail, starts are taken out, and
    /// other rows stay.
    pub(crate) fn set_silent(&self, silent: bool) {
        let mut state = self.state();
        state.silent = silent;
        if !silent {
            return;
        }
        let flushes = std::mem::take(&mut state.flushes);
        let questions = std::mem::take(&mut state.questions);
        let mut rows = std::mem::take(&mut state.rows);
        rows.retain_mut(|row| {
            let taken_out = state.unanswered(row).is_some() && row.is_start();
            if taken_out {
                state.bytes = state.bytes.saturating_sub(row.entry.weight());
            }
            !taken_out
        });
        state.rows = rows;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for reply in flushes {
            reply.send(Err(Error::silent()));
        }
        for (_, reply) in questions {
            reply.send(Err(Error::silent()));
        }
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Has rows taken that were gathered until now.
    pub(crate) fn take_gathered(&self) {
        let mut state = self.state();
        if state.oldest.is_some() && !state.urgent {
            state.urgent = true;
            drop(state);
            self.changed.notify_one();
        }
    }

    pub(crate) fn flush(&self) -> Pending<()> {
        self.ask(|state, reply| state.flushes.push(reply))
    }

    pub(crate) fn given(&self, given: Given) -> Pending<Option<Repeated>> {
        self.ask(|state, reply| state.questions.push((given, reply)))
    }

    fn ask<T: Send + 'static>(&self, put: impl FnOnce(&mut State, Reply<T>)) -> Pending<T> {
        let mut state = self.state();
        if state.silent {
            return Pending::ready(Err(Error::silent()));
        }
        let (reply, answer) = channel();
        // What is not put answers that the ledger is closed.
        if !state.closing {
            put(&mut state, reply);
            state.urgent = true;
        }
        drop(state);
        self.changed.notify_one();
        Pending::later(answer)
    }

    /// Answered once the next row gets into the queue without waiting.
    pub(crate) fn room(self: &Arc<Self>) -> Pending<()> {
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

    /// Nothing is taken any more; what was taken is written. `why` is for an end that is not in good order.
    pub(crate) fn close(&self, why: Option<Code>) {
        let mut state = self.state();
        state.closing = true;
        state.why = state.why.take().or(why);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.changed.notify_one();
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether nothing is taken any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.state().closing
    }

    /// Waits for something to do, at most until `until`.
    pub(crate) fn take(&self, until: Instant) -> Batch {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let due = match (self.gather, state.oldest) {
                (Gather::For(time), Some(oldest)) => Some(state.next_look.unwrap_or(oldest + time)),
                _ => None,
            };
            if state.urgent || state.closing || due.is_some_and(|due| due <= now) || until <= now {
                break;
            }
            state.next_look = state.next_look.filter(|next| *next > now);
            let next = [due, state.next_look, state.refusals.next(), Some(until)]
                .into_iter()
                .flatten()
                .min();
            let wait = next.unwrap_or(until).saturating_duration_since(now);
            if wait.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let closing = state.closing;
        let mut rows: Vec<Row> = std::mem::take(&mut state.rows).into();
        let counted = state.refusals.ended(Instant::now(), closing);
        state.next_look = match self.gather {
            Gather::For(time) if rows.iter().any(|row| row.reply.is_none()) => {
                Some(Instant::now() + time)
            }
            _ => None,
        };
        rows.extend(counted.into_iter().map(Row::queued));
        state.bytes = 0;
        state.oldest = None;
        state.urgent = false;
        let batch = Batch {
            rows,
            flushes: std::mem::take(&mut state.flushes),
            questions: std::mem::take(&mut state.questions),
            given_up: std::mem::take(&mut state.given_up),
            closing,
            why: state.why.clone(),
        };
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        batch
    }
}

/// A row that waits for room. One whose caller waits no more is counted.
struct Unsent {
    queue: Arc<Queue>,
    row: Option<Row>,
}

impl Unsent {
    fn push(&mut self, waker: &Waker) -> Poll<Result<(), Error>> {
        self.queue.push(&mut self.row, Some(waker), Instant::now())
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if self.row.is_some() {
            let mut state = self.queue.state();
            state.given_up = state.given_up.saturating_add(1);
            state.oldest.get_or_insert_with(Instant::now);
            drop(state);
            self.queue.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::record::Closed;

    fn queued() -> Entry {
        Entry::new(Event::Closed(Closed { why: None }))
    }

    #[test]
    fn what_is_gathered_until_told_is_taken_then() {
        let queue = Queue::new(1 << 20, Gather::UntilTold);
        let (sender, taken) = channel();
        let own = queue.clone();
        let thread = std::thread::spawn(move || {
            let batch = own.take(Instant::now() + Duration::from_secs(3600));
            sender.send(batch.rows.len())
        });
        // Nothing is there to be taken.
        queue.take_gathered();
        for _ in 0..3 {
            queue.append(queued(), Durability::Queued).wait().unwrap();
        }
        let waited = taken.recv_timeout(Duration::from_millis(100));
        assert!(waited.is_err(), "{waited:?}");
        queue.take_gathered();
        assert_eq!(taken.recv().unwrap(), 3);
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn a_row_is_taken_in_time_while_others_come_and_when_none_came_for_long() {
        const GATHER: Duration = Duration::from_millis(50);
        let queue = Queue::new(1 << 20, Gather::For(GATHER));
        let (sender, taken) = channel();
        let own = queue.clone();
        let thread = std::thread::spawn(move || {
            loop {
                let batch = own.take(Instant::now() + Duration::from_secs(3600));
                let next_look = own.state().next_look;
                if batch.closing || sender.send((batch.rows.len(), next_look)).is_err() {
                    return;
                }
            }
        });
        let append = |durability| queue.append(queued(), durability);
        // The second comes before the thread looks again, the third long after that.
        for pause in [0, 5, 300] {
            std::thread::sleep(Duration::from_millis(pause));
            append(Durability::Queued).wait().unwrap();
            let (rows, next_look) = taken.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(rows, 1);
            assert!(next_look.is_some());
        }
        // Nobody has to look for what is waited for.
        let pending = append(Durability::Disk);
        let (rows, next_look) = taken.recv().unwrap();
        assert_eq!((rows, next_look), (1, None));
        drop(pending);
        queue.close(None);
        thread.join().unwrap();
    }

    #[test]
    fn who_gives_up_wakes_the_thread_that_counts() {
        let queue = Queue::new(1, Gather::For(Duration::from_millis(1)));
        let _first = queue.append(queued(), Durability::Queued);
        let waits = queue.append(queued(), Durability::Queued);
        // The thread empties the queue and sleeps again before its caller goes.
        assert_eq!(queue.take(Instant::now()).rows.len(), 1);
        let own = queue.clone();
        let (sender, taken) = channel();
        let thread = std::thread::spawn(move || {
            // What it expects by itself has passed then.
            own.take(Instant::now() + Duration::from_millis(20));
            sender.send(0)?;
            let batch = own.take(Instant::now() + Duration::from_secs(3600));
            sender.send(batch.given_up)
        });
        assert_eq!(taken.recv(), Ok(0));
        std::thread::sleep(Duration::from_millis(100));
        drop(waits);
        assert_eq!(taken.recv_timeout(Duration::from_secs(60)), Ok(1));
        thread.join().unwrap().unwrap();
    }
}
