//! Appends rows to the file of records. Each transaction reads the tree's head (its size and its
//! [`Edge`]), and writes rows and the new head. No other process writes in the meantime, and no
//! state is kept across transactions.
//!
//! Opening a ledger compares it with its newest checkpoint, and with the newest checkpoint in the
//! operator's file of checkpoints. [`verify`](crate::Reader::verify) checks all rows.

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use toolward_signing::key::SigningKey;
use toolward_support::files::{Links, Protection};

use crate::checkpoint::{Checkpoint, Verifier, sign};
use crate::error::Error;
use crate::record::{Code, Event, Gap, Hash, Hex, Number, Record, Session};
use crate::recorder::now;
use crate::tree::{Edge, leaf_hash};

/// Starts a transaction that writes.
pub(crate) fn write(sql: &mut Connection) -> Result<Transaction<'_>, Error> {
    Ok(sql.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// Rows being appended.
pub(crate) struct Appending<'c> {
    pub(crate) tx: Transaction<'c>,
    edge: Edge,
}

impl<'c> Appending<'c> {
    /// Starts a transaction, once no other process writes.
    pub(crate) fn begin(sql: &'c mut Connection) -> Result<Self, Error> {
        let tx = write(sql)?;
        let edge = head(&tx)?;
        Ok(Self { tx, edge })
    }

    /// The number of rows now.
    pub(crate) fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Appends a row; returns its number.
    pub(crate) fn push(
        &mut self,
        at: Number,
        session: Session,
        event: &Event,
    ) -> Result<u64, Error> {
        let seq = self.edge.size();
        let line = event.encode(at, session);
        let leaf = leaf_hash(&line);
        self.tx
            .prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3)")?
            .execute((integer(seq), leaf.0, line))?;
        self.edge.push(leaf);
        Ok(seq)
    }

    /// Appends an event that happens now.
    pub(crate) fn add(&mut self, session: Session, event: Event) -> Result<u64, Error> {
        self.push(now(), session, &event)
    }

    /// Appends a row which states that payloads, but no rows, are lost.
    pub(crate) fn add_lost_payloads(&mut self, session: Session) -> Result<u64, Error> {
        let gap = Gap {
            missing: Number::default(),
            since: now(),
            why: Code::parse("payloads-damaged")?,
        };
        self.add(session, Event::Gap(gap))
    }

    /// Size of the newest checkpoint; 0 without one.
    pub(crate) fn checkpointed(&self) -> Result<u64, Error> {
        newest_size(&self.tx)
    }

    /// Signs the current tree. Returns the signed checkpoint, called a note. It may be published
    /// once the transaction is on the disk.
    pub(crate) fn checkpoint(&mut self, key: &SigningKey) -> Result<String, Error> {
        let (size, root) = (self.edge.size(), self.edge.root());
        let note = sign(key, &Checkpoint { size, root });
        self.tx
            .prepare_cached("INSERT OR REPLACE INTO checkpoint VALUES (?1, ?2, ?3)")?
            .execute((integer(size), &note, self.edge.to_bytes()))?;
        Ok(note)
    }

    /// Writes the head and commits. If the connection is set to wait for the disk, all earlier
    /// commits are then on the disk, too.
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.tx
            .prepare_cached("UPDATE head SET size = ?1, edge = ?2")?
            .execute((integer(self.edge.size()), self.edge.to_bytes()))?;
        Ok(self.tx.commit()?)
    }
}

/// The tree's edge, as stored in the file.
pub(crate) fn head(sql: &Connection) -> Result<Edge, Error> {
    let (size, edge) = sql
        .prepare_cached("SELECT size, edge FROM head")?
        .query_row([], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
    Edge::from_bytes(unsigned(size)?, &edge)
        .ok_or_else(|| Error::corrupt("the head is not that of a tree"))
}

/// The newest checkpoint with at most `most` rows: size, note and edge.
pub(crate) fn newest(sql: &Connection, most: u64) -> Result<Option<StoredCheckpoint>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT size, note, edge FROM checkpoint WHERE size <= ?1 ORDER BY size DESC LIMIT 1",
    )?;
    let mut found = statement.query_and_then([integer(most)], checkpoint_of_row)?;
    found.next().transpose()
}

