//! The confinement of a process that runs guests, in two layers. Also the confinement of a process
//! that needs nothing but a few files, such as the recorder of calls: it can use no other files, no
//! programs, and no network.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landlock::AccessFs;

use crate::ConfineError;
use crate::landlock_rules::{DEVICE, READ, Rules, WRITE};
use crate::report::{Confined, State};
use crate::seccomp::{CallFilter, Network, SystemCalls};
use crate::{landlock_rules, report, system};

/// How long to wait for other threads to end.
const THREAD_EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// The rights that a process keeps when it confines itself. A new confinement keeps none.
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

    /// Keeps the right to read a file, or a directory and everything below it.
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Keeps the right to read and write a file, or a directory and everything below it, but not to
    /// make symbolic links, devices, pipes or sockets.
    pub fn read_write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Keeps the right to remove empty directories at and below `path`, and no other right there.
    /// For a scratch directory that is removed when the process ends.
    pub fn remove_directories(mut self, path: impl Into<PathBuf>) -> Self {
        self.clear.push(path.into());
        self
    }

    /// Keeps the right to read the existing files that name resolution and TLS need: the resolver's
    /// configuration, its libraries, and the system's certificates. If such a file is replaced
    /// later, as a network manager replaces `resolv.conf`, the new file can't be read.
    pub fn system_files(mut self) -> Self {
        self.system = true;
        self
    }

    /// Sets the allowed network access. Default: [`Network::None`]. The ports are TCP ports. Any
    /// access other than `None` also allows datagrams to all addresses.
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Keeps the right to accept connections on this socket, which must already listen and stay
    /// open while the process serves. May be called for several sockets. No other socket can listen
    /// or accept. By default, no socket can accept.
    pub fn accept_on(mut self, listener: &impl AsRawFd) -> Self {
        self.listeners.push(listener.as_raw_fd());
        self
    }

    /// Sets the allowed system calls. Default: [`SystemCalls::AllowList`].
    pub fn system_calls(mut self, calls: SystemCalls) -> Self {
        self.calls = calls;
        self
    }

    /// Sets whether confining fails if the kernel lacks a part. By default, the parts that the
    /// kernel has are enforced, and the report lists all parts.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Confines the process permanently, with both layers.
    ///
    /// # Errors
    ///
    /// [`ConfineError`] if the process has more than one thread, a kept path can't be opened, a
    /// strict confinement lacks a part, or the kernel refuses a part.
    pub fn apply(&self) -> Result<Confined, ConfineError> {
        self.apply_files()?.end_programs()
    }

    /// Confines files and network permanently. The process can still start programs, under the same
    /// rules.
    ///
    /// # Errors
    ///
    /// As [`Confinement::apply`].
    pub fn apply_files(&self) -> Result<FilesConfined, ConfineError> {
        alone(threads)?;
        self.files_of_this_thread()
    }

    /// Confines the calling thread and the threads that it will start, but no other threads. For a
    /// program whose other threads do not run guests, and for tests.
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
            // Paths that don't exist are skipped, since most machines have only some of them.
            rules.keep_if_there(system::files(), READ);
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
        rules.keep_if_there(["/dev/null"], DEVICE);
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

/// A process with the first layer applied: it can access only the files that it kept.
/// [`FilesConfined::end_programs`] applies the second layer.
#[derive(Debug)]
#[must_use = "programs can still be started"]
pub struct FilesConfined {
    calls: CallFilter,
    report: Confined,
}

impl FilesConfined {
    /// Applies the second layer: no programs can be started, and sockets and system calls that
    /// serving does not need are refused.
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

/// Checks that the process has only one thread. Waits up to [`THREAD_EXIT_TIMEOUT`], since the
/// kernel still lists a thread for a short time after it was joined.
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

/// Confines this process permanently to reading and writing the files and directories at `paths`,
/// and everything below them. The allowed system calls are the same as for a process that runs
/// guests without a network.
///
/// # Errors
///
/// [`ConfineError`] if the process has more than one thread, a path can't be opened, or the kernel
/// supports a part of this but fails to apply it.
pub fn only_files<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), ConfineError> {
    alone(threads)?;
    // No path may be executed.
    let mut rules = Rules::new(&Network::None, true)?;
    for path in paths {
        rules.keep(path, READ | WRITE)?;
    }
    rules.keep_if_there(["/dev/null"], DEVICE);
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
