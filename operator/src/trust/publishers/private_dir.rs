//! Whether what lies in the folder of publishers is the user's own: whoever else
//! writes there says whom the user trusts.

use std::fs::{DirBuilder, File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Kind};
use crate::file;

/// How long one process waits for others.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two attempts.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// A folder that was looked at: it is the user's own.
#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder. Nothing where there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Error::unreadable(path, error)),
        };
        let opened = File::from(opened);
        let metadata = opened
            .metadata()
            .map_err(|error| Error::unreadable(path, error))?;
        own(path, &metadata)?;
        Ok(Some(Self(opened.into())))
    }

    /// Makes a folder, with those above it, that only its user may enter.
    pub(super) fn make(path: &Path) -> Result<Self, Error> {
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| Error::unwritable(path, error))?;
        Self::open(path)?.ok_or_else(|| Error::unwritable(path, "the folder is gone"))
    }

    /// Has what is in it written to disk.
    pub(super) fn sync(&self, path: &Path) -> Result<(), Error> {
        rustix::fs::fsync(&self.0).map_err(|error| Error::unwritable(path, error))
    }

    /// Takes a shared lock on the folder, to read it.
    pub(super) fn shared(&self, path: &Path) -> Result<(), Error> {
        self.lock(path, FlockOperation::NonBlockingLockShared)
    }

    /// Takes an exclusive lock on the folder. Don't wait for anything while holding it.
    pub(super) fn exclusive(&self, path: &Path) -> Result<(), Error> {
        self.lock(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn lock(&self, path: &Path, operation: FlockOperation) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            match rustix::fs::flock(&self.0, operation) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let busy = format!("{}: another process holds the folder", path.display());
                    return Err(Error::new(Kind::Failed, "trust-busy", busy)
                        .hint("find out which process it is, and try again"));
                }
                Err(error) => return Err(Error::unreadable(path, error)),
            }
        }
    }
}

/// Reads a file that only its owner could have written.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    let unreadable = |error| Error::unreadable(path, error);
    let file = file::regular(path).map_err(unreadable)?;
    own(path, &file.metadata().map_err(unreadable)?)?;
    file::read_opened(file, path, limit)
}

/// Refuses what another user owns or may write to. Root may do either anyway.
fn own(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let user = rustix::process::geteuid().as_raw();
    let refuse = |what: String| {
        let message = format!("{}: {what}", path.display());
        Error::usage("trust-unusable", message)
    };
    let owner = metadata.uid();
    if owner != user && owner != 0 {
        return Err(refuse(format!("belongs to user {owner}, not to {user}"))
            .hint("find out who put it there: it says whom you trust"));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(
            refuse(format!("has mode {mode:03o}: others may write to it"))
                .hint("see that it says what you want, then take the right from them: chmod go-w"),
        );
    }
    Ok(())
}