/// The size of a checkpoint, its signed text (note), and the bytes of the tree's edge.
pub(crate) type StoredCheckpoint = (u64, String, Vec<u8>);

/// The checkpoint in a row of `size`, `note`, `edge`.
pub(crate) fn checkpoint_of_row(row: &rusqlite::Row<'_>) -> Result<StoredCheckpoint, Error> {
    Ok((unsigned(row.get(0)?)?, row.get(1)?, row.get(2)?))
}

/// Size of the newest checkpoint; 0 without one.
pub(crate) fn newest_size(sql: &Connection) -> Result<u64, Error> {
    let size: Option<i64> = sql
        .prepare_cached("SELECT max(size) FROM checkpoint")?
        .query_row([], |row| row.get(0))?;
    unsigned(size.unwrap_or(0))
}

/// A number in SQLite's type.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was read from the file.
pub(crate) fn unsigned(number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|_| Error::corrupt("a negative number"))
}

/// The bytes that are read from the end of a file of checkpoints, enough for a few hundred
/// checkpoints.
const TAIL_BYTES: u64 = 64 * 1024;
/// Lines of a checkpoint as the ledger writes it: three lines of the body, an empty line and a
/// signature.
const NOTE_LINES: usize = 5;

/// Refuses a ledger that is shorter than a checkpoint, or differs from it.
///
/// `checkpoints` is the operator's file of checkpoints, if there is one. Hashes the rows after the
/// ledger's newest checkpoint, and compares the result with the head. The number of rows to read is
/// bounded by the distance between checkpoints.
pub(crate) fn check_head(
    sql: &mut Connection,
    verifier: &Verifier,
    checkpoints: Option<&Path>,
) -> Result<(), Error> {
    let outside = match checkpoints {
        Some(path) => newest_outside(path, verifier)?,
        None => None,
    };
    let tx = sql.transaction()?;
    let head = head(&tx)?;
    let last: Option<i64> = tx.query_row("SELECT max(seq) FROM entry", [], |row| row.get(0))?;
    let rows = last.map_or(Ok(0), |last| {
        unsigned(last).map(|last| last.saturating_add(1))
    })?;
    if rows != head.size() {
        return Err(Error::Differs("the head does not count its rows"));
    }
    if let Some(outside) = outside {
        compare(&tx, verifier, outside, head.size())?;
    }
    let newest = newest(&tx, u64::MAX)?;
    let another = "the newest checkpoint signs another tree";
    let mut edge = signed_edge(newest, verifier, head.size(), another)?;
    hash_rows(&tx, &mut edge, head.size(), true)?;
    match edge == head {
        true => Ok(()),
        false => Err(Error::Differs("the head is not the tree of the rows")),
    }
}

/// Compares the ledger with a checkpoint that was kept elsewhere.
fn compare(
    sql: &Connection,
    verifier: &Verifier,
    outside: Checkpoint,
    size: u64,
) -> Result<(), Error> {
    shorter(size, outside.size)?;
    // Starts at the ledger's newest checkpoint with at most as many rows. Its signature confirms
    // its edge.
    let below = newest(sql, outside.size)?;
    let another = "a checkpoint signs another tree";
    let mut edge = signed_edge(below, verifier, u64::MAX, another)?;
    hash_rows(sql, &mut edge, outside.size, false)?;
    match edge.root() == outside.root {
        true => Ok(()),
        false => Err(Error::Differs(
            "the checkpoint that was kept elsewhere is of other rows",
        )),
    }
}

/// The edge of a checkpoint, confirmed by the checkpoint's signature; an empty edge if `checkpoint`
/// is `None`. Fails if the checkpoint has more than `rows` rows. `another` is the error for an edge
/// that is not the signed one.
fn signed_edge(
    checkpoint: Option<StoredCheckpoint>,
    verifier: &Verifier,
    rows: u64,
    another: &'static str,
) -> Result<Edge, Error> {
    let Some((size, note, edge)) = checkpoint else {
        return Ok(Edge::new());
    };
    let signed = verifier.open(&note).map_err(Error::key)?;
    shorter(rows, signed.size)?;
    Edge::from_bytes(size, &edge)
        .filter(|edge| edge.root() == signed.root && size == signed.size)
        .ok_or(Error::Differs(another))
}

