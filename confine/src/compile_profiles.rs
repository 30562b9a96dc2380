//! The confinement of the processes that compile: a broker, which starts the same program
//! repeatedly and writes to one directory, and its workers, which compute and use open files.

use std::io;
use std::path::Path;

use crate::ConfineError;
use crate::landlock_rules::{DEVICE, PROGRAM, READ, Rules, WRITE};
use crate::seccomp::arguments::{self, Built, CallRules, Calls, always, calls};
use crate::seccomp::{self, Network};
use crate::system;

/// Confines this thread, and everything that it starts from now on, to `program`, the libraries of
/// this process, and `directory`.
///
/// # Errors
///
/// If `directory` can't be opened, or the kernel supports a part of this but fails to apply it.
pub fn broker(program: &Path, directory: Option<&Path>) -> Result<(), ConfineError> {
    let mut rules = Rules::new(&Network::None, true)?;
    rules.keep_if_there([program], PROGRAM);
    rules.keep_if_there(system::mapped_code(), PROGRAM);
    rules.keep_if_there(["/etc/ld.so.cache"], READ);
    rules.keep_if_there(["/dev/null"], DEVICE);
    if let Some(directory) = directory {
        rules.keep(directory, READ | WRITE)?;
    }
    rules.apply()?;
    seccomp::apply_to_broker()
}

/// Confines this thread, and everything that it starts from now on, to files that are already open.
/// The thread can't use the network, start programs, or signal other processes.
///
/// # Errors
///
/// If the kernel supports a part of this but fails to apply it.
pub fn worker() -> io::Result<()> {
    let nothing = Rules::new(&Network::None, true);
    let applied = nothing.and_then(Rules::apply);
    let applied = applied.and_then(|_| seccomp::apply_only(allowed));
    applied.map_err(io::Error::other)
}

/// The calls of a worker: memory, threads, and reading and writing open files.
const WORKER: Calls = calls![
    SYS_read SYS_write SYS_writev SYS_close SYS_fstat SYS_statx SYS_lseek
    SYS_munmap SYS_mremap SYS_madvise SYS_brk
    SYS_futex SYS_set_robust_list SYS_rseq SYS_sched_yield SYS_sched_getaffinity SYS_gettid SYS_getpid
    SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_restart_syscall
    SYS_exit SYS_exit_group SYS_getrandom SYS_clock_gettime SYS_clock_nanosleep SYS_nanosleep
];

fn allowed() -> Built<CallRules> {
    let mut rules: CallRules = always(WORKER).collect();
    rules.extend([
        (libc::SYS_fcntl, arguments::fcntl(&[])?),
        (libc::SYS_mmap, arguments::not_writable_and_executable()?),
        (
            libc::SYS_mprotect,
            arguments::not_writable_and_executable()?,
        ),
        (libc::SYS_prctl, arguments::prctl()?),
        // A filter can't see the flags of `clone3`. After `ENOSYS`, the C library uses `clone`.
        (libc::SYS_clone, arguments::thread()?),
        // Both only for this process. The C library calls `tgkill` when it aborts, and `prlimit64`
        // to find the limit of the stack.
        (libc::SYS_tgkill, arguments::itself()?),
        (libc::SYS_prlimit64, arguments::one_of(0, &[0])?),
    ]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    #![expect(
        unsafe_code,
        reason = "calls that no safe function makes with such arguments"
    )]

    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Resource, Rlimit};

    /// A process that runs for a long time.
    struct Neighbour(Child);

    impl Drop for Neighbour {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_worker_signals_and_limits_itself_and_no_other_process() {
        let mut command = Command::new("sleep");
        command.arg("60").stdin(Stdio::null()).stdout(Stdio::null());
        let mut neighbour = Neighbour(command.spawn().unwrap());
        let other = Pid::from_child(&neighbour.0);
        let limits = format!("/proc/{}/limits", neighbour.0.id());
        let before = std::fs::read_to_string(&limits).unwrap();

        let worker = std::thread::spawn(move || {
            super::worker().unwrap();
            let same = Rlimit {
                current: Some(1),
                maximum: Some(1),
            };
            let signal = |process: Pid, number: i32| {
                let process = process.as_raw_pid();
                // SAFETY: the arguments are three numbers, not pointers.
                unsafe { libc::syscall(libc::SYS_tgkill, process, process, number) == 0 }
            };
            let core = rustix::process::getrlimit(Resource::Core);
            [
                rustix::process::setrlimit(Resource::Core, core).is_ok(),
                signal(rustix::process::getpid(), 0),
                rustix::process::prlimit(Some(other), Resource::Cpu, same).is_ok(),
                signal(other, libc::SIGKILL),
            ]
        });
        let could = worker.join().unwrap();
        assert_eq!(could, [true, true, false, false]);
        assert_eq!(std::fs::read_to_string(&limits).unwrap(), before);
        assert!(neighbour.0.try_wait().unwrap().is_none(), "it lives on");
    }
}
