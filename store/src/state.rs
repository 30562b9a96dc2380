//! The connection to the state, one at a time in a process, and its transactions.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::Error;

/// Why a state can only be read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unwritable {
    /// The disk is full.
    Full,
    /// The file or its disk is read-only.
    ReadOnly,
}

/// The state in SQLite.
pub(crate) struct StateDatabase {
    sql: Mutex<Connection>,
    /// Why it can't be written to, if so.
    unwritable: Option<Unwritable>,
}

impl StateDatabase {
    pub(crate) fn new(sql: Connection) -> Self {
        Self {
            sql: Mutex::new(sql),
            unwritable: None,
        }
    }

    /// A state that is only read.
    pub(crate) fn read_only(sql: Connection, why: Unwritable) -> Self {
        Self {
            unwritable: Some(why),
            ..Self::new(sql)
        }
    }

    fn writable(&self) -> Result<(), Error> {
        match self.unwritable {
            Some(Unwritable::Full) => Err(Error::Full),
            Some(Unwritable::ReadOnly) => Err(Error::ReadOnly),
            None => Ok(()),
        }
    }

    /// Reads in one transaction.
    pub(crate) fn read<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        transact(&mut sql, TransactionBehavior::Deferred, work)
    }

    /// Writes in one transaction, exclusively. Rolled back if `work` fails.
    pub(crate) fn write<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.writable()?;
        // A panic in between rolled its transaction back: the connection is sound.
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        // An earlier write may not have waited.
        toolward_sqlite::wait_for_disk(&sql, true)?;
        transact(&mut sql, TransactionBehavior::Immediate, work)
    }

    /// Writes without waiting for the disk: survives the process at once, and a power cut as soon as a later
    /// write has waited.
    pub(crate) fn write_soon<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.writable()?;
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        toolward_sqlite::wait_for_disk(&sql, false)?;
        transact(&mut sql, TransactionBehavior::Immediate, work)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How a commit waits for the disk: 1 is NORMAL, 2 is FULL.
    fn waits(sql: &Transaction<'_>) -> Result<i64, Error> {
        Ok(sql.pragma_query_value(None, "synchronous", |row| row.get(0))?)
    }

    #[test]
    fn a_write_waits_for_the_disk_also_after_one_that_did_not_and_panicked_or_failed() {
        let state = StateDatabase::new(Connection::open_in_memory().unwrap());
        assert_eq!(state.write(waits).unwrap(), 2);
        assert_eq!(state.write_soon(waits).unwrap(), 1);
        assert_eq!(state.write(waits).unwrap(), 2);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            state.write_soon(|_| -> Result<(), Error> { panic!("in a test") })
        }));
        assert!(panicked.is_err());
        assert_eq!(state.write(waits).unwrap(), 2);
        let failed = state.write_soon(|_| Err::<(), _>(Error::Busy));
        assert!(failed.is_err());
        assert_eq!(state.write(waits).unwrap(), 2);
    }
}