fn shorter(found: u64, expected: u64) -> Result<(), Error> {
    match found < expected {
        true => Err(Error::Shorter { found, expected }),
        false => Ok(()),
    }
}

/// Appends the leaves of the rows up to `size` to `edge`. A leaf must match its record, unless the
/// record was pruned. If no checkpoint covers the rows (`is_unsigned`), no record may be pruned,
/// and none may state that rows were pruned: pruning writes such a record together with a
/// checkpoint that covers it, and only then deletes other records.
fn hash_rows(sql: &Connection, edge: &mut Edge, size: u64, is_unsigned: bool) -> Result<(), Error> {
    let mut rows = sql.prepare_cached(
        "SELECT seq, leaf, record FROM entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
    )?;
    let mut rows = rows.query([integer(edge.size()), integer(size)])?;
    while let Some(row) = rows.next()? {
        let leaf: Hash = Hex(row.get(1)?);
        let record = row
            .get_ref(2)?
            .as_blob_or_null()
            .map_err(|_| Error::corrupt("a record"))?;
        let same = record.is_none_or(|record| leaf_hash(record) == leaf);
        if !same || unsigned(row.get(0)?)? != edge.size() {
            return Err(Error::Differs(
                "a row is missing, or is not the one that was written",
            ));
        }
        if is_unsigned && record.is_none_or(|record| prunes(record) > 0) {
            return Err(Error::Differs(
                "a row was emptied that nothing signed says was pruned",
            ));
        }
        edge.push(leaf);
    }
    match edge.size() == size {
        true => Ok(()),
        false => Err(Error::Differs("rows are missing")),
    }
}

/// The newest checkpoint of this ledger in the last [`TAIL_BYTES`] of a file of checkpoints; `None`
/// if the file is missing, or these bytes contain no such checkpoint.
fn newest_outside(path: &Path, verifier: &Verifier) -> Result<Option<Checkpoint>, Error> {
    let fail = |error| Error::io("the file of checkpoints", error);
    let mut file = match toolward_support::files::open(path, Protection::Own, Links::Refuse) {
        Err(error) if error.is_missing() => return Ok(None),
        opened => opened?,
    };
    let length = file.metadata().map_err(fail)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))
        .map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.split('\n').collect();
    let notes = lines
        .windows(NOTE_LINES)
        .filter(|lines| lines.first() == Some(&verifier.origin()));
    let checkpoints =
        notes.filter_map(|lines| verifier.open(&format!("{}\n", lines.join("\n"))).ok());
    Ok(checkpoints.max_by_key(|checkpoint| checkpoint.size))
}

/// Appends a note to a file of checkpoints, followed by an empty line.
fn append_outside(path: &Path, note: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(format!("{note}\n").as_bytes())?;
    file.sync_data()
}

/// Logs a whole checkpoint, so that a journal which another user owns has a copy. Also appends the
/// checkpoint to the operator's file.
pub(crate) fn publish(checkpoints: Option<&Path>, note: &str) {
    let rows = note.lines().nth(1).unwrap_or_default();
    tracing::info!(
        checkpoint = note,
        "the ledger signed its {rows} rows, so that a later change is found"
    );
    if let Some(path) = checkpoints
        && let Err(error) = append_outside(path, note)
    {
        tracing::error!(%error, "a checkpoint could not be appended to the operator's file");
    }
}

/// The row before which, according to a record, all records were pruned; 0 if the record is not
/// about pruning.
pub(crate) fn prunes(record: &[u8]) -> u64 {
    // Nearly all records are of another kind. A search in their text shows this without parsing
    // them.
    const KIND: &[u8] = br#""kind":"pruned""#;
    if record.len() > 256 || !record.windows(KIND.len()).any(|part| part == KIND) {
        return 0;
    }
    match Record::parse(record).map(|record| record.event) {
        Ok(Event::Pruned(body)) => body.to.get(),
        _ => 0,
    }
}
