//! Counts the stored bytes of payloads, and picks the payloads to delete if they are too many.

use rusqlite::Transaction;

use crate::append::{integer, unsigned};
use crate::error::Error;
use crate::record::Number;

/// An index of the database, to sum up each principal's bytes and to find its oldest payloads.
/// Opening a file without this index creates it.
pub(super) const BY_PERSON: &str =
    "CREATE INDEX IF NOT EXISTS payload_person ON payload (person, until, length(bytes))";
/// If payloads exceed the limit, more bytes than necessary are deleted, since counting each
/// principal's bytes takes time and should happen rarely. The additional bytes are a 64th of the
/// limit, rounded down to a multiple of this constant.
const SLACK_BYTES: u64 = 1024 * 1024;

/// Adds to the count of stored bytes, and returns the new count.
pub(super) fn add(tx: &Transaction<'_>, bytes: i64) -> Result<u64, Error> {
    let total = tx
        .prepare_cached("UPDATE stored SET bytes = max(0, bytes + ?1) RETURNING bytes")?
        .query_row([bytes], |row| row.get(0))?;
    unsigned(total)
}

/// Deletes expired payloads, at most 10,000. `total` is the count of stored bytes. If more than
/// `limit` bytes are left, deletes the oldest payloads of the principals with the most bytes. So
/// one principal's calls do not displace the payloads of a principal with fewer bytes.
pub(super) fn shrink(
    tx: &Transaction<'_>,
    total: u64,
    limit: u64,
    now: Number,
) -> Result<(), Error> {
    let expired = rows(
        tx,
        "SELECT rowid, length(bytes) FROM payload WHERE until <= ?1 ORDER BY until LIMIT 10000",
        [integer(now.get())],
        u64::MAX,
    )?;
    let left = remove(tx, &expired)?.unwrap_or(total);
    if left <= limit {
        return Ok(());
    }
    let mut statement =
        tx.prepare_cached("SELECT person, sum(length(bytes)) FROM payload GROUP BY person")?;
    let found = statement.query_and_then([], |row| Ok((row.get(0)?, unsigned(row.get(1)?)?)))?;
    let held: Vec<(Option<[u8; 16]>, u64)> = found.collect::<Result<_, Error>>()?;
    let share = share(
        held.iter().map(|(_, bytes)| *bytes).collect(),
        limit.saturating_sub(limit / 64 / SLACK_BYTES * SLACK_BYTES),
    );
    for (person, bytes) in held {
        let oldest = rows(
            tx,
            "SELECT rowid, length(bytes) FROM payload WHERE person IS ?1 ORDER BY until",
            [person],
            bytes.saturating_sub(share),
        )?;
        remove(tx, &oldest)?;
    }
    Ok(())
}

/// The most bytes that each principal may keep, so that all together keep at most `limit`;
/// `u64::MAX` if they already do.
fn share(mut held: Vec<u64>, limit: u64) -> u64 {
    held.sort_unstable();
    let mut left = limit;
    let mut others = held.len() as u64;
    for bytes in held {
        let share = left / others.max(1);
        if bytes > share {
            return share;
        }
        left = left.saturating_sub(bytes);
        others = others.saturating_sub(1);
    }
    u64::MAX
}

/// The ids and lengths of the first rows that a statement finds: as many rows as are needed for
/// `bytes` bytes.
fn rows<P: rusqlite::Params>(
    tx: &Transaction<'_>,
    statement: &str,
    parameters: P,
    bytes: u64,
) -> Result<Vec<(i64, i64)>, Error> {
    let mut found = tx.prepare_cached(statement)?;
    let mut found = found.query(parameters)?;
    let mut rows = Vec::new();
    let mut left = bytes;
    while left > 0
        && let Some(row) = found.next()?
    {
        let (id, length): (i64, i64) = (row.get(0)?, row.get(1)?);
        left = left.saturating_sub(unsigned(length)?.max(1));
        rows.push((id, length));
    }
    Ok(rows)
}

/// Deletes these rows. Returns the total of the remaining bytes, if any row was deleted.
fn remove(tx: &Transaction<'_>, rows: &[(i64, i64)]) -> Result<Option<u64>, Error> {
    let mut statement = tx.prepare_cached("DELETE FROM payload WHERE rowid = ?1")?;
    let mut bytes = 0_i64;
    for (id, length) in rows {
        statement.execute([id])?;
        bytes = bytes.saturating_add(*length);
    }
    match rows.is_empty() {
        true => Ok(None),
        false => add(tx, bytes.saturating_neg()).map(Some),
    }
}

/// Deletes all payloads for which `condition` holds. Returns their number.
pub(super) fn delete(
    tx: &Transaction<'_>,
    condition: &'static str,
    value: &dyn rusqlite::ToSql,
) -> Result<u64, Error> {
    let of = format!("FROM payload WHERE {condition}");
    let (count, bytes): (i64, i64) = tx
        .prepare_cached(&format!(
            "SELECT count(*), coalesce(sum(length(bytes)), 0) {of}"
        ))?
        .query_row([value], |row| Ok((row.get(0)?, row.get(1)?)))?;
    tx.prepare_cached(&format!("DELETE {of}"))?
        .execute([value])?;
    add(tx, -bytes)?;
    unsigned(count)
}
