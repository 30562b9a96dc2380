//! Takes rights away from a process that runs guests, so that a guest that escapes the
//! engine finds little: the files that were named, no other programs,
//! no sockets but those that calls were granted. A right that was given up
//! can't be regained in this process.
//!
//! It comes in two layers. The first restricts **files** and the network; from
//! then on a helper could still be started, and would be under the same rules.
//! The second takes away **programs**: nothing is executed any more, wherever it
//! lies, and no rule of the first layer can allow it. Whatever has to be started
//! ([`Broker`](crate::Broker)) or loaded (shared libraries) comes before.
//!
//! A confinement holds for the thread that applies it and all threads that it
//! starts later. So it has to be applied while there is one thread only: before
//! the runtime, before a progress bar.

pub(crate) mod broker_profile;
mod error;
mod landlock_rules;
mod network;
mod report;
mod seccomp;
mod system;
pub(crate) mod worker_profile;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use error::ConfineError;
pub use network::Network;
pub use report::{Confined, Part, State};
pub use seccomp::SystemCalls;
pub use seccomp::allowed::{GROUPS as ALLOWED_CALLS, Group};

use landlock::AccessFs;
use wasmtime::PoolingAllocationConfig;

use self::landlock_rules::{READ, Rules, WRITE};

/// How long threads that end are waited for. Those that go on are not.
const THREAD_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// What a process keeps when it confines itself. Starts with nothing.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Confinement {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    clear: Vec<PathBuf>,
    system: bool,
    network: Network,
    listener: Option<i32>,
    calls: SystemCalls,
    strict: bool,
}

impl Confinement {
    /// A confinement that leaves nothing.
    pub fn builder() -> Self {
        Self::default()
    }

    /// Keeps a file, or a directory with all below, for reading.
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Keeps a file, or a directory with all below, for reading and writing;
    /// not for making symbolic links, devices, pipes or sockets.
    pub fn read_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Keeps the right to remove empty directories at and below `path`, and no
    /// other right: for a scratch directory that goes when the process does.
    pub fn remove_directories(mut self, path: impl Into<PathBuf>) -> Self {
        self.clear.push(path.into());
        self
    }

    /// Keeps what name resolution and TLS read: the resolver's configuration,
    /// its libraries, and the system's certificates, as far as they are there.
    /// A file among them that is replaced later (as a network manager replaces
    /// `resolv.conf`) can't be read again.
    pub fn system_files(mut self) -> Self {
        self.system = true;
        self
    }

    /// Sets what may be reached over the network. The ports are those of TCP:
    /// where names may be resolved, datagrams can go anywhere. Default: [`Network::None`].
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Keeps taking connections from this socket, which listens already and stays
    /// open as long as the process serves. From others none are taken, and nothing
    /// listens anew. Default: none are taken at all.
    pub fn accept_on(mut self, listener: &impl AsRawFd) -> Self {
        self.listener = Some(listener.as_raw_fd());
        self
    }

    /// Sets which system calls are left. Default: [`SystemCalls::AllowList`].
    pub fn system_calls(mut self, calls: SystemCalls) -> Self {
        self.calls = calls;
        self
    }

    /// Demands every part, and refuses to go on with fewer. By default a kernel
    /// that has only some enforces those, and the report says so.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Confines the process, for good. Both layers.
    ///
    /// # Errors
    ///
    /// [`ConfineError`] when there is more than one thread, when a path to be
    /// kept can't be opened, or when strictness can't be had.
    pub fn apply(&self) -> Result<Confined, ConfineError> {
        self.apply_files()?.end_programs()
    }

    /// Confines files and network, for good; programs can still be started, and
    /// are confined likewise.
    ///
    /// # Errors
    ///
    /// As [`Confinement::apply`].
    pub fn apply_files(&self) -> Result<FilesConfined, ConfineError> {
        alone(threads)?;
        self.files_of_this_thread()
    }

    /// Confines the calling thread and those that it will start, and no other
    /// thread. For a program whose other threads have nothing to do with
    /// guests, and for tests.
    ///
    /// # Errors
    ///
    /// As [`Confinement::apply`], but for the threads.
    pub fn apply_to_this_thread(&self) -> Result<Confined, ConfineError> {
        self.files_of_this_thread()?.end_programs()
    }

    fn files_of_this_thread(&self) -> Result<FilesConfined, ConfineError> {
        let report = report::outlook_with(self.calls);
        if self.strict && report.state != State::Full {
            return Err(ConfineError::Incomplete(report.missing()));
        }
        // The engine reads which pages a guest wrote from a file that it opens once,
        // which can't be opened any more by an engine that is made later.
        PoolingAllocationConfig::is_pagemap_scan_available();
        let mut rules = Rules::new(&self.network, false)?;
        if self.system {
            for path in system::files() {
                // Most machines have some of them.
                rules.keep_if_there(&path);
            }
        }
        for path in &self.read {
            rules.keep(path, READ)?;
        }
        for path in &self.write {
            rules.keep(path, READ | WRITE)?;
        }
        for path in &self.clear {
            rules.keep(path, AccessFs::RemoveDir.into())?;
        }
        rules.keep_device("/dev/null".as_ref());
        rules.apply()?;
        Ok(FilesConfined {
            calls: seccomp::Calls {
                list: self.calls,
                network: self.network.clone(),
                listener: self.listener,
            },
            report,
        })
    }
}

/// A process that can no longer reach files but those it kept. The second layer
/// is still to come.
#[derive(Debug)]
#[must_use = "programs can still be started"]
pub struct FilesConfined {
    calls: seccomp::Calls,
    report: Confined,
}

impl FilesConfined {
    /// Takes away the right to start programs, and to make sockets and system
    /// calls that serving does not need.
    ///
    /// # Errors
    ///
    /// [`ConfineError::Refused`].
    pub fn end_programs(self) -> Result<Confined, ConfineError> {
        landlock_rules::no_programs()?;
        self.calls.apply()?;
        Ok(self.report)
    }
}

/// What a confinement would hold on this machine. Changes nothing.
pub fn outlook() -> Confined {
    outlook_with(SystemCalls::default())
}

/// [`outlook`] of a confinement with [`Confinement::system_calls`].
pub fn outlook_with(calls: SystemCalls) -> Confined {
    report::outlook_with(calls)
}

/// Waits until there is one thread only. One that was joined has ended, and is listed
/// until the kernel is done with it.
fn alone(threads: impl Fn() -> Option<usize>) -> Result<(), ConfineError> {
    let began = Instant::now();
    while let Some(count) = threads().filter(|count| *count > 1) {
        if began.elapsed() > THREAD_EXIT_TIMEOUT {
            return Err(ConfineError::Threads(count));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// Threads of this process, where that can be found out.
fn threads() -> Option<usize> {
    Some(
        std::fs::read_dir(Path::new("/proc/self/task"))
            .ok()?
            .count(),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn threads_that_end_are_waited_for_and_others_are_not() {
        let left = Cell::new(4);
        let ending = || {
            left.set(left.get() - 1);
            Some(left.get())
        };
        alone(ending).expect("they ended");
        assert_eq!(left.get(), 1);
        let error = alone(|| Some(2)).expect_err("one goes on");
        assert!(matches!(error, ConfineError::Threads(2)), "{error}");
    }
}
