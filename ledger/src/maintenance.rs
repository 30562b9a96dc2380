//! An operator's operations on a ledger: making a checkpoint, pruning (deleting old records) and
//! erasing (deleting payloads). A row records each pruning and each erasing.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _, Transaction};
use toolward_signing::key::SigningKey;

use crate::append::{self, Appending, integer, newest_size, unsigned};
use crate::checkpoint::Verifier;
use crate::directory::{self, GROUP, LedgerDirectory, RECORDS};
use crate::error::Error;
use crate::payload::{Erase, Keep, PayloadKind, PayloadLimits, Payloads, random};
use crate::record::{Erased, Event, Hash, Hex, Number, Pruned, Record, Session};
use crate::recorder::content;

/// The number of groups of rows that are pruned in one transaction.
const GROUPS_AT_ONCE: u64 = 8;
/// The longest pause after a deletion, in which other processes can write. Up to this limit, a
/// pause is as long as the deletion took.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// A ledger with its key, for an operator's changes. Writers may append in the meantime.
pub struct Maintenance {
    records: Connection,
    payloads: Payloads,
    key: SigningKey,
    session: Session,
    index: PathBuf,
    checkpoints: Option<PathBuf>,
}

toolward_support::opaque!(Maintenance);

impl Maintenance {
    /// Opens an existing ledger. `checkpoints` is the file to which each checkpoint is appended.
    ///
    /// # Errors
    /// The errors of [`Writer::open`](crate::Writer::open).
    pub fn open(directory: &Path, checkpoints: Option<PathBuf>) -> Result<Self, Error> {
        let place = LedgerDirectory::open(directory)?;
        let mut records = directory::open_to_write(&place.records(), &RECORDS)?;
        let key = place.signing_key(false)?;
        let verifier = Verifier::new(key.public());
        append::check_head(&mut records, &verifier, checkpoints.as_deref())?;
        toolward_support::sqlite::wait_for_disk(&records, true)?;
        let session = Hex(random()?);
        let limits = PayloadLimits::default();
        let (payloads, lost) = Payloads::open_whole(&place.payloads(), Keep::None, limits)?;
        if lost {
            let mut rows = Appending::begin(&mut records)?;
            rows.add_lost_payloads(session)?;
            rows.commit()?;
        }
        Ok(Self {
            payloads,
            records,
            key,
            session,
            index: place.index(),
            checkpoints,
        })
    }

    /// Signs the current tree, and returns the signed checkpoint. Returns the newest checkpoint if
    /// no rows are new.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn checkpoint(&mut self) -> Result<String, Error> {
        let mut rows = Appending::begin(&mut self.records)?;
        if rows.size() == rows.checkpointed()?
            && let Some((_, note, _)) = append::newest(&rows.tx, u64::MAX)?
        {
            return Ok(note);
        }
        let note = rows.checkpoint(&self.key)?;
        rows.commit()?;
        append::publish(self.checkpoints.as_deref(), &note);
        Ok(note)
    }

    /// Deletes the records and the payloads of the rows before `before`, but only of whole groups
    /// of 256 rows below the newest checkpoint. The rows' leaves stay, so that checkpoints and
    /// proofs still hold. Returns the row before which all records are now pruned.
    ///
    /// First, a row about the pruning is written, together with a checkpoint that covers it. So if
    /// a record is missing and no covered row states its pruning, this function did not delete the
    /// record. Then the groups are deleted, a few at a time, so that writers wait only for
    /// milliseconds. If pruning is interrupted, the next pruning finishes it.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn prune(&mut self, before: u64) -> Result<u64, Error> {
        let to = before.min(newest_size(&self.records)?) / GROUP * GROUP;
        if let Some(first) = first_full(&self.records, to)? {
            let mut rows = Appending::begin(&mut self.records)?;
            let said = Pruned {
                to: Number::from(to),
            };
            rows.add(self.session, Event::Pruned(said))?;
            let note = rows.checkpoint(&self.key)?;
            rows.commit()?;
            append::publish(self.checkpoints.as_deref(), &note);
            let mut group = first / GROUP;
            while group < to / GROUP {
                let next = group.saturating_add(GROUPS_AT_ONCE).min(to / GROUP);
                let started = Instant::now();
                self.empty(group..next)?;
                group = next;
                // Lets other processes write.
                std::thread::sleep(started.elapsed().min(MAX_PAUSE));
            }
            self.payloads.truncate_log()?;
        }
        // The index contains data of the deleted records. The next list makes it again, from the
        // remaining records.
        crate::reader::remove_index(&self.index)?;
        Ok(to)
    }

    /// Deletes the payloads of these groups, then their records. In this order, an interruption
    /// can leave records without payloads, which readers expect, but no payloads without records.
    fn empty(&mut self, groups: Range<u64>) -> Result<(), Error> {
        let rows = groups.start * GROUP..groups.end * GROUP;
        self.payloads.delete(&commitments(&self.records, rows)?)?;
        let tx = append::write(&mut self.records)?;
        for group in groups {
            empty(&tx, group)?;
        }
        Ok(tx.commit()?)
    }

    /// Deletes the chosen payloads; for a principal, also its name. Returns the number of deleted
    /// payloads.
    ///
    /// # Errors
    /// [`Error::Busy`] also if the write-ahead log still contains deleted data, because other
    /// processes read the log: try again.
    pub fn erase(&mut self, what: &Erase) -> Result<u64, Error> {
        let (payloads, person) = self.payloads.erase(what)?;
        let (before, invocation) = match what {
            Erase::Before(at) => (Some(*at), None),
            Erase::Invocation(id) => (None, Some(*id)),
            Erase::Principal(_) => (None, None),
        };
        let erased = Erased {
            before,
            invocation,
            payloads: Number::from(payloads),
            person,
        };
        let mut rows = Appending::begin(&mut self.records)?;
        rows.add(self.session, Event::Erased(erased))?;
        rows.commit()?;
        // The log is emptied only after the row is written. Otherwise `Busy` would leave no row,
        // and the row of a retry would state that nothing was erased.
        self.payloads.truncate_log()?;
        Ok(payloads)
    }
}

