//! The store: one file, one connection that writes, a few that read.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::connection::Connection;
use super::pool::Pool;
use super::schema;
use crate::error::Error;

/// Connections that read at the same time; more reads wait. Each is made when it
/// is first needed.
const MAX_READERS: usize = 4;

/// All buckets of a host. Clones share everything.
///
/// Several processes may have one file open; it has to lie on a file system of
/// the machine itself.
#[derive(Clone)]
pub struct Store {
    connections: Arc<Connections>,
}

struct Connections {
    /// `None`: the writer reads, too. Closed first: only a writer that is the
    /// last writes the log back into the file and removes it.
    readers: Option<Pool<Connection>>,
    writer: Pool<Connection>,
}

impl Store {
    /// Opens the store in the file `path`, making the file (0600) and its
    /// directory (0700) if they are not there.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] when directory or file belong to another user, others
    /// have access to them, or the file is not a regular one; [`Error::Corrupt`]
    /// when it is not a store, [`Error::Version`] when it is another version's.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = toolward_support::files::private_file(path.as_ref())
            .map_err(toolward_support::sqlite::Error::from)?;
        let writer = schema::open(&path)?;
        let reader = schema::open_reader(&path)?;
        let more = path.clone();
        let readers = Pool::new(reader, MAX_READERS - 1, move || schema::open_reader(&more));
        let writer = Pool::new(writer, 0, move || schema::open(&path));
        Ok(Self {
            connections: Arc::new(Connections {
                readers: Some(readers),
                writer,
            }),
        })
    }

    /// Makes a store that ends with its last clone.
    ///
    /// # Errors
    ///
    /// When SQLite can't be initialised.
    pub fn in_memory() -> Result<Self, Error> {
        let lost = || Err(Error::Io("what was in memory is lost".into()));
        Ok(Self {
            connections: Arc::new(Connections {
                readers: None,
                writer: Pool::new(schema::in_memory()?, 0, lost),
            }),
        })
    }

    /// Reads the whole store and says whether it is sound. Takes as long as the
    /// file is large.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] when it is not; the text says where.
    pub fn check(&self, deadline: Instant) -> Result<(), Error> {
        self.read(deadline, schema::check)
    }

    /// Runs `work`, which reads by one statement, or in a transaction of its own.
    pub(crate) fn read<R>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let connections = &self.connections;
        let readers = connections.readers.as_ref().unwrap_or(&connections.writer);
        readers.with(deadline, |connection| connection.run(deadline, work))
    }

    pub(crate) fn write<R>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.connections.writer.with(deadline, |connection| {
            connection.run(deadline, |sql| {
                let transaction =
                    sql.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                let result = work(&transaction)?;
                transaction.commit()?;
                Ok(result)
            })
        })
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
