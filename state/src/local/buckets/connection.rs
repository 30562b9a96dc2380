//! Connections to the store, and their pool. Each connection gives up at the deadline of the
//! operation that uses it. Threads wait for a connection until their deadline at the latest, first
//! come, first served.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use toolward_support::helper::lock;
use toolward_support::sqlite::OpenMode;

use crate::error::Error;

/// The steps of SQLite's virtual machine between two checks of the clock. They take a few hundred
/// microseconds.
const STEPS_PER_CHECK: std::ffi::c_int = 20_000;

/// The longest sleep between two attempts while another process holds the store.
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(4);

/// The most bytes of the write-ahead log that are kept after it was written back.
const MAX_LOG_BYTES: i64 = 4 << 20;

/// A connection, and the deadline that its handlers check.
pub(crate) struct Connection {
    sql: rusqlite::Connection,
    deadline: Deadline,
}

impl Connection {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path, access: OpenMode) -> Result<Self, Error> {
        Self::new(toolward_support::sqlite::open(path, access)?)
    }

    /// Opens an empty store that lives as long as this connection.
    pub(crate) fn in_memory() -> Result<Self, Error> {
        let sql = rusqlite::Connection::open_in_memory()?;
        toolward_support::sqlite::harden(&sql)?;
        Self::new(sql)
    }

    fn new(mut sql: rusqlite::Connection) -> Result<Self, Error> {
        let deadline = Deadline::default();
        let seen = deadline.clone();
        sql.busy_handler(Some(move |count: i32| {
            let interval = Duration::from_micros(100)
                .saturating_mul(u32::try_from(count).unwrap_or(0).saturating_add(1));
            std::thread::sleep(interval.min(MAX_RETRY_INTERVAL).min(left(&seen)));
            !left(&seen).is_zero()
        }))?;
        let seen = deadline.clone();
        sql.progress_handler(STEPS_PER_CHECK, Some(move || left(&seen).is_zero()))?;
        // Makes plans independent of parameter values. Otherwise each binding would prepare the
        // statement again, which takes ten times as long as running it.
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // If the machine crashes, at most the newest writes are lost.
        toolward_support::sqlite::wait_for_disk(&sql, false)?;
        sql.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
        Ok(Self { sql, deadline })
    }

    /// Runs `work`, which fails with [`Error::Busy`] or [`Error::Deadline`] when the deadline
    /// passes. A transaction that is left open is rolled back.
    pub(crate) fn run<R>(
        &mut self,
        deadline: Instant,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<R, Error>,
    ) -> Result<R, Error> {
        *lock(&self.deadline) = Some(deadline);
        let result = if left(&self.deadline).is_zero() {
            Err(Error::Deadline)
        } else {
            work(&mut self.sql)
        };
        // The rollback must not be interrupted.
        *lock(&self.deadline) = None;
        if !self.sql.is_autocommit() {
            self.sql.execute_batch("ROLLBACK")?;
        }
        result
    }
}

/// The deadline of the running operation.
type Deadline = Arc<Mutex<Option<Instant>>>;

/// The time that is left.
fn left(deadline: &Deadline) -> Duration {
    lock(deadline).map_or(Duration::MAX, |at| {
        at.saturating_duration_since(Instant::now())
    })
}

impl From<toolward_support::sqlite::Error> for Error {
    fn from(error: toolward_support::sqlite::Error) -> Self {
        use toolward_support::sqlite::Error as E;
        match error {
            E::Unusable(error) => Self::Unusable(error),
            E::Corrupt(problem) => Self::Corrupt(problem),
            E::Version { found, expected } => Self::Version { found, expected },
            E::Busy => Self::Busy,
            // A statement is interrupted only because its deadline passed.
            E::Interrupted(_) => Self::Deadline,
            E::Full => Self::Full,
            E::ReadOnly(problem) => Self::Io(problem.into()),
            E::Io(error) => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        toolward_support::sqlite::Error::from(error).into()
    }
}

/// A bounded pool; items are made when they are first needed.
pub(crate) struct Pool<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    make: Box<dyn Fn() -> Result<T, Error> + Send + Sync>,
}

struct State<T> {
    idle: Vec<T>,
    /// How many more items may be made.
    left: usize,
    /// Tickets of waiting threads; the oldest is served first, so that no thread starves while
    /// others take items again and again.
    queue: VecDeque<u64>,
    next_ticket: u64,
}