/// Deletes the records of a group. The rows are deleted and inserted again without records, since
/// SQLite merges pages when rows are deleted, but not when they get shorter.
fn empty(tx: &Transaction<'_>, group: u64) -> Result<(), Error> {
    let first = group * GROUP;
    let range = [integer(first), integer(first + GROUP)];
    let mut full = tx.prepare_cached(
        "SELECT seq, leaf FROM entry WHERE seq >= ?1 AND seq < ?2 AND record IS NOT NULL",
    )?;
    let leaves = full.query_map(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let leaves: Vec<(i64, Vec<u8>)> = leaves.collect::<Result<_, _>>()?;
    tx.prepare_cached("DELETE FROM entry WHERE seq >= ?1 AND seq < ?2 AND record IS NOT NULL")?
        .execute(range)?;
    let mut again = tx.prepare_cached("INSERT INTO entry (seq, leaf) VALUES (?1, ?2)")?;
    for (seq, leaf) in &leaves {
        again.execute((seq, leaf))?;
    }
    Ok(())
}

/// The first row before `to` that has a record.
fn first_full(sql: &Connection, to: u64) -> Result<Option<u64>, Error> {
    let first: Option<i64> = sql
        .prepare(
            "SELECT seq FROM entry WHERE seq < ?1 AND record IS NOT NULL ORDER BY seq LIMIT 1",
        )?
        .query_row([integer(to)], |row| row.get(0))
        .optional()?;
    first.map(unsigned).transpose()
}

/// The commitments to the payloads of these rows.
fn commitments(sql: &Connection, rows: Range<u64>) -> Result<Vec<Hash>, Error> {
    let mut statement = sql.prepare_cached(
        "SELECT record FROM entry WHERE seq >= ?1 AND seq < ?2 AND record IS NOT NULL",
    )?;
    let mut found = statement.query([integer(rows.start), integer(rows.end)])?;
    let mut commitments = Vec::new();
    while let Some(row) = found.next()? {
        // An unreadable record does not name its payloads.
        let Ok(record) = Record::parse(row.get_ref(0)?.as_blob().unwrap_or_default()) else {
            continue;
        };
        let call = record.event.call();
        let outcome = record.event.outcome();
        let kinds = PayloadKind::ALL.iter();
        let contents = kinds.filter_map(|kind| content(call, outcome, *kind));
        commitments.extend(contents.filter_map(|of| of.commitment));
    }
    Ok(commitments)
}
