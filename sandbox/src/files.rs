//! Files: the guest's view of its granted workspaces.
//!
//! Implements `wasi:filesystem` in place of wasmtime-wasi. Each path is resolved as text (`path`),
//! compared with the grant (`plan`), and opened beneath the workspace's directory without following
//! links (`resolve_beneath`). Only files and directories exist: no symbolic links, devices, FIFOs
//! or sockets. A descriptor of a directory is a path and not an inode: access is decided by the
//! path at each step, so renaming a directory does not move a grant with it.

mod counters;
mod descriptors;
mod file;
mod listing;
mod metadata;
mod path;
mod plan;
mod resolve_beneath;
mod resolved_path;
mod streams;
#[cfg(test)]
mod tests;
pub mod workspaces;

use std::io;
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use tokio::sync::Semaphore;
use toolward_contract::capability::Class;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn, spawn_blocking};

use crate::exceeded::Exceeded;
use crate::held;
use crate::violations::Violations;
use counters::Slot;
pub use counters::{FileCounters, FileLimits, OpenFile, OpenFiles};
use path::VirtualPath;
pub use plan::{Plan, PlanError};
pub use resolve_beneath::Root;

/// The files that a call may use. The attempts of the call share the counters.
#[derive(Debug, Clone)]
pub struct FileGrant {
    /// The files that the call can see.
    pub plan: Arc<Plan>,
    /// The limits on the use of these files.
    pub limits: FileLimits,
    /// The counters of this use.
    pub counters: Arc<FileCounters>,
}

/// The file access of one attempt. Default: no files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ctx(Option<Arc<Shared>>);

impl Ctx {
    /// The access of one attempt of a call, whose attempts share counters and violations. No access
    /// without a grant.
    pub(crate) fn new(
        grant: Option<FileGrant>,
        violations: &Violations,
        held: &held::Shared,
    ) -> Self {
        Self(grant.map(|grant| {
            Arc::new(Shared {
                grant,
                violations: violations.clone(),
                exceeded: OnceLock::new(),
                held: held.clone(),
            })
        }))
    }

    /// The limit that made the host drop a write of this attempt, if any. The guest's result may
    /// then claim a write that did not happen.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.0.as_ref()?.exceeded.get().copied()
    }
}

/// The files of a store, borrowed for one host call.
pub(crate) struct View<'a> {
    /// The access that is allowed.
    pub(crate) ctx: &'a mut Ctx,
    /// The table of the guest's descriptors.
    pub(crate) table: &'a mut ResourceTable,
}

struct Files;

impl HasData for Files {
    type Data<'a> = View<'a>;
}

/// Replaces the linker's `wasi:filesystem` with the view.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    preopens::add_to_linker::<T, Files>(linker, view)?;
    types::add_to_linker::<T, Files>(linker, view)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Runs blocking `work` on a separate thread and waits for it, so that the deadline can end a guest
/// that waits for a disk. Only a few operations of one call run at once, so that other guests find
/// a thread. Queued work is dropped with its future; started work runs to its end.
async fn run_blocking<R: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
) -> Result<R, Fail> {
    // The semaphore is never closed, so this always gets a permit.
    let permit = threads.clone().acquire_owned().await.ok();
    spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
}

/// Starts `work` without waiting for it.
fn start_blocking<R: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
) -> AbortOnDropJoinHandle<Result<R, Fail>> {
    let threads = threads.clone();
    spawn(async move { run_blocking(&threads, work).await })
}

/// The state that all open files of an attempt share.
#[derive(Debug)]
struct Shared {
    grant: FileGrant,
    violations: Violations,
    /// The limit that a stream's write exceeded. The stream reports it at its next operation, which
    /// a guest may never call.
    exceeded: OnceLock<Exceeded>,
    /// Counts the memory that the host holds for the call.
    held: held::Shared,
}

/// The most bytes of one read, or of one write to a stream.
const CHUNK: usize = 64 << 10;

/// The memory that an open file takes in addition to its path, in bytes.
pub(crate) const OPEN_FILE: u64 = 512;

/// The most memory that a stream of a file takes for its buffered data, in bytes.
pub(crate) const FILE_STREAM: u64 = CHUNK as u64 + 1024;

/// The memory that a listing takes, in bytes: the entries that were read, with the longest names,
/// and the kernel's answer from which they are read.
pub(crate) const LISTING: u64 = 128 << 10;

impl Shared {
    /// Takes a slot for an open file, which counts `bytes` of the host's memory.
    fn open(&self, bytes: u64) -> Result<Slot, Exceeded> {
        (self.grant.counters).open(&self.grant.limits, self.held.hold(bytes))
    }

    fn threads(&self) -> &Arc<Semaphore> {
        &self.grant.counters.threads
    }

    /// Runs `work` on a path, on a thread that may block.
    async fn run<R: Send + 'static>(
        &self,
        path: &VirtualPath,
        work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
    ) -> FsResult<R> {
        let done = run_blocking(self.threads(), work).await;
        done.map_err(|fail| fail.raise(path.as_str(), &self.violations))
    }
}

/// Why an operation was not done: a plain error for the guest, a refusal that is recorded, or a
/// limit that ends the call.
#[derive(Clone, Copy)]
enum Fail {
    /// An ordinary error.
    Code(ErrorCode),
    /// The operation is beyond the grant.
    Refused(ErrorCode),
    /// The operation is beyond a limit.
    Exceeded(Exceeded),
}

impl Fail {
    /// The error that the guest gets. A refusal of `path` is recorded.
    fn raise(self, path: &str, violations: &Violations) -> FsError {
        match self {
            Self::Code(code) => code.into(),
            Self::Refused(code) => match violations.record(&Class::Workspace, path) {
                Ok(()) => code.into(),
                Err(ends_call) => FsError::trap(ends_call),
            },
            Self::Exceeded(exceeded) => FsError::trap(exceeded),
        }
    }
}

impl From<ErrorCode> for Fail {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<Exceeded> for Fail {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl From<Errno> for Fail {
    fn from(errno: Errno) -> Self {
        Self::Code(match errno {
            // A symbolic link, a mount point, a device without a driver: none of them exists for a
            // guest.
            Errno::LOOP | Errno::XDEV | Errno::NXIO => {
                return Self::Refused(ErrorCode::NotPermitted);
            }
            Errno::AGAIN => ErrorCode::Busy,
            Errno::ROFS => ErrorCode::ReadOnly,
            Errno::DQUOT => ErrorCode::Quota,
            Errno::TXTBSY => ErrorCode::TextFileBusy,
            Errno::NODEV => ErrorCode::NoDevice,
            errno => io::Error::from(errno).into(),
        })
    }
}

impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Code(error.into()),
        }
    }
}
