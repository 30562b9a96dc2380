//! The confinement of a process that only computes: no files but those already open, no
//! network, no programs, no signals to others.

use std::io;

use crate::landlock_rules;
use crate::seccomp::arguments::{self, Built, Rules};
use crate::seccomp::{self, Network};

/// Confines this thread, and all that it starts from now on.
///
/// # Errors
///
/// If the kernel supports a part of this and fails to apply it.
pub fn without_anything() -> io::Result<()> {
    let nothing = landlock_rules::Rules::new(&Network::None, true);
    let applied = nothing.and_then(landlock_rules::Rules::apply);
    let applied = applied.and_then(|_| seccomp::apply_only(allowed));
    applied.map_err(io::Error::other)
}

/// Memory, threads, and reading and writing open files.
fn allowed() -> Built<Rules> {
    let always = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_restart_syscall,
    ];
    let mut rules: Rules = always.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend([
        (libc::SYS_fcntl, arguments::fcntl(&[])?),
        (libc::SYS_mmap, arguments::not_writable_and_executable()?),
        (
            libc::SYS_mprotect,
            arguments::not_writable_and_executable()?,
        ),
        (libc::SYS_prctl, arguments::prctl()?),
        // A filter can't see the flags of `clone3`; after `ENOSYS` the C library uses
        // `clone`.
        (libc::SYS_clone, arguments::thread()?),
        // Itself, and no other process: as the C library does when it aborts, and when
        // it asks how large its stack may be.
        (libc::SYS_tgkill, arguments::itself(0)?),
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

    /// A process that would go on for long.
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
            super::without_anything().unwrap();
            let same = Rlimit {
                current: Some(1),
                maximum: Some(1),
            };
            let signal = |process: Pid, number: i32| {
                let process = process.as_raw_pid();
                // SAFETY: three numbers, and nothing is pointed to.
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
