//! The ledger's directory: its files with their tables, and its key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use secrecy::ExposeSecret as _;
use toolward_signing::key::{MAX_PEM_BYTES, SigningKey};
use toolward_support::files::{Folder, Links, Problem, Protection};
use toolward_support::sqlite::{FileSchema, OpenMode};

use crate::checkpoint::Verifier;
use crate::error::Error;

/// A ledger's directory.
#[derive(Clone, Debug)]
pub(crate) struct LedgerDirectory(PathBuf);

impl LedgerDirectory {
    /// Creates the directory if it is missing.
    pub(crate) fn make(directory: &Path) -> Result<Self, Error> {
        Folder::make(directory, Protection::Private)?;
        Self::open(directory)
    }

    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        Folder::open(directory, Protection::Private)?;
        let resolved = directory.canonicalize();
        Ok(Self(
            resolved.map_err(|error| Error::io("the ledger", error))?,
        ))
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.0.join("records.sqlite")
    }

    pub(crate) fn payloads(&self) -> PathBuf {
        self.0.join("payloads.sqlite")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index.sqlite")
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    fn vkey(&self) -> PathBuf {
        self.0.join("ledger.vkey")
    }

    /// The key that signs checkpoints. A missing key is created only for a ledger without rows
    /// (`is_new`): for any other ledger, a new key would hide that the old key is gone.
    pub(crate) fn signing_key(&self, is_new: bool) -> Result<SigningKey, Error> {
        let path = self.key();
        let key = match toolward_support::files::open(&path, Protection::Private, Links::Refuse) {
            Ok(file) => {
                let bytes = toolward_support::files::read(file, &path, MAX_PEM_BYTES as u64)?;
                SigningKey::import(&bytes, None).map_err(Error::key)?
            }
            Err(error) if error.is_missing() && is_new => {
                let key = SigningKey::generate().map_err(Error::key)?;
                let pem = key.to_pem().map_err(Error::key)?;
                let pem = pem.expose_secret().as_bytes();
                match toolward_support::files::create(&path, pem, 0o600) {
                    // Another process has just created the key.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        return self.signing_key(false);
                    }
                    created => created.map_err(|error| Error::io("the ledger's key", error))?,
                }
                key
            }
            Err(error) if error.is_missing() => return Err(Error::key("key.pem is missing")),
            Err(error) => return Err(error.into()),
        };
        self.publish(&key)?;
        Ok(key)
    }

    /// Writes the public key next to the signing key. An existing file must have the same key.
    fn publish(&self, key: &SigningKey) -> Result<(), Error> {
        let verifier = Verifier::new(key.public());
        let line = format!("{}\n", verifier.to_vkey());
        match toolward_support::files::create(&self.vkey(), line.as_bytes(), 0o600) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match self.verifier()? {
                found if found == verifier => Ok(()),
                _ => Err(Error::key("ledger.vkey is another key's")),
            },
            Err(error) => Err(Error::io("the ledger's public key", error)),
        }
    }

    /// The verifier of the ledger's checkpoints.
    pub(crate) fn verifier(&self) -> Result<Verifier, Error> {
        let path = self.vkey();
        let file = toolward_support::files::open(&path, Protection::Own, Links::Refuse)?;
        let bytes = toolward_support::files::read(file, &path, 1024)?;
        std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| Verifier::from_vkey(text.trim_end()))
            .ok_or_else(|| Error::key("ledger.vkey is not a verifier key"))
    }
}

/// The number of rows that are pruned together. It is the size of an entry bundle of C2SP
/// tlog-tiles.
pub(crate) const GROUP: u64 = 256;

/// How long a process waits for other processes that use the same file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The size from which a write-ahead log is emptied when its file is opened.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// The file of rows, without texts of callers and tools.
pub(crate) const RECORDS: FileSchema = FileSchema {
    // `TLLR`.
    application_id: 0x544c_4c52,
    version: 1,
    tables: "
-- `record` is NULL once it was pruned.
CREATE TABLE entry (seq INTEGER PRIMARY KEY, leaf BLOB NOT NULL, record BLOB) STRICT;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, edge BLOB NOT NULL) STRICT;
INSERT INTO head VALUES (1, 0, x'');
-- `edge` is the tree's at that size: its root is the one that the note signs.
CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note TEXT NOT NULL, edge BLOB NOT NULL) STRICT;
-- Calls that were started and have not ended: what their sessions leave is abandoned by the next one.
CREATE TABLE unfinished (invocation BLOB PRIMARY KEY, session BLOB NOT NULL) STRICT, WITHOUT ROWID;
-- Ids that callers gave. Principal and input are keyed hashes.
CREATE TABLE given (principal BLOB NOT NULL, tool TEXT NOT NULL, id BLOB NOT NULL, input BLOB NOT NULL,
                    seq INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (principal, tool, id)) STRICT, WITHOUT ROWID;
",
    owner: "a ledger's records",
};

/// The file of texts of callers and tools. A ledger stays valid without it.
pub(crate) const PAYLOADS: FileSchema = FileSchema {
    // `TLLP`.
    application_id: 0x544c_4c50,
    version: 1,
    tables: "
CREATE TABLE payload (commitment BLOB PRIMARY KEY, salt BLOB NOT NULL, kind TEXT NOT NULL, person BLOB, invocation BLOB,
                      at INTEGER NOT NULL, until INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE INDEX payload_until ON payload (until);
CREATE TABLE stored (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL) STRICT;
INSERT INTO stored VALUES (1, 0);
CREATE TABLE person (id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT, WITHOUT ROWID;
",
    owner: "a ledger's payloads",
};

/// The paths of a database and of the files of its log.
pub(crate) fn with_log(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

/// Opens a file for writing, and creates it if it is missing.
pub(crate) fn open_to_write(path: &Path, schema: &FileSchema) -> Result<Connection, Error> {
    let path = toolward_support::files::private_file(path)?;
    let mut sql = toolward_support::sqlite::open(&path, OpenMode::Write)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    sql.pragma_update(None, "secure_delete", true)?;
    let now = Instant::now();
    let deadline = now.checked_add(BUSY_TIMEOUT).unwrap_or(now);
    if schema.prepare(&mut sql, deadline)? {
        toolward_support::sqlite::shorten_log(&sql, &path, MAX_LOG_BYTES, BUSY_TIMEOUT)?;
    }
    Ok(sql)
}

/// Opens an existing file for reading, even if its folder can't be written or the disk is full.
/// Also returns whether a write-ahead log exists that could not be read; it may contain the newest
/// rows.
pub(crate) fn open_to_read(path: &Path, schema: &FileSchema) -> Result<(Connection, bool), Error> {
    let path = existing(path)?;
    let opened = toolward_support::sqlite::open_unwritable(&path, schema, BUSY_TIMEOUT)?;
    Ok((opened.connection, opened.log_unread))
}

/// The path of an existing private file, absolute and without links. The file is not opened, since
/// closing it would drop the locks that other connections of this process hold on it.
fn existing(path: &Path) -> Result<PathBuf, Error> {
    let fail = |error| Error::io("the ledger", error);
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().unwrap_or(path).canonicalize().map_err(fail)?;
    Folder::open(&folder, Protection::Private)?;
    let path = folder.join(name);
    let metadata = path.symlink_metadata().map_err(fail)?;
    let checked = match metadata.is_file() {
        true => Protection::Private.check(&metadata),
        false => Err(Problem::NotAFile),
    };
    checked.map_err(|problem| toolward_support::files::Error {
        path: path.clone(),
        problem,
    })?;
    Ok(path)
}
