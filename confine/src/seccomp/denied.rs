//! The deny-list: known harmful calls, which serving never makes. Calls that newer kernels add are
//! allowed until they are listed.

use seccompiler::SeccompCmpOp::{MaskedEq, Ne};
use seccompiler::SeccompRule;

use super::arguments::{
    Built, CallRules, Calls, FAST_OPEN, KINDS, NAMESPACES, SENDING, SET_ID, all, always, any_bit,
    calls, condition, masked, null, number, one_of, other_than, when,
};
use super::{CallFilter, Network};

/// Calls that start programs. The second layer of Landlock rules refuses them, too.
const PROGRAMS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Calls that are refused with any arguments.
const NEVER: Calls = calls![
    // Other processes.
    SYS_ptrace SYS_process_vm_readv SYS_process_vm_writev SYS_pidfd_getfd SYS_kcmp SYS_migrate_pages
    SYS_move_pages SYS_process_madvise SYS_process_mrelease
    // `io_uring` makes sockets without passing this filter.
    SYS_io_uring_setup SYS_io_uring_enter SYS_io_uring_register SYS_bpf SYS_perf_event_open
    SYS_userfaultfd SYS_add_key SYS_request_key SYS_keyctl
    // Modes, owners, times and attributes of files, for which Landlock has no rules.
    SYS_fchmodat SYS_fchown SYS_fchownat SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_removexattr
    SYS_lremovexattr SYS_fremovexattr
    // Notifications about files, which reveal the actions of other processes.
    SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch SYS_fanotify_init SYS_fanotify_mark
    SYS_mount SYS_umount2 SYS_pivot_root SYS_move_mount SYS_open_tree SYS_fsopen SYS_fsconfig
    SYS_fsmount SYS_fspick SYS_mount_setattr SYS_chroot SYS_unshare SYS_setns
    // The whole machine.
    SYS_init_module SYS_finit_module SYS_delete_module SYS_kexec_load SYS_reboot SYS_swapon
    SYS_swapoff SYS_acct SYS_quotactl SYS_quotactl_fd SYS_settimeofday SYS_clock_settime
    SYS_clock_adjtime SYS_adjtimex SYS_sethostname SYS_setdomainname SYS_syslog SYS_vhangup
    SYS_personality SYS_name_to_handle_at SYS_open_by_handle_at
    // Without an address, `listen` takes a free port, which has no rule.
    SYS_listen
    // Objects that all processes of the user share, and that no file rules cover.
    SYS_shmget SYS_shmat SYS_shmctl SYS_semget SYS_semop SYS_semtimedop SYS_semctl SYS_msgget
    SYS_msgsnd SYS_msgrcv SYS_msgctl SYS_mq_open SYS_mq_unlink
    // Older forms of calls above, and access to I/O ports.
    ; x86_64: SYS_chmod SYS_chown SYS_lchown SYS_utime SYS_utimes SYS_futimesat SYS_inotify_init
    SYS_ioperm SYS_iopl SYS_modify_ldt
];

/// Further calls that are refused with any arguments.
const NEVER_UNNAMED: [i64; 6] = [
    FCHMODAT2,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    OPEN_TREE_ATTR,
    KEXEC_FILE_LOAD,
];

/// Calls without a name in the C libraries of some systems. Their numbers are the same on all
/// machines.
pub(crate) const FCHMODAT2: i64 = 452;
const MEMFD_SECRET: i64 = 447;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Not all machines have this call, but no machine uses the number for another call.
const KEXEC_FILE_LOAD: i64 = match cfg!(target_arch = "x86_64") {
    true => 320,
    false => 294,
};

/// Calls that accept a connection from their first argument, a socket.
const ACCEPTING: [i64; 2] = [libc::SYS_accept, libc::SYS_accept4];

/// Requests that write into the input of a terminal. The process may have inherited a
/// terminal from which a shell reads later.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Kinds of requests to file systems, each with its harmless requests, which only read. Other
/// requests may change a file or directory that need not be open for writing (attributes, verity,
/// encryption, shared blocks, snapshots), or stop the file system for all processes.
const OF_FILE_SYSTEMS: [(u64, &[u64]); 5] = [
    // For all file systems: `FS_IOC_GETFLAGS` (also in its 32-bit form) and `FS_IOC_FIEMAP`. For
    // page maps: `PAGEMAP_SCAN`.
    (
        b'f' as u64,
        &[0x8008_6601, 0x8004_6601, 0xc020_660b, 0xc060_6610],
    ),
    // `FS_IOC_GETVERSION`, also in its 32-bit form.
    (b'v' as u64, &[0x8008_7601, 0x8004_7601]),
    // `FS_IOC_FSGETXATTR`
    (b'X' as u64, &[0x801c_581f]),
    // Of btrfs, and `FICLONE` and `FIDEDUPERANGE` of all file systems. None is harmless.
    (0x94, &[]),
    // Of f2fs. None is harmless.
    (0xf5, &[]),
];

