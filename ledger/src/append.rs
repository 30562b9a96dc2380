//! Appending rows: the tree's head is read, and rows and head are written, within one transaction that no other
//! process writes beside. Nothing of it is kept across transactions.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use toolward_signing::key::SigningKey;

use crate::checkpoint::{Checkpoint, sign};
use crate::error::Error;
use crate::record::RecordRef;
use crate::tree::{Edge, leaf_hash};

/// Rows being appended.
pub(crate) struct Appending<'c> {
    pub(crate) tx: Transaction<'c>,
    edge: Edge,
}

impl<'c> Appending<'c> {
    /// Begins, once no other process writes.
    pub(crate) fn begin(sql: &'c mut Connection) -> Result<Self, Error> {
        let tx = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let edge = head(&tx)?;
        Ok(Self { tx, edge })
    }

    /// How many rows there are now.
    pub(crate) fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Appends a row; returns its number.
    pub(crate) fn push<'a>(&mut self, record: impl Into<RecordRef<'a>>) -> Result<u64, Error> {
        let seq = self.edge.size();
        let line = record.into().encode();
        let leaf = leaf_hash(&line);
        let line = std::str::from_utf8(&line).unwrap_or_default();
        self.tx
            .prepare_cached("INSERT INTO entry VALUES (?1, ?2, CAST(?3 AS BLOB))")?
            .execute((integer(seq), leaf.0, line))?;
        self.edge.push(leaf);
        Ok(seq)
    }

    /// Size of the newest checkpoint; 0 without one.
    pub(crate) fn checkpointed(&self) -> Result<u64, Error> {
        newest_size(&self.tx)
    }

    /// Signs the tree as it is now. The note may be shown to others once the transaction is on the disk.
    pub(crate) fn checkpoint(&mut self, key: &SigningKey) -> Result<String, Error> {
        let (size, root) = (self.edge.size(), self.edge.root());
        let note = sign(key, &Checkpoint { size, root });
        self.tx
            .prepare_cached("INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2, ?3)")?
            .execute((integer(size), &note, self.edge.to_bytes()))?;
        Ok(note)
    }

    /// Writes the head, so that the commit waits for the disk with all that was written before, if the connection
    /// does.
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.tx
            .prepare_cached("UPDATE head SET size = ?1, edge = ?2")?
            .execute((integer(self.edge.size()), self.edge.to_bytes()))?;
        Ok(self.tx.commit()?)
    }
}

/// The tree's edge as the file has it.
pub(crate) fn head(sql: &Connection) -> Result<Edge, Error> {
    let (size, edge) = sql
        .prepare_cached("SELECT size, edge FROM head")?
        .query_row([], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
    Edge::from_bytes(unsigned(size)?, &edge)
        .ok_or_else(|| Error::corrupt("the head is not that of a tree"))
}

/// The newest checkpoint: size, note and edge.
pub(crate) fn newest(sql: &Connection) -> Result<Option<(u64, String, Vec<u8>)>, Error> {
    let found = sql
        .prepare_cached("SELECT size, note, edge FROM checkpoint ORDER BY size DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    found
        .map(|(size, note, edge)| Ok((unsigned(size)?, note, edge)))
        .transpose()
}

/// Size of the newest checkpoint; 0 without one.
pub(crate) fn newest_size(sql: &Connection) -> Result<u64, Error> {
    let size: Option<i64> = sql
        .prepare_cached("SELECT max(size) FROM checkpoint")?
        .query_row([], |row| row.get(0))?;
    unsigned(size.unwrap_or(0))
}

/// A number as SQLite has it.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of the file.
pub(crate) fn unsigned(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| Error::corrupt("a negative number"))
}
