//! What a ledger is held against when it is opened: its newest checkpoint, and the newest that the operator's file
//! of checkpoints has. What lies below the newest checkpoint is for [`verify`](crate::Reader::verify).

use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::Connection;
use toolward_support::files::{Links, Protection};

use crate::append::{head, integer, newest, unsigned};
use crate::checkpoint::{Checkpoint, Verifier};
use crate::error::Error;
use crate::reader::prunes;
use crate::record::{Hash, Hex};
use crate::tree::{Edge, leaf_hash};

/// How much of the end of a file of checkpoints is read: some hundred of them.
const TAIL_BYTES: u64 = 64 * 1024;
/// Lines of a checkpoint as the ledger writes it: three of the body, an empty one, a signature.
const NOTE_LINES: usize = 5;

/// Refuses a ledger that is shorter than a checkpoint, or differs from it.
///
/// The rows behind the newest checkpoint are hashed, and what they give is compared with the head. What is read is
/// bounded by what lies between checkpoints.
pub(crate) fn check(
    sql: &mut Connection,
    verifier: &Verifier,
    outside: Option<Checkpoint>,
) -> Result<(), Error> {
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
    let mut edge = Edge::new();
    if let Some((size, note, bytes)) = newest(&tx)? {
        let signed = verifier.open(&note).map_err(Error::key)?;
        shorter(head.size(), signed.size)?;
        edge = Edge::from_bytes(size, &bytes)
            .filter(|edge| edge.root() == signed.root && size == signed.size)
            .ok_or(Error::Differs("the newest checkpoint signs another tree"))?;
    }
    hash_rows(&tx, &mut edge, head.size(), true)?;
    match edge == head {
        true => Ok(()),
        false => Err(Error::Differs("the head is not the tree of the rows")),
    }
}

/// Holds the ledger against a checkpoint that was kept elsewhere.
fn compare(
    sql: &Connection,
    verifier: &Verifier,
    outside: Checkpoint,
    size: u64,
) -> Result<(), Error> {
    shorter(size, outside.size)?;
    // From the last checkpoint before it, whose edge its own signature confirms.
    let mut edge = Edge::new();
    let mut below = sql.prepare(
        "SELECT size, note, edge FROM checkpoint WHERE size <= ?1 ORDER BY size DESC LIMIT 1",
    )?;
    let mut found = below.query([integer(outside.size)])?;
    if let Some(row) = found.next()? {
        let (size, note, bytes): (i64, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let signed = verifier.open(&note).map_err(Error::key)?;
        edge = Edge::from_bytes(unsigned(size)?, &bytes)
            .filter(|edge| edge.root() == signed.root && edge.size() == signed.size)
            .ok_or(Error::Differs("a checkpoint signs another tree"))?;
    }
    hash_rows(sql, &mut edge, outside.size, false)?;
    match edge.root() == outside.root {
        true => Ok(()),
        false => Err(Error::Differs(
            "the checkpoint that was kept elsewhere is of other rows",
        )),
    }
}

fn shorter(found: u64, expected: u64) -> Result<(), Error> {
    match found < expected {
        true => Err(Error::Shorter { found, expected }),
        false => Ok(()),
    }
}

/// Appends the leaves of the rows up to `size`, each of which has to be that of its record. Where no checkpoint covers
/// them, they say nothing of pruning: that is signed with the row that says it.
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

/// The newest checkpoint of this ledger in a file of checkpoints; `None` where there is no file or none in it.
pub(crate) fn newest_outside(
    path: &Path,
    verifier: &Verifier,
) -> Result<Option<Checkpoint>, Error> {
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

/// Appends a note to a file of checkpoints, with an empty line behind it.
pub(crate) fn append_outside(path: &Path, note: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(format!("{note}\n").as_bytes())?;
    file.sync_data()
}
