//! Denials on disk. A client may restart a server on standard input and output at any time. Without
//! this file, a restart would end the backoff, the time in which a person is not asked about a
//! denied tool again. The file holds keyed hashes and times; it does not reveal who was asked about
//! what.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags};
use toolward_support::files::{Lock, Protection, temporary_name, write_new_at};
use toolward_support::report::codes;

use crate::approvals::ApprovalKey;

/// The most rows that are kept. Beyond this, the rows whose pause ends first are dropped.
pub(super) const MAX_ROWS: usize = 1024;
/// The most bytes of the file that are read, more than [`MAX_ROWS`] need.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// How long to wait for the lock. Another process holds it only for one write.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

const FILE: &str = "denials";
const KEY_FILE: &str = "key";

/// The directory in which denials are kept.
pub struct Denials {
    directory: File,
    path: PathBuf,
    key: zeroize::Zeroizing<[u8; 32]>,
}

/// A denied tool, whose pause runs, or is over but still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DenialRow {
    pub(super) hash: ApprovalKey,
    /// When the pause started, in seconds since 1970.
    pub(super) since: u64,
    /// The number of denials in a row.
    pub(super) number: u32,
}

/// Why a file can't be used.
enum Unusable {
    /// The file is not in the form that this process writes, and is replaced.
    Damaged(String),
    /// The system lacks resources, or its disk fails. The file stays unchanged.
    Unread(std::io::Error),
}

codes! {
    /// Why denials can't be kept.
    #[derive(Debug)]
    pub enum DenialsError: Error {
        /// `path` is the directory or the key.
        Unusable { path: PathBuf, source: std::io::Error } = "denials-unusable" Warning,
            "denials can't be kept in the state directory; they are forgotten when the server ends",
            ("{}: {source}", path.display());
        /// `path` is the directory or the key.
        Unsafe { path: PathBuf, problem: String } = "denials-unsafe" Warning,
            "other users could read or change denials in the state directory; they are forgotten when the server ends",
            ("{} {problem}", path.display());
    }
}

impl Denials {
    /// Opens the directory, and creates it if it does not exist. Call this before the process
    /// confines itself, and let the process keep the right to read and write in the directory.
    ///
    /// A damaged key is replaced, and the denials that were kept under it are forgotten.
    ///
    /// # Errors
    ///
    /// [`DenialsError`] if the directory or the key can't be used, or the directory is not private.
    pub fn open(path: &Path) -> Result<Self, DenialsError> {
        let unusable = |source: std::io::Error| DenialsError::Unusable {
            path: path.to_owned(),
            source,
        };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(unusable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|error| unusable(error.into()))?;
        let directory = File::from(directory);
        let metadata = directory.metadata().map_err(unusable)?;
        Protection::Private
            .check(&metadata)
            .map_err(|problem| DenialsError::Unsafe {
                path: path.to_owned(),
                problem: problem.describe(),
            })?;
        let mut denials = Self {
            directory,
            path: path.to_owned(),
            key: zeroize::Zeroizing::new([0; 32]),
        };
        let _lock = denials.lock();
        denials
            .read_key()
            .map_err(|source| DenialsError::Unusable {
                path: path.join(KEY_FILE),
                source,
            })?;
        Ok(denials)
    }

