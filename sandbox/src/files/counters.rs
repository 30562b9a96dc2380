//! The file limits of one call, and its counters. All attempts of a call count together, since the
//! writes of a failed attempt stay.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Semaphore;
use toolward_policy::LimitName;
use toolward_support::helper::lock;

use super::plan::Mount;
use crate::exceeded::{self, Exceeded};
use crate::held::HeldBytes;
use crate::limits::CallLimits;

/// The limits of one call on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// The most bytes by which files may grow. Each growth counts, whether by a write, an append, a
    /// new size or a hole. Removing a file gives nothing back.
    pub bytes: u64,
    /// The most files and directories that may be created.
    pub files: u64,
    /// The most files, file streams and directory listings that may be open at once. Each stream
    /// holds some of the host's memory.
    pub open: u64,
    /// The most directory entries that may be read, including entries that the guest is not shown.
    pub entries: u64,
}

impl FileLimits {
    /// The limits of a call.
    pub fn of(limits: &CallLimits) -> Self {
        Self {
            bytes: limits.workspace_bytes,
            files: limits.workspace_files,
            open: limits.open_files,
            entries: limits.directory_entries,
        }
    }

    /// The lower value of each limit.
    pub fn within(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.min(other.bytes),
            files: self.files.min(other.files),
            open: self.open.min(other.open),
            entries: self.entries.min(other.entries),
        }
    }
}

/// The most threads that work on the files of one call at once. A guest can start many operations
/// through streams. Further operations wait, so that other guests find a thread.
const THREADS: usize = 4;

/// The right to hold one file open, which is counted over all calls and returned when dropped.
pub type OpenFile = Box<dyn Any + Send + Sync>;

/// The files that all calls together hold open.
pub trait OpenFiles: fmt::Debug + Send + Sync {
    /// Counts one more open file of this call.
    ///
    /// # Errors
    /// If too many files are open: by all calls, or by the calls of this call's principal or
    /// publisher.
    fn open(&self) -> Result<OpenFile, Exceeded>;
}

/// The use of files by one call.
#[derive(Debug)]
pub struct FileCounters {
    /// The sum over all workspaces without a separate limit.
    common: Arc<Spent>,
    /// The sum for each workspace with a separate limit, by its directory.
    own: Mutex<Vec<(PathBuf, Arc<Spent>)>>,
    open: AtomicU64,
    entries: AtomicU64,
    hash_key: OnceLock<[u8; 32]>,
    pub(super) threads: Arc<Semaphore>,
    /// The open files of all calls, if this call counts among them.
    of_all: Option<Arc<dyn OpenFiles>>,
}

#[derive(Debug, Default)]
struct Spent {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Default for FileCounters {
    fn default() -> Self {
        Self {
            common: Arc::default(),
            own: Mutex::default(),
            open: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            hash_key: OnceLock::new(),
            threads: Arc::new(Semaphore::new(THREADS)),
            of_all: None,
        }
    }
}

impl FileCounters {
    /// Counters of a call whose open files count among the files of all calls.
    pub fn within(of_all: Arc<dyn OpenFiles>) -> Self {
        Self {
            of_all: Some(of_all),
            ..Self::default()
        }
    }

    /// Counts `growth` bytes before they are written.
    pub(super) fn grow(
        &self,
        limits: &FileLimits,
        mount: &Mount,
        growth: u64,
    ) -> Result<(), Exceeded> {
        let (spent, allowed) = match mount.max_bytes {
            Some(cap) => (self.own(&mount.directory), cap),
            None => (self.common.clone(), limits.bytes),
        };
        exceeded::take(&spent.bytes, LimitName::WorkspaceBytes, growth, allowed)
    }

    /// Counts a file or directory that `make` creates; a failed creation is not counted.
    pub(super) fn create<T, E: From<Exceeded>>(
        &self,
        limits: &FileLimits,
        mount: &Mount,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let (spent, allowed) = match mount.max_files {
            Some(cap) => (self.own(&mount.directory), cap),
            None => (self.common.clone(), limits.files),
        };
        exceeded::take(&spent.files, LimitName::WorkspaceFiles, 1, allowed)?;
        make().inspect_err(|_| {
            spent.files.fetch_sub(1, Ordering::Relaxed);
        })
    }

    /// Counts one more entry of a directory.
    pub(super) fn entry(&self, limits: &FileLimits) -> Result<(), Exceeded> {
        exceeded::take(
            &self.entries,
            LimitName::DirectoryEntries,
            1,
            limits.entries,
        )
    }

    /// Takes the right to hold one file open, and counts the memory of the open file. Both are
    /// returned when dropped.
    pub(super) fn open(
        self: &Arc<Self>,
        limits: &FileLimits,
        share: HeldBytes,
    ) -> Result<Slot, Exceeded> {
        let of_all = self.of_all.as_ref().map(|all| all.open()).transpose()?;
        exceeded::take(&self.open, LimitName::OpenFiles, 1, limits.open)?;
        Ok(Slot {
            counters: self.clone(),
            _of_all: of_all,
            _share: share,
        })
    }

    /// The key for this call's hashes of files. With it, a guest can't find out inode numbers, and
    /// two calls can't compare their hashes. `None` if the system has no random bytes.
    pub(super) fn hash_key(&self) -> Option<&[u8; 32]> {
        if self.hash_key.get().is_none() {
            let mut key = [0; 32];
            getrandom::fill(&mut key).ok()?;
            // If another thread has set a key, that key is used.
            let _ = self.hash_key.set(key);
        }
        self.hash_key.get()
    }

    fn own(&self, directory: &Path) -> Arc<Spent> {
        let mut own = lock(&self.own);
        if let Some((_, spent)) = own.iter().find(|(known, _)| known == directory) {
            return spent.clone();
        }
        let spent = Arc::<Spent>::default();
        own.push((directory.to_owned(), spent.clone()));
        spent
    }
}

/// The right to hold one file open.
pub(super) struct Slot {
    counters: Arc<FileCounters>,
    _of_all: Option<OpenFile>,
    _share: HeldBytes,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
    }
}
