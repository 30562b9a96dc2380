//! Changes modes and times of files for confined processes, in the directories that they may write.
//!
//! The overseer itself opens the file that a call names, checks the real path of the open file, and
//! changes that file. So the process can't replace the file in the meantime.

#![expect(
    unsafe_code,
    reason = "no safe function installs a filter with a listener, or answers its notices"
)]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use libc::{seccomp_notif, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, chmod, open, utimensat};
use rustix::io::Errno;
use seccompiler::BpfProgram;

use crate::ConfineError;
use crate::seccomp;
use crate::seccomp::arguments::SET_ID;
use crate::seccomp::denied::{FCHMODAT2, OVERSEEN};

/// The longest path that the kernel accepts, including the final zero.
const MAX_PATH_BYTES: usize = 4096;

/// Answers the calls of confined processes that change modes and times.
#[derive(Debug)]
#[must_use = "without it the calls wait"]
pub struct Overseer {
    /// The kernel's listener, which passes the calls on. `None` if the kernel provides none: a
    /// filter then refuses the calls. Also `None` if this code has no filters for the machine: the
    /// calls are then not checked.
    listener: Option<OwnedFd>,
    /// The directories in which files may be changed.
    write: Vec<PathBuf>,
    private: Vec<PathBuf>,
}

impl Overseer {
    /// Makes the calling thread, and everything that it starts, pass changes of modes and times to
    /// the overseer.
    pub(super) fn listen(write: Vec<PathBuf>, private: Vec<PathBuf>) -> Result<Self, ConfineError> {
        let listener = seccomp::machine().and_then(|_| install());
        if listener.is_none() && seccomp::machine().is_some() {
            let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
            seccomp::install(&seccomp::answering(OVERSEEN, refused))?;
        }
        Ok(Self {
            listener,
            write,
            private,
        })
    }

    /// Starts a thread that answers the calls until all confined processes have ended. If the
    /// overseer is dropped instead, the calls fail with `ENOSYS`.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn watch(mut self) -> io::Result<()> {
        let Some(listener) = self.listener.take() else {
            return Ok(());
        };
        let thread = std::thread::Builder::new().name("overseer".to_owned());
        thread.spawn(move || self.answer_all(&listener)).map(drop)
    }

    fn answer_all(&self, listener: &OwnedFd) {
        loop {
            let mut waiting = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(_) => return,
            }
            let [ready] = waiting;
            if !ready.revents().contains(PollFlags::IN) {
                return;
            }
            // `None` if the process has since ended or been interrupted.
            if let Some(request) = receive(listener) {
                let error = match self.answer(listener, &request) {
                    Ok(()) => 0,
                    Err(error) => error.raw_os_error(),
                };
                send(listener, request.id, error);
            }
        }
    }

    /// Performs a call for the process that made it.
    fn answer(&self, listener: &OwnedFd, request: &seccomp_notif) -> Result<(), Errno> {
        let call = i64::from(request.data.nr);
        let arguments = request.data.args;
        let [first, second, third, fourth, ..] = arguments;
        let process = Process(request.pid);
        let follow = |flags: u64| flags & u64::from(AtFlags::SYMLINK_NOFOLLOW.bits()) == 0;
        let file = match call {
            libc::SYS_fchmod => process.open_file(first),
            libc::SYS_utimensat if second == 0 => process.open_file(first),
            libc::SYS_fchmodat => process.open_at(first, second, true),
            FCHMODAT2 | libc::SYS_utimensat => process.open_at(first, second, follow(fourth)),
            // `chmod`, which exists only on some machines.
            _ => process.open_at(HERE, first, true),
        }?;
        let change = match call {
            libc::SYS_utimensat => Change::Times(process.times(third)?),
            libc::SYS_fchmodat | FCHMODAT2 => Change::Mode(third),
            _ => Change::Mode(second),
        };
        // Checks that the process still waits. Otherwise the arguments may have been read from a
        // later process with the same id.
        if !is_waiting(listener, request.id) {
            return Err(Errno::SRCH);
        }
        self.change(&file, &change)
    }

    /// Changes an open file if it is in a directory that may be written.
    fn change(&self, file: &OwnedFd, change: &Change) -> Result<(), Errno> {
        let own = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let real = std::fs::read_link(&own).map_err(|_| Errno::PERM)?;
        let within = |paths: &[PathBuf]| paths.iter().any(|path| real.starts_with(path));
        if !within(&self.write) || within(&self.private_below()) {
            return Err(Errno::PERM);
        }
        match change {
            Change::Mode(mode) if mode & SET_ID != 0 => Err(Errno::PERM),
            Change::Mode(mode) => {
                let bits = u32::try_from(mode & 0o7777).map_err(|_| Errno::INVAL)?;
                chmod(&own, Mode::from_raw_mode(bits))
            }
            Change::Times(times) => utimensat(CWD, &own, times, AtFlags::empty()),
        }
    }

    /// The private paths below directories that may be written.
    fn private_below(&self) -> Vec<PathBuf> {
        let below = |private: &&PathBuf| self.write.iter().any(|path| private.starts_with(path));
        self.private.iter().filter(below).cloned().collect()
    }
}

enum Change {
    Mode(u64),
    Times(Timestamps),
}

