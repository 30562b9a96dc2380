//! The confinement of a process that runs guests, in two layers; and the one
//! of a process that reads and writes a few files and does nothing else, such as the recorder of
//! calls: no other files, no programs, no network.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landlock::AccessFs;

use crate::ConfineError;
use crate::landlock_rules::{DEVICE, READ, Rules, WRITE};
use crate::report::{Confined, State};
use crate::seccomp::{CallFilter, Network, SystemCalls};
use crate::{landlock_rules, report, system};

/// How long to wait for threads that are about to end.
const THREAD_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The rights that a process keeps when it confines itself. Starts with none.
///
/// ```no_run
/// use toolward_confine::{Confinement, ConfineError, Network, State, SystemCalls};
///
/// # fn main() -> Result<(), ConfineError> {
/// // First thing in `main`, while there is one thread.
/// let files = Confinement::builder()
///     .read("/var/lib/example/bundles")
///     .system_files()
///     .network(Network::Ports(vec![443]))
///     .system_calls(SystemCalls::AllowList)
///     .apply_files()?;
/// // Helpers are started here.
/// let confined = files.end_programs()?;
/// if confined.state != State::Full {
///     eprintln!("{}", confined.missing());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Confinement {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    clear: Vec<PathBuf>,
    system: bool,
    network: Network,
    listeners: Vec<i32>,
    calls: SystemCalls,
    strict: bool,
}

impl Confinement {
    /// A confinement that keeps no rights.
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
    /// its libraries, and the system's certificates, as far as they exist.
    /// A file among them that is replaced later (as a network manager replaces
    /// `resolv.conf`) can't be read again.
    pub fn system_files(mut self) -> Self {
        self.system = true;
        self
    }

    /// Sets what may be reached over the network. Ports are TCP ports: if names may be
    /// resolved, datagrams can go anywhere. Default: [`Network::None`].
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Keeps the right to accept connections on this socket, which listens already and
    /// has to stay open while the process serves. May be called for several sockets; no
    /// other socket can listen or accept. Default: none can.
    pub fn accept_on(mut self, listener: &impl AsRawFd) -> Self {
        self.listeners.push(listener.as_raw_fd());
        self
    }

    /// Sets which system calls are allowed. Default: [`SystemCalls::AllowList`].
    pub fn system_calls(mut self, calls: SystemCalls) -> Self {
        self.calls = calls;
        self
    }

    /// Fails if the kernel lacks any part. By default the parts that the kernel has are
    /// enforced, and the report names it.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Confines the process permanently. Both layers.
    ///
    /// # Errors
    ///
    /// [`ConfineError`] if there is more than one thread, a path to be kept can't be
    /// opened, or a strict confinement lacks a part.
    pub fn apply(&self) -> Result<Confined, ConfineError> {
        self.apply_files()?.end_programs()
    }

    /// Confines files and network permanently. Programs can still be started, under the
    /// same rules.
    ///
    /// # Errors
    ///
    /// As [`Confinement::apply`].
    pub fn apply_files(&self) -> Result<FilesConfined, ConfineError> {
        alone(threads)?;
        self.files_of_this_thread()
    }

    /// Confines the calling thread and the threads that it will start, but no others.
    /// For a program whose other threads do not run guests, and for tests.
    ///
    /// # Errors
    ///
    /// As [`Confinement::apply`], except that other threads are allowed.
    pub fn apply_to_this_thread(&self) -> Result<Confined, ConfineError> {
        self.files_of_this_thread()?.end_programs()
    }

    fn files_of_this_thread(&self) -> Result<FilesConfined, ConfineError> {
        let report = report::outlook_with(self.calls);
        if self.strict && report.state != State::Full {
            return Err(ConfineError::Incomplete(report.missing()));
        }
        let page_maps = system::open_page_maps();
        let mut rules = Rules::new(&self.network, false)?;
        if self.system {
            // Most machines have some of them.
            rules.keep_each(system::files(), READ);
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
        rules.keep_if_there("/dev/null", DEVICE);
        rules.apply()?;
        Ok(FilesConfined {
            calls: CallFilter {
                list: self.calls,
                network: self.network.clone(),
                listeners: self.listeners.clone(),
                page_maps,
            },
            report,
        })
    }
}

/// A process whose first layer is applied: it reaches only the files that it kept.
/// [`FilesConfined::end_programs`] applies the second.
#[derive(Debug)]
#[must_use = "programs can still be started"]
pub struct FilesConfined {
    calls: CallFilter,
    report: Confined,
}

impl FilesConfined {
    /// Applies the second layer: no programs can be started, and no sockets or system
    /// calls be made that serving does not need.
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

/// Waits until the process has one thread. The kernel lists a joined thread for a
/// moment longer.
pub(crate) fn alone(threads: impl Fn() -> Option<usize>) -> Result<(), ConfineError> {
    let began = Instant::now();
    while let Some(count) = threads().filter(|count| *count > 1) {
        if began.elapsed() > THREAD_EXIT_TIMEOUT {
            return Err(ConfineError::Threads(count));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// The number of threads of this process; `None` if it is unknown.
pub(crate) fn threads() -> Option<usize> {
    let tasks = std::fs::read_dir("/proc/self/task");
    tasks.ok().map(Iterator::count)
}

/// Confines this process permanently to reading and writing these files, and directories with all below. It has the
/// system calls that a process has which runs guests without a network.
///
/// # Errors
///
/// [`ConfineError`] if there is more than one thread, a path can't be opened, or the kernel supports a part of this
/// and fails to apply it.
pub fn only_files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), ConfineError> {
    alone(threads)?;
    // No path may be executed.
    let mut rules = Rules::new(&Network::None, true)?;
    for path in paths {
        rules.keep(path, READ | WRITE)?;
    }
    rules.keep_if_there("/dev/null", DEVICE);
    rules.apply()?;
    CallFilter::new(SystemCalls::AllowList, Network::None).apply()
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