impl<T> Pool<T> {
    /// Creates a pool that holds `first`, and makes up to `more` items with `make`.
    pub(crate) fn new(
        first: T,
        more: usize,
        make: impl Fn() -> Result<T, Error> + Send + Sync + 'static,
    ) -> Self {
        Self {
            state: Mutex::new(State {
                idle: vec![first],
                left: more,
                queue: VecDeque::new(),
                next_ticket: 0,
            }),
            changed: Condvar::new(),
            make: Box::new(make),
        }
    }

    /// Runs `work` with one item. Waits for an item until `deadline` at the latest.
    pub(crate) fn with<R>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut T) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut item = self.take(deadline)?;
        let lost = Lost(self);
        let result = work(&mut item);
        std::mem::forget(lost);
        lock(&self.state).idle.push(item);
        self.changed.notify_all();
        result
    }

    fn take(&self, deadline: Instant) -> Result<T, Error> {
        let mut state = lock(&self.state);
        let ticket = state.next_ticket;
        state.next_ticket = ticket.wrapping_add(1);
        state.queue.push_back(ticket);
        while state.queue.front() != Some(&ticket) || (state.idle.is_empty() && state.left == 0) {
            let wait = deadline.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                state.queue.retain(|other| *other != ticket);
                // The next thread in the queue may have waited only for this one.
                self.changed.notify_all();
                return Err(Error::Busy);
            }
            state = self
                .changed
                .wait_timeout(state, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.queue.pop_front();
        if !state.queue.is_empty() {
            self.changed.notify_all();
        }
        if let Some(item) = state.idle.pop() {
            return Ok(item);
        }
        state.left = state.left.saturating_sub(1);
        drop(state);
        let lost = Lost(self);
        let item = (self.make)()?;
        std::mem::forget(lost);
        Ok(item)
    }
}

/// When dropped, allows the pool to make another item, since this item was lost in a panic or could
/// not be made.
struct Lost<'a, T>(&'a Pool<T>);

impl<T> Drop for Lost<'_, T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.left = state.left.saturating_add(1);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(30)
    }

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn whoever_finds_none_free_waits_until_the_deadline_and_no_longer() {
        let pool = Pool::new(1, 0, || Ok(0));
        pool.with(late(), |_| {
            let start = Instant::now();
            let refused = pool.with(soon(), |_| Ok(()));
            assert!(matches!(refused, Err(Error::Busy)));
            assert!(start.elapsed() < Duration::from_secs(20));
            Ok(())
        })
        .expect("had the one");
        pool.with(late(), |_| Ok(())).expect("it is free again");
    }

    #[test]
    fn more_are_made_when_needed_and_no_more_than_allowed() {
        let pool = Pool::new(1, 1, || Ok(2));
        let seen = pool.with(late(), |first| {
            pool.with(late(), |second| {
                let third = pool.with(soon(), |_| Ok(()));
                assert!(matches!(third, Err(Error::Busy)));
                Ok((*first, *second))
            })
        });
        assert_eq!(seen.expect("two"), (1, 2));
    }

    #[test]
    fn one_that_could_not_be_made_or_was_lost_in_a_panic_can_be_made_again() {
        let pool = Pool::new(1, 0, || Ok(2));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.with(late(), |_| -> Result<(), Error> { panic!("lost") })
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.with(soon(), |item| Ok(*item)).expect("another"), 2);

        let pool: Pool<i32> = Pool::new(1, 1, || Err(Error::Full));
        pool.with(late(), |_| {
            for _ in 0..3 {
                assert!(matches!(pool.with(soon(), |_| Ok(())), Err(Error::Full)));
            }
            Ok(())
        })
        .expect("the first");
    }

    #[test]
    fn those_who_wait_are_served_in_turn() {
        let pool = Arc::new(Pool::new((), 0, || Ok(())));
        let (sender, order) = mpsc::channel();
        let mut threads = Vec::new();
        pool.with(late(), |()| {
            for n in 0..5 {
                let (own, sender) = (pool.clone(), sender.clone());
                threads.push(std::thread::spawn(move || {
                    own.with(late(), |()| {
                        sender.send(n).expect("receiver lives");
                        Ok(())
                    })
                    .expect("a turn");
                }));
                while lock(&pool.state).queue.len() <= n {
                    std::thread::yield_now();
                }
            }
            Ok(())
        })
        .expect("had it");
        for thread in threads {
            thread.join().expect("ends");
        }
        assert_eq!(order.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