/// `AT_FDCWD` as the argument of a call.
const HERE: u64 = libc::AT_FDCWD.cast_unsigned() as u64;

/// A process that waits for an answer, identified by its thread's id.
struct Process(u32);

impl Process {
    /// Opens a file that the process has open.
    fn open_file(&self, descriptor: u64) -> Result<OwnedFd, Errno> {
        let path = self.descriptor(descriptor);
        let opened = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        opened.map_err(|error| match error {
            Errno::NOENT => Errno::BADF,
            other => other,
        })
    }

    /// Opens the file at a path in the memory of the process.
    fn open_at(&self, directory: u64, path: u64, follow: bool) -> Result<OwnedFd, Errno> {
        let path = self.path(path)?;
        let path = match path.strip_prefix("/proc/self") {
            Ok(rest) => Path::new("/proc").join(self.0.to_string()).join(rest),
            Err(_) => path,
        };
        let base = match directory & u64::from(u32::MAX) == HERE & u64::from(u32::MAX) {
            true => PathBuf::from(format!("/proc/{}/cwd", self.0)),
            false => self.descriptor(directory),
        };
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        flags.set(OFlags::NOFOLLOW, !follow);
        // The kernel accepts an empty path only with the flag `AT_EMPTY_PATH`, and then takes the
        // descriptor's file. Here an empty path is always refused.
        match path.as_os_str().is_empty() {
            true => Err(Errno::NOENT),
            false => open(base.join(path), flags, Mode::empty()),
        }
    }

    fn descriptor(&self, descriptor: u64) -> PathBuf {
        let number = descriptor & u64::from(u32::MAX);
        PathBuf::from(format!("/proc/{}/fd/{number}", self.0))
    }

    fn memory(&self) -> Result<File, Errno> {
        File::open(format!("/proc/{}/mem", self.0)).map_err(|_| Errno::PERM)
    }

    fn path(&self, address: u64) -> Result<PathBuf, Errno> {
        let mut bytes = [0; MAX_PATH_BYTES];
        let read = self.memory()?.read_at(&mut bytes, address);
        let read = read.map_err(|_| Errno::FAULT)?;
        let text = bytes.get(..read).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0);
        let text = end
            .and_then(|end| text.get(..end))
            .ok_or(Errno::NAMETOOLONG)?;
        Ok(PathBuf::from(OsStr::from_bytes(text)))
    }

    /// Reads the times of access and modification. If the address is zero, both are the current
    /// time.
    fn times(&self, address: u64) -> Result<Timestamps, Errno> {
        let mut numbers = [0, libc::UTIME_NOW, 0, libc::UTIME_NOW];
        if address != 0 {
            let mut bytes = [0; 32];
            let read = self.memory()?.read_exact_at(&mut bytes, address);
            read.map_err(|_| Errno::FAULT)?;
            let (chunks, _) = bytes.as_chunks::<8>();
            for (number, chunk) in numbers.iter_mut().zip(chunks) {
                *number = i64::from_ne_bytes(*chunk);
            }
        }
        let mut numbers = numbers.into_iter();
        let mut next = || numbers.next().unwrap_or_default();
        let mut time = || Timespec {
            tv_sec: next(),
            tv_nsec: next(),
        };
        Ok(Timestamps {
            last_access: time(),
            last_modification: time(),
        })
    }
}

/// Makes the calls in [`OVERSEEN`] of this thread wait for answers from a new listener. `None` if
/// that is not possible.
fn install() -> Option<OwnedFd> {
    let mut program: BpfProgram = seccomp::answering(OVERSEEN, libc::SECCOMP_RET_USER_NOTIF);
    let instructions = libc::sock_fprog {
        len: u16::try_from(program.len()).ok()?,
        filter: program.as_mut_ptr().cast(),
    };
    // SAFETY: the structure points to `len` instructions, and the kernel copies them.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const instructions,
        )
    };
    let listener = i32::try_from(listener)
        .ok()
        .filter(|listener| *listener >= 0)?;
    // SAFETY: the kernel has just created the descriptor, and nothing else owns it. It is closed
    // when a program is executed.
    Some(unsafe { OwnedFd::from_raw_fd(listener) })
}

fn receive(listener: &OwnedFd) -> Option<seccomp_notif> {
    // SAFETY: the structure has only numbers, for which zero is valid.
    let mut request: seccomp_notif = unsafe { std::mem::zeroed() };
    let (listener, place) = (listener.as_raw_fd(), &raw mut request);
    // SAFETY: the kernel writes one such structure.
    let done = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, place) };
    (done == 0).then_some(request)
}

fn send(listener: &OwnedFd, id: u64, error: i32) {
    let mut response = seccomp_notif_resp {
        id,
        val: 0,
        error: -error,
        flags: 0,
    };
    let (listener, place) = (listener.as_raw_fd(), &raw mut response);
    // SAFETY: the kernel reads one such structure. The call fails if the process no longer waits.
    let _ = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, place) };
}

fn is_waiting(listener: &OwnedFd, mut id: u64) -> bool {
    let (listener, place) = (listener.as_raw_fd(), &raw mut id);
    // SAFETY: the kernel reads one number.
    let done = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, place) };
    done == 0
}