    /// The keyed hash of a tool and the principal that was asked about it.
    pub(super) fn hash(&self, principal: &str, tool: &ApprovalKey) -> ApprovalKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(principal.len() as u64).to_le_bytes());
        hasher.update(principal.as_bytes());
        hasher.update(tool);
        *hasher.finalize().as_bytes()
    }

    /// The rows. A file that can't be read, or that others could have written, counts as empty.
    /// Then a person is asked again, but nothing more is allowed.
    pub(super) fn rows(&self) -> Vec<DenialRow> {
        self.read_rows().unwrap_or_else(|error| {
            let path = self.path.join(FILE);
            tracing::warn!(path = %path.display(), %error, "what was denied before can't be read now");
            Vec::new()
        })
    }

    /// The rows of a valid file; empty if the file is not valid.
    fn read_rows(&self) -> std::io::Result<Vec<DenialRow>> {
        let problem = match self.contents(FILE) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(text)) => match parse(&text) {
                Some(rows) => return Ok(rows),
                None => "is damaged".to_owned(),
            },
            Err(Unusable::Damaged(problem)) => problem,
            Err(Unusable::Unread(error)) => return Err(error),
        };
        let path = self.path.join(FILE);
        tracing::warn!(path = %path.display(), problem, "what was denied before is forgotten");
        Ok(Vec::new())
    }

    /// Changes the rows under the lock. If that fails, the denials are still in this process's
    /// memory.
    pub(super) fn change(&self, change: impl FnOnce(&mut Vec<DenialRow>)) {
        if let Err(error) = self.changed(change) {
            let path = self.path.join(FILE);
            tracing::warn!(path = %path.display(), %error, "a denial is not kept beyond this process");
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<DenialRow>)) -> std::io::Result<()> {
        let _lock = self.lock();
        // The rows of other processes must not be lost, so this fails if they can't be read.
        let mut rows = self.read_rows()?;
        let before = rows.clone();
        change(&mut rows);
        if rows == before {
            return Ok(());
        }
        let mut text = String::new();
        for row in &rows {
            text.push_str(&blake3::Hash::from_bytes(row.hash).to_hex());
            let _ = writeln!(text, " {} {}", row.since, row.number);
        }
        self.replace(FILE, text.as_bytes())
    }

    fn read_key(&mut self) -> std::io::Result<()> {
        match self.contents(KEY_FILE) {
            Ok(None) => {}
            Ok(Some(bytes)) if let Ok(key) = bytes.as_slice().try_into() => {
                *self.key = key;
                return Ok(());
            }
            Err(Unusable::Unread(error)) => return Err(error),
            Ok(Some(_)) | Err(Unusable::Damaged(_)) => {
                let path = self.path.join(KEY_FILE);
                tracing::warn!(path = %path.display(), "the key of denials is damaged, and they are forgotten");
            }
        }
        getrandom::fill(self.key.as_mut_slice())
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        let key = self.key.clone();
        self.replace(KEY_FILE, key.as_slice())
    }

    /// The bytes of a private file; `None` if it does not exist.
    fn contents(&self, name: &str) -> Result<Option<Vec<u8>>, Unusable> {
        use rustix::io::Errno;
        let damaged = |problem: &str| Err(Unusable::Damaged(problem.to_owned()));
        // Opens without blocking, in case the file is a pipe.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            // The file is a link, a socket, or lacks the right mode.
            Err(error @ (Errno::LOOP | Errno::NXIO | Errno::ACCESS)) => {
                return damaged(&error.to_string());
            }
            Err(error) => return Err(Unusable::Unread(error.into())),
        };
        let metadata = file.metadata().map_err(Unusable::Unread)?;
        if !metadata.is_file() {
            return damaged("is not the expected kind of file");
        }
        Protection::Private
            .check(&metadata)
            .map_err(|problem| Unusable::Damaged(problem.describe()))?;
        if metadata.nlink() != 1 {
            return damaged("has a second name");
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(Unusable::Unread)?;
        Ok(Some(bytes))
    }

    /// Replaces a file atomically. The new file keeps no mode, owner or link of the old file.
    fn replace(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let (folder, temporary) = (&self.directory, temporary_name()?);
        write_new_at(folder, temporary.as_ref(), &[bytes], 0o600, |_| Ok(()))?;
        rustix::fs::renameat(folder, &temporary, folder, name).inspect_err(|_| {
            let _ = rustix::fs::unlinkat(folder, &temporary, AtFlags::empty());
        })?;
        Ok(())
    }

    /// Locks out other processes until the result is dropped. After [`LOCK_TIMEOUT`], continues
    /// without the lock: the file is replaced atomically, so at worst a change of another process
    /// is lost.
    fn lock(&self) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(&self.directory, ".", flags, Mode::empty()).ok()?;
        toolward_support::files::lock(&lock, Lock::Exclusive, LOCK_TIMEOUT).ok()?;
        Some(lock)
    }
}

toolward_support::opaque!(Denials);

fn parse(bytes: &[u8]) -> Option<Vec<DenialRow>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let rows = text.lines().map(|line| {
        let mut words = line.split(' ');
        let hash = blake3::Hash::from_hex(words.next()?).ok()?;
        let (since, number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let whole = words.next().is_none() && number > 0;
        whole.then_some(DenialRow {
            hash: *hash.as_bytes(),
            since,
            number,
        })
    });
    let rows: Vec<DenialRow> = rows.collect::<Option<_>>()?;
    let ended = text.is_empty() || text.ends_with('\n');
    (ended && rows.len() <= MAX_ROWS).then_some(rows)
}

/// Now, in seconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
