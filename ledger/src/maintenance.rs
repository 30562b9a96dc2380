//! What an operator does to a ledger: checkpoints on demand, pruning, erasing. Each leaves a row that says so.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};
use toolward_signing::key::SigningKey;

use crate::append::{Appending, integer};
use crate::checkpoint::Verifier;
use crate::entry::now;
use crate::error::Error;
use crate::opening;
use crate::payload::{Erase, Keep, PayloadLimits, Payloads, random};
use crate::place::Place;
use crate::record::{Erased, Event, Hash, Hex, Number, Pruned, Record, Session};
use crate::schema::{self, RECORDS};

/// Rows that are pruned together: those of one bundle of entries of tlog-tiles.
pub(crate) const GROUP: u64 = 256;

/// A ledger with its key, for an operator's changes. Writers may append meanwhile.
pub struct Maintenance {
    records: Connection,
    payloads: Payloads,
    key: SigningKey,
    session: Session,
    checkpoints: Option<PathBuf>,
}

impl std::fmt::Debug for Maintenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Maintenance(..)")
    }
}

impl Maintenance {
    /// Opens a ledger that is there. `checkpoints` is the file that each checkpoint is appended to.
    ///
    /// # Errors
    /// Those of [`Writer::open`](crate::Writer::open).
    pub fn open(directory: &Path, checkpoints: Option<PathBuf>) -> Result<Self, Error> {
        let place = Place::open(directory)?;
        let mut records = schema::open(&place.records(), &RECORDS)?;
        let key = place.signing_key(false)?;
        let verifier = Verifier::new(key.public());
        let outside = match &checkpoints {
            Some(path) => opening::newest_outside(path, &verifier)?,
            None => None,
        };
        opening::check(&mut records, &verifier, outside)?;
        toolward_sqlite::wait_for_disk(&records, true)?;
        Ok(Self {
            payloads: Payloads::open(&place.payloads(), Keep::None, PayloadLimits::default())?,
            records,
            key,
            session: Hex(random()?),
            checkpoints,
        })
    }

    /// Signs the tree as it is now, and returns the note. Without new rows it is the one that there is.
    ///
    /// # Errors
    /// Those of the file.
    pub fn checkpoint(&mut self) -> Result<String, Error> {
        let mut rows = Appending::begin(&mut self.records)?;
        if rows.size() == rows.checkpointed()?
            && let Some((_, note, _)) = crate::append::newest(&rows.tx)?
        {
            return Ok(note);
        }
        let note = rows.checkpoint(&self.key)?;
        rows.commit()?;
        crate::writer::publish(self.checkpoints.as_deref(), &note);
        Ok(note)
    }

    /// Deletes the records of the rows before `before` with their payloads: whole groups of 256 below the newest
    /// checkpoint. Their leaves stay, so that checkpoints and proofs hold. Returns up to where it went.
    ///
    /// # Errors
    /// Those of the files.
    pub fn prune(&mut self, before: u64) -> Result<u64, Error> {
        let mut rows = Appending::begin(&mut self.records)?;
        let to = before.min(rows.checkpointed()?) / GROUP * GROUP;
        let commitments = commitments(&rows, to)?;
        let mut emptied = false;
        for group in 0..to / GROUP {
            emptied |= empty(&rows.tx, group)?;
        }
        if emptied {
            let to = Number::from(to);
            rows.push(&record(self.session, Event::Pruned(Pruned { to })))?;
        }
        rows.commit()?;
        self.payloads.delete(&commitments)?;
        self.payloads.truncate_log()?;
        Ok(to)
    }

    /// Deletes payloads, and a principal's name. Returns how many payloads that were.
    ///
    /// # Errors
    /// [`Error::Busy`] also if what was deleted is still in the log, because others read it: try again.
    pub fn erase(&mut self, what: &Erase) -> Result<u64, Error> {
        let (payloads, person) = self.payloads.erase(what)?;
        let erased = Erased {
            before: match what {
                Erase::Before(at) => Some(*at),
                _ => None,
            },
            invocation: match what {
                Erase::Invocation(id) => Some(*id),
                _ => None,
            },
            payloads: Number::from(payloads),
            person,
        };
        let mut rows = Appending::begin(&mut self.records)?;
        rows.push(&record(self.session, Event::Erased(erased)))?;
        rows.commit()?;
        // Last: a try after `Busy` would find nothing to erase, and would say so in its row.
        self.payloads.truncate_log()?;
        Ok(payloads)
    }
}

/// Deletes the records of a group; returns whether there were any. The rows are made anew, since SQLite merges
/// pages when rows are deleted, and not when they get shorter.
fn empty(tx: &Transaction<'_>, group: u64) -> Result<bool, Error> {
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
    Ok(!leaves.is_empty())
}

/// The payloads of the rows before `to`.
fn commitments(rows: &Appending<'_>, to: u64) -> Result<Vec<Hash>, Error> {
    let mut statement = rows
        .tx
        .prepare("SELECT record FROM entry WHERE seq < ?1 AND record IS NOT NULL")?;
    let mut found = statement.query([integer(to)])?;
    let mut commitments = Vec::new();
    while let Some(row) = found.next()? {
        // What can't be read has no payloads that could be named.
        let Ok(record) = Record::parse(row.get_ref(0)?.as_blob().unwrap_or_default()) else {
            continue;
        };
        let call = record.event.call();
        let outcome = record.event.outcome();
        let contents = [
            call.and_then(|call| call.input.as_ref()),
            call.and_then(|call| call.context.as_ref()),
            outcome.and_then(|outcome| outcome.output.as_ref()),
            outcome.and_then(|outcome| outcome.detail.as_ref()),
        ];
        commitments.extend(
            contents
                .into_iter()
                .flatten()
                .filter_map(|content| content.commitment),
        );
    }
    Ok(commitments)
}

fn record(session: Session, event: Event) -> Record {
    Record {
        at: now(),
        session,
        event,
    }
}
