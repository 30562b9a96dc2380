//! The connection to the state, one at a time in a process, and its transactions.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::Error;
use crate::schema;

/// The state in SQLite.
pub(crate) struct State {
    sql: Mutex<Connection>,
}

impl State {
    pub(crate) fn new(sql: Connection) -> Self {
        Self {
            sql: Mutex::new(sql),
        }
    }

    /// Reads, all of it from one state.
    pub(crate) fn read<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.run(TransactionBehavior::Deferred, work)
    }

    /// Writes: nobody else does meanwhile. Nothing of it happened if `work` fails.
    pub(crate) fn write<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.run(TransactionBehavior::Immediate, work)
    }

    /// Writes without waiting for the disk: this and what is written after it survives the process at once,
    /// and a power cut with whatever is next written.
    pub(crate) fn write_soon<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        schema::wait_for_disk(&sql, false)?;
        let written = transact(&mut sql, TransactionBehavior::Immediate, work);
        schema::wait_for_disk(&sql, true)?;
        written
    }

    fn run<R>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        // A panic in between rolled its transaction back: the connection is sound.
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        transact(&mut sql, behavior, work)
    }
}

fn transact<R>(
    sql: &mut Connection,
    behavior: TransactionBehavior,
    work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let transaction = sql.transaction_with_behavior(behavior)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}
