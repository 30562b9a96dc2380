//! Reads a ledger: lists its rows, verifies them, makes proofs and exports copies. Nothing here
//! needs the signing key.

mod calls;
mod cassette;
mod index;
mod missing;
mod proof;
mod tiles;
mod verify;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _};

pub use calls::{DamagedRow, EndRow, RecordedCall};
pub use cassette::{CassetteExport, Selection};
pub(crate) use index::remove as remove_index;
pub use index::{Filter, ListedRow};
pub use missing::{MissingPayload, PayloadState};
pub use proof::Proofs;
pub use verify::{Finding, VerifiedLedger};

use crate::append::{StoredCheckpoint, checkpoint_of_row, head, integer, unsigned};
use crate::checkpoint::Verifier;
use crate::directory::{self, LedgerDirectory, PAYLOADS, RECORDS};
use crate::error::Error;
use crate::record::{Hash, Hex, Record};

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number, from 0.
    pub seq: u64,
    /// Its leaf in the tree.
    pub leaf: Hash,
    /// Its record, as it was written; `None` if it was pruned.
    pub record: Option<Vec<u8>>,
}

impl Row {
    /// Parses the record.
    ///
    /// # Errors
    /// [`Error::Record`] if it is not a record, [`Error::NoRow`] if it was pruned.
    pub fn read(&self) -> Result<Record, Error> {
        match &self.record {
            Some(record) => Ok(Record::parse(record)?),
            None => Err(Error::NoRow("its record was pruned".into())),
        }
    }
}

/// A payload that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// `input`, `context`, `output` or `detail`.
    pub kind: String,
    /// Its bytes, which match the commitment.
    pub bytes: Vec<u8>,
    /// The salt of the commitment.
    pub salt: Hash,
}

/// A ledger that is open for reading. A writer may append in the meantime.
#[derive(Debug)]
pub struct Reader {
    records: Connection,
    payloads: Option<Connection>,
    verifier: Verifier,
    index: PathBuf,
    log_unread: bool,
}

/// The file of payloads; `None` if it is damaged. A ledger is valid without payloads.
fn readable(opened: Result<(Connection, bool), Error>) -> Result<Option<Connection>, Error> {
    match opened {
        Err(Error::Corrupt(error)) => {
            tracing::warn!(%error, "the ledger's payloads are damaged, and not read");
            Ok(None)
        }
        opened => Ok(Some(opened?.0)),
    }
}

impl Reader {
    /// Opens an existing ledger. `verifier` is the key whose checkpoints count: by default the key
    /// in the directory, which proves nothing against anyone who may write there.
    ///
    /// # Errors
    /// Errors of files and disks; [`Error::Key`].
    pub fn open(directory: &Path, verifier: Option<Verifier>) -> Result<Self, Error> {
        let place = LedgerDirectory::open(directory)?;
        let verifier = verifier.map_or_else(|| place.verifier(), Ok)?;
        let (records, log_unread) = directory::open_to_read(&place.records(), &RECORDS)?;
        let payloads = match place.payloads().exists() {
            true => readable(directory::open_to_read(&place.payloads(), &PAYLOADS))?,
            false => None,
        };
        Ok(Self {
            records,
            payloads,
            verifier,
            index: place.index(),
            log_unread,
        })
    }

    /// The verifier of the checkpoints that count.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Whether the newest rows may be missing: the write-ahead log could not be read, because the
    /// disk is full or the folder can't be written.
    pub fn log_unread(&self) -> bool {
        self.log_unread
    }

    /// The number of rows.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn size(&self) -> Result<u64, Error> {
        Ok(head(&self.records)?.size())
    }

    /// A row.
    ///
    /// # Errors
    /// [`Error::NoRow`]; errors of the file.
    pub fn row(&self, seq: u64) -> Result<Row, Error> {
        let found = self.rows(seq, seq.saturating_add(1))?.pop();
        found.ok_or_else(|| Error::NoRow(seq.to_string().into()))
    }

    /// The existing rows from `from` up to `to`, in order. All of them are read into memory.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn rows(&self, from: u64, to: u64) -> Result<Vec<Row>, Error> {
        let mut statement = self.records.prepare_cached(
            "SELECT seq, leaf, record FROM entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
        )?;
        let rows = statement.query_and_then([integer(from), integer(to)], |row| {
            Ok(Row {
                seq: unsigned(row.get(0)?)?,
                leaf: Hex(row.get(1)?),
                record: row.get(2)?,
            })
        })?;
        rows.collect()
    }

    /// The newest checkpoint, as it was signed.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn newest_checkpoint(&self) -> Result<Option<String>, Error> {
        Ok(crate::append::newest(&self.records, u64::MAX)?.map(|(_, note, _)| note))
    }

    /// A payload by its commitment; `None` if it is not kept, was deleted, or if the file of
    /// payloads is missing or damaged.
    ///
    /// # Errors
    /// [`Error::Differs`] if the payload does not match the commitment.
    pub fn payload(&self, commitment: &Hash) -> Result<Option<Payload>, Error> {
        let Some(payloads) = &self.payloads else {
            return Ok(None);
        };
        let found = payloads
            .prepare_cached("SELECT salt, kind, bytes FROM payload WHERE commitment = ?1")?
            .query_row([commitment.0], |row| {
                Ok(Payload {
                    salt: Hex(row.get(0)?),
                    kind: row.get(1)?,
                    bytes: row.get(2)?,
                })
            })
            .optional()?;
        let holds = |found: &Payload| {
            crate::payload::commitment(&found.salt.0, &found.kind, &found.bytes) == *commitment
        };
        match found.as_ref().is_none_or(holds) {
            true => Ok(found),
            false => Err(Error::Differs("a payload is not the one that was recorded")),
        }
    }

    /// The name behind a person's id; `None` if the id is unknown or its name was erased.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn name(&self, person: &crate::record::Person) -> Result<Option<String>, Error> {
        let Some(payloads) = &self.payloads else {
            return Ok(None);
        };
        let name = payloads
            .prepare_cached("SELECT name FROM person WHERE id = ?1")?
            .query_row([person.0], |row| row.get(0));
        Ok(name.optional()?)
    }

    /// Calls `each` with the leaves from `from` up to `to`, in order. Fails if a leaf is missing.
    fn leaves(&self, from: u64, to: u64, mut each: impl FnMut(Hash)) -> Result<(), Error> {
        let mut rows = self
            .records
            .prepare_cached("SELECT leaf FROM entry WHERE seq >= ?1 AND seq < ?2 ORDER BY seq")?;
        let mut rows = rows.query([integer(from), integer(to)])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            each(Hex(row.get(0)?));
            count += 1;
        }
        match count == to.saturating_sub(from) {
            true => Ok(()),
            false => Err(Error::Differs("rows are missing")),
        }
    }

    /// The checkpoints, oldest first.
    fn checkpoints(&self) -> Result<Vec<StoredCheckpoint>, Error> {
        let mut found = self
            .records
            .prepare_cached("SELECT size, note, edge FROM checkpoint ORDER BY size")?;
        found.query_and_then([], checkpoint_of_row)?.collect()
    }
}
