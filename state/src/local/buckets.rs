//! Buckets in one SQLite file: one connection writes, a few read. The methods of [`Store`] block
//! the thread. The trait's implementation runs each operation on a thread for blocking work.
//! Operations are interrupted at their deadline.

mod bucket;
mod connection;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::TransactionBehavior;
use toolward_support::sqlite::{FileSchema, OpenMode};

use connection::{Connection, Pool};

use crate::BoxFuture;
use crate::buckets::{BucketOperation, BucketReply, BucketScope, Buckets};
use crate::error::Error;

/// The most connections that read at the same time; further reads wait. Each connection is made
/// when it is first needed.
const MAX_READERS: usize = 4;

/// All buckets of a host. Clones share everything.
///
/// Several processes may open the same file, which must be on a local file system.
#[derive(Clone)]
pub struct Store {
    connections: Arc<Connections>,
}

struct Connections {
    /// `None` if the writer also reads. Readers are closed first: if the writer closes last, it
    /// writes the log back into the file and removes the log.
    readers: Option<Pool<Connection>>,
    writer: Pool<Connection>,
}

impl Store {
    /// Opens the store in the file `path`, and creates the file (0600) and its directory (0700) if
    /// they do not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] if directory or file belong to another user, if others have access to
    /// them, or if the file is not a regular file; [`Error::Corrupt`] if the file is not a store;
    /// [`Error::Version`] if another version wrote it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = toolward_support::files::private_file(path.as_ref())
            .map_err(toolward_support::sqlite::Error::from)?;
        let writer = open(&path)?;
        let reader = open_reader(&path)?;
        let more = path.clone();
        let readers = Pool::new(reader, MAX_READERS - 1, move || open_reader(&more));
        let writer = Pool::new(writer, 0, move || open(&path));
        Ok(Self {
            connections: Arc::new(Connections {
                readers: Some(readers),
                writer,
            }),
        })
    }

    /// Creates a store that exists until its last clone is dropped.
    ///
    /// # Errors
    ///
    /// If SQLite can't be initialised.
    pub fn in_memory() -> Result<Self, Error> {
        let mut connection = Connection::in_memory()?;
        connection.run(deadline(), |sql| Ok(SCHEMA.make(sql)?))?;
        let lost = || Err(Error::Io("what was in memory is lost".into()));
        Ok(Self {
            connections: Arc::new(Connections {
                readers: None,
                writer: Pool::new(connection, 0, lost),
            }),
        })
    }

    /// Reads the whole store and checks that it is valid. The time grows with the size of the file.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the store is not valid; the text names the place.
    pub fn check(&self, deadline: Instant) -> Result<(), Error> {
        self.read(deadline, check)
    }

    /// Runs `work`, which reads with one statement or in one transaction.
    fn read<R>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let connections = &self.connections;
        let readers = connections.readers.as_ref().unwrap_or(&connections.writer);
        readers.with(deadline, |connection| connection.run(deadline, work))
    }

    fn write<R>(
        &self,
        deadline: Instant,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.connections.writer.with(deadline, |connection| {
            connection.run(deadline, |sql| {
                let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let result = work(&transaction)?;
                transaction.commit()?;
                Ok(result)
            })
        })
    }
}

toolward_support::opaque!(Store);

impl Buckets for Store {
    fn operate(
        &self,
        bucket: BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<BucketReply, Error>> {
        Box::pin(async move {
            if matches!(operation, BucketOperation::Open) {
                return Ok(BucketReply::Done);
            }
            let store = self.clone();
            let run = move || store.run(&bucket, operation, deadline);
            match tokio::task::spawn_blocking(run).await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down.
                    Err(_cancelled) => Err(Error::Deadline),
                },
            }
        })
    }
}

/// How the store's file is recognised, and its tables.
const SCHEMA: FileSchema = FileSchema {
    // `TLKV`.
    application_id: 0x544c_4b56,
    version: 1,
    tables: TABLES,
    owner: "a key-value store",
};

/// How long opening waits for other processes.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// `position` orders the keys of one bucket and counts only in that bucket, so that a cursor
/// reveals nothing about other buckets. A bucket's row holds the bucket's totals, and is deleted
/// with the bucket's last entry.
const TABLES: &str = "
CREATE TABLE bucket (
    id        INTEGER PRIMARY KEY,
    owner     TEXT NOT NULL,
    principal TEXT NOT NULL,
    name      TEXT NOT NULL,
    entries   INTEGER NOT NULL CHECK (entries >= 0),
    bytes     INTEGER NOT NULL CHECK (bytes >= 0),
    next      INTEGER NOT NULL,
    UNIQUE (owner, principal, name)
) STRICT;
CREATE TABLE entry (
    id       INTEGER PRIMARY KEY,
    bucket   INTEGER NOT NULL REFERENCES bucket (id),
    position INTEGER NOT NULL,
    key      TEXT NOT NULL,
    value    BLOB NOT NULL,
    UNIQUE (bucket, key),
    UNIQUE (bucket, position)
) STRICT;
";

/// Opens a connection for writing, and creates the tables if they are missing.
fn open(path: &Path) -> Result<Connection, Error> {
    let deadline = deadline();
    let mut connection = Connection::open(path, OpenMode::Write)?;
    connection.run(deadline, |sql| {
        SCHEMA.prepare(sql, deadline)?;
        // If the file can't be written, this fails here and not in a call.
        sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(())
    })?;
    Ok(connection)
}

/// Opens another connection to a file that [`open`] accepted, for reading.
fn open_reader(path: &Path) -> Result<Connection, Error> {
    let mut connection = Connection::open(path, OpenMode::Read)?;
    connection.run(deadline(), |sql| Ok(SCHEMA.require(sql)?))?;
    Ok(connection)
}

fn deadline() -> Instant {
    let now = Instant::now();
    now.checked_add(OPEN_TIMEOUT).unwrap_or(now)
}

/// Reads the whole file and compares each bucket's totals with its entries.
fn check(sql: &mut rusqlite::Connection) -> Result<(), Error> {
    let sql = sql.transaction()?;
    let found: String = sql.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Error::Corrupt(found.into()));
    }
    let wrong: i64 = sql.query_row(
        "SELECT count(*) FROM bucket AS b LEFT JOIN (
             SELECT bucket, count(*) AS entries, max(position) AS last,
                    sum(octet_length(key) + octet_length(value)) AS bytes
             FROM entry GROUP BY bucket
         ) AS e ON e.bucket = b.id
         WHERE e.entries IS NOT b.entries OR e.bytes IS NOT b.bytes OR e.last >= b.next",
        [],
        |row| row.get(0),
    )?;
    let orphans: i64 = sql.query_row(
        "SELECT count(*) FROM entry WHERE bucket NOT IN (SELECT id FROM bucket)",
        [],
        |row| row.get(0),
    )?;
    match (wrong, orphans) {
        (0, 0) => Ok(()),
        _ => Err(Error::Corrupt(
            format!("{wrong} buckets with wrong totals, {orphans} entries without a bucket").into(),
        )),
    }
}
