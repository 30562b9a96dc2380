//! For a process that only computes: no files, no network, no programs, no
//! signals to others. What it has open already is all it has.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

/// Confines this thread, and all that it starts from now on.
///
/// # Errors
///
/// When the kernel has a part of this and refuses to use it.
pub(crate) fn without_anything() -> io::Result<()> {
    super::landlock_rules::nothing().map_err(io::Error::other)?;
    only_computing()
}

/// A filter that lets pass what computing takes, memory, threads, reading and
/// writing what is open, and answers everything else with "no such call".
fn only_computing() -> io::Result<()> {
    let Some(machine) = super::seccomp::machine() else {
        return Ok(());
    };
    let filter = SeccompFilter::new(
        allowed()?,
        SeccompAction::Errno(libc::ENOSYS.cast_unsigned()),
        SeccompAction::Allow,
        machine,
    );
    let program: BpfProgram = filter
        .and_then(TryInto::try_into)
        .map_err(io::Error::other)?;
    super::seccomp::install(&program).map_err(io::Error::other)
}

fn allowed() -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let always = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_statx,
        libc::SYS_lseek,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
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
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_getrandom,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_prctl,
        libc::SYS_prlimit64,
        libc::SYS_restart_syscall,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    // Threads, not processes. `clone3` keeps its flags where no filter sees them;
    // told that there is none, the C library takes `clone`.
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    let condition = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(thread),
        thread,
    );
    let rule = condition
        .and_then(|condition| SeccompRule::new(vec![condition]))
        .map_err(io::Error::other)?;
    rules.insert(libc::SYS_clone, vec![rule]);
    Ok(rules)
}