/// Calls that allocate memory in a file, which a limit on the address space does not count.
const MEMORY_FILES: [i64; 2] = [libc::SYS_memfd_create, MEMFD_SECRET];

/// Calls that change modes and times of files. For a build, an overseer performs them in the
/// directories that may be written.
pub(crate) const OVERSEEN: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
];

/// The flag for a new listener (`SECCOMP_FILTER_FLAG_NEW_LISTENER`). Such a listener would get
/// calls before the overseer's listener.
const NEW_LISTENER: u64 = 8;

/// Commands of `fcntl` that cause signals to other processes, or report other processes' use of
/// files.
const OF_OTHERS: [i32; 5] = [
    libc::F_SETOWN,
    10, // F_SETSIG
    15, // F_SETOWN_EX
    libc::F_SETLEASE,
    libc::F_NOTIFY,
];

/// Advice that takes memory from the whole machine (`MADV_HWPOISON`, `MADV_SOFT_OFFLINE`).
const BREAKING: [u64; 2] = [100, 101];

/// Calls whose first argument is a process; 0 means the caller.
const OF_A_PROCESS: [i64; 5] = [
    // A lower limit can end another process.
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls whose second argument is the id of a process, a group or a user. The value here is the
/// first argument, which selects a process.
const OF_ONE_PROCESS: [(i64, u64); 2] = [
    (libc::SYS_setpriority, 0), // PRIO_PROCESS
    (libc::SYS_ioprio_set, 1),  // IOPRIO_WHO_PROCESS
];

/// The refused calls. Starting programs is refused only if `programs` is false.
pub(super) fn rules(calls: &CallFilter, programs: bool) -> Built<CallRules> {
    let mut rules: CallRules = always(NEVER).collect();
    rules.extend(NEVER_UNNAMED.map(|call| (call, Vec::new())));
    if !programs {
        rules.extend(PROGRAMS.map(|call| (call, Vec::new())));
    }
    for call in ACCEPTING {
        // One rule with all conditions refuses a socket that is none of the listeners. If there are
        // no listeners, the call is always refused.
        let others = other_than(0, &calls.listeners)?;
        let others = match others.is_empty() {
            true => Vec::new(),
            false => vec![SeccompRule::new(others)?],
        };
        rules.insert(call, others);
    }
    let sockets = match calls.network {
        // Without a condition, the call is always refused.
        Network::None => Vec::new(),
        Network::Ports(_) | Network::Any => other_sockets()?,
    };
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, other_pairs(&[libc::SOCK_STREAM])?);
    // The kernel uses only the lower half of a request.
    let mut requests = one_of(1, &TYPING)?;
    for (kind, asking) in OF_FILE_SYSTEMS {
        let others = asking.iter().map(|asks| condition(1, Ne, *asks));
        let mut of_kind = others.collect::<Built<Vec<_>>>()?;
        of_kind.push(condition(1, MaskedEq(0xff00), kind << 8)?);
        requests.push(SeccompRule::new(of_kind)?);
    }
    rules.insert(libc::SYS_ioctl, requests);
    rules.insert(libc::SYS_fcntl, one_of(1, &OF_OTHERS.map(number))?);
    rules.insert(libc::SYS_madvise, one_of(2, &BREAKING)?);
    for (call, flags) in SENDING {
        rules.insert(call, vec![masked(flags, FAST_OPEN, FAST_OPEN)?]);
    }
    for call in OF_A_PROCESS {
        rules.insert(call, vec![when(0, Ne, 0)?]);
    }
    for (call, process) in OF_ONE_PROCESS {
        rules.insert(call, vec![when(0, Ne, process)?, when(1, Ne, 0)?]);
    }
    rules.insert(libc::SYS_clone, any_bit(0, NAMESPACES)?);
    rules.insert(libc::SYS_fchmod, any_bit(1, SET_ID)?);
    rules.insert(libc::SYS_utimensat, null(1, Ne)?);
    rules.insert(libc::SYS_openat, making_set_id(2)?);
    rules.insert(libc::SYS_mknodat, any_bit(2, SET_ID)?);
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_open, making_set_id(1)?);
        rules.insert(libc::SYS_mknod, any_bit(1, SET_ID)?);
        rules.insert(libc::SYS_creat, any_bit(1, SET_ID)?);
    }
    Ok(rules)
}

/// The refused calls for a program that an operator lets run.
pub(super) fn rules_of_program(calls: &CallFilter, processes: bool) -> Built<CallRules> {
    let mut rules = rules(calls, true)?;
    if calls.network == Network::None {
        rules.insert(libc::SYS_socketpair, Vec::new());
    }
    rules.extend(MEMORY_FILES.map(|call| (call, Vec::new())));
    // The program may read more files than it may write, and for these calls a descriptor for
    // reading is enough.
    for call in [libc::SYS_fchmod, libc::SYS_utimensat] {
        rules.insert(call, Vec::new());
    }
    // Without its death signal, the program could outlive the process that watches it. So the
    // program may not change the signal.
    let death_signal = number(libc::PR_SET_PDEATHSIG);
    rules.insert(libc::SYS_prctl, one_of(0, &[death_signal])?);
    if !processes {
        let thread = number(libc::CLONE_THREAD);
        let cloned = rules.entry(libc::SYS_clone).or_default();
        cloned.push(masked(0, thread, 0)?);
        #[cfg(target_arch = "x86_64")]
        for call in [libc::SYS_fork, libc::SYS_vfork] {
            rules.insert(call, Vec::new());
        }
    }
    Ok(rules)
}

/// The refused calls for the programs of a build. An overseer answers the calls in [`OVERSEEN`].
pub(super) fn rules_of_build(calls: &CallFilter) -> Built<CallRules> {
    let mut rules = rules(calls, true)?;
    for call in OVERSEEN {
        rules.remove(call);
    }
    rules.insert(
        libc::SYS_seccomp,
        vec![masked(1, NEW_LISTENER, NEW_LISTENER)?],
    );
    // Rust's standard library uses a pair of sequenced-packet sockets to start programs; these are
    // connected, too.
    let pairs = other_pairs(&[libc::SOCK_STREAM, libc::SOCK_SEQPACKET])?;
    rules.insert(libc::SYS_socketpair, pairs);
    Ok(rules)
}

/// Matches calls that create a file that runs with its owner's or group's rights.
fn making_set_id(flags: u8) -> Built<Vec<SeccompRule>> {
    let temporary = number(libc::O_TMPFILE) & !number(libc::O_DIRECTORY);
    let mut rules = Vec::new();
    for making in [number(libc::O_CREAT), temporary] {
        for bit in [0o4000, 0o2000] {
            rules.push(all([
                (flags, MaskedEq(making), making),
                (flags.saturating_add(1), MaskedEq(bit), bit),
            ])?);
        }
    }
    Ok(rules)
}

/// Matches every socket pair except connected Unix sockets of these kinds. Datagram sockets are
/// refused, since they could send to any socket with a path, also of another process.
fn other_pairs(connected: &[i32]) -> Built<Vec<SeccompRule>> {
    let mut rules = vec![when(0, Ne, number(libc::AF_UNIX))?];
    rules.extend(kinds_but(connected)?);
    Ok(rules)
}

/// Matches every socket except TCP and UDP over IP. Protocols similar to TCP are refused, since
/// Landlock has rules only for the ports of TCP.
fn other_sockets() -> Built<Vec<SeccompRule>> {
    let is_not = |argument: u8, value: i32| (argument, Ne, number(value));
    let mut rules = vec![
        all([is_not(0, libc::AF_INET), is_not(0, libc::AF_INET6)])?,
        all([0, libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(|value| is_not(2, value)))?,
    ];
    rules.extend(kinds_but(&[libc::SOCK_STREAM, libc::SOCK_DGRAM])?);
    Ok(rules)
}

fn kinds_but(allowed: &[i32]) -> Built<Vec<SeccompRule>> {
    let allowed: Vec<u64> = allowed.iter().copied().map(number).collect();
    let kinds = (0..=KINDS).filter(|kind| !allowed.contains(kind));
    kinds.map(|kind| masked(1, KINDS, kind)).collect()
}
