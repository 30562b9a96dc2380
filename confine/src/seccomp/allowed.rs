//! The allow-list: the system calls of a serving process, in groups with reasons.
//!
//! The list comes from running the host. Other kernels, C libraries and machines make other calls,
//! so it also comes from reading the sources of the host's dependencies.

use seccompiler::SeccompCmpOp::{Eq, MaskedEq};
use seccompiler::SeccompRule;

use super::arguments::{
    Built, CallRules, Calls, FAST_OPEN, KINDS, SENDING, SET_ID, all, always, calls, fcntl, itself,
    masked, not_writable_and_executable, null, number, one_of, other_than, prctl, thread,
};
use super::{CallFilter, Network};

/// Calls that belong together.
///
/// ```
/// for group in toolward_confine::ALLOWED_CALLS {
///     println!("{}: {} calls, for {}", group.name, group.calls.len(), group.why);
/// }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The group's subject.
    pub name: &'static str,
    /// The parts of the host that need the calls.
    pub why: &'static str,
    /// The calls: their Linux names, and their numbers on this machine.
    pub calls: Calls,
}

/// All groups. Some of these calls are allowed only with some arguments.
pub const GROUPS: &[Group] = &[
    Group {
        name: "open files",
        why: "the streams, files of workspaces, SQLite, memory images (`ftruncate`, `fcntl` seals), locks",
        calls: calls![
            SYS_read SYS_write SYS_readv SYS_writev SYS_pread64 SYS_pwrite64 SYS_preadv
            SYS_pwritev SYS_preadv2 SYS_pwritev2 SYS_lseek SYS_close SYS_fstat SYS_fstatfs
            SYS_ftruncate SYS_fallocate SYS_fsync SYS_fdatasync SYS_flock SYS_fcntl SYS_fchmod
            SYS_utimensat SYS_ioctl SYS_dup SYS_dup3 SYS_pipe2 SYS_getdents64
            ; x86_64: SYS_dup2 SYS_pipe
        ],
    },
    Group {
        name: "paths",
        why: "workspaces, buckets, the cache, configuration that is read again: Landlock has the say which",
        calls: calls![
            SYS_openat SYS_openat2 SYS_newfstatat SYS_statx SYS_faccessat SYS_faccessat2
            SYS_readlinkat SYS_mkdirat SYS_unlinkat SYS_renameat2 SYS_getcwd
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] SYS_renameat
            ; x86_64: SYS_open SYS_stat SYS_lstat SYS_access SYS_readlink SYS_mkdir SYS_rmdir
            SYS_unlink SYS_rename
        ],
    },
    Group {
        name: "memory",
        why: "the allocator, the engine's pool and code, SQLite's shared memory",
        calls: calls![
            SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_brk SYS_memfd_create
            SYS_membarrier
        ],
    },
    Group {
        name: "threads",
        why: "the runtime's workers, and threads for what blocks",
        calls: calls![
            SYS_clone SYS_futex SYS_set_robust_list SYS_rseq SYS_set_tid_address SYS_sched_yield
            SYS_sched_getaffinity SYS_sched_getparam SYS_sched_getscheduler SYS_getcpu SYS_exit
            SYS_exit_group SYS_prctl
        ],
    },
    Group {
        name: "signals",
        why: "traps of guests (the engine's handlers), the end of the process and of the broker, `abort`",
        calls: calls![
            SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_tgkill
            SYS_restart_syscall SYS_wait4
        ],
    },
    Group {
        name: "waiting and time",
        why: "the runtime's events, timers, and SQLite's waiting for a lock",
        calls: calls![
            SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
            SYS_ppoll SYS_pselect6 SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep
            SYS_nanosleep SYS_gettimeofday
            ; x86_64: SYS_time SYS_poll SYS_select SYS_epoll_wait
        ],
    },
    Group {
        name: "the network",
        why: "`serve --http`, outgoing HTTP, name resolution, the connection to the broker, and the \
              runtime's own pair of sockets for signals",
        calls: calls![
            SYS_socket SYS_socketpair SYS_connect SYS_bind SYS_accept SYS_accept4 SYS_shutdown
            SYS_getsockname SYS_getpeername SYS_getsockopt SYS_setsockopt SYS_sendto SYS_sendmsg
            SYS_sendmmsg SYS_recvfrom SYS_recvmsg SYS_recvmmsg
        ],
    },
    Group {
        name: "about itself",
        why: "who owns a file of state, random numbers, the size of the stack, the host's name for the \
              resolver; all but `prlimit64` only tell",
        calls: calls![
            SYS_getpid SYS_gettid SYS_getppid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid
            SYS_getrandom SYS_uname SYS_sysinfo SYS_getrusage SYS_times SYS_prlimit64
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] SYS_getrlimit
        ],
    },
];

/// The allowed requests of `ioctl`. They are about a descriptor (waiting, closing, readable bytes),
/// the index of a network interface (for a resolver's address with a scope), or a terminal's modes
/// and size (for questions of the command `call`). Requests that type into a terminal are never
/// allowed.
const REQUESTS: [u64; 15] = [
    0x5421,      // FIONBIO
    0x5451,      // FIOCLEX
    0x5450,      // FIONCLEX
    0x541b,      // FIONREAD
    0x8933,      // SIOCGIFINDEX
    0x5401,      // TCGETS
    0x5402,      // TCSETS
    0x5403,      // TCSETSW
    0x5404,      // TCSETSF
    0x802c_542a, // TCGETS2
    0x402c_542b, // TCSETS2
    0x402c_542c, // TCSETSW2
    0x402c_542d, // TCSETSF2
    0x540b,      // TCFLSH
    0x5413,      // TIOCGWINSZ
];

/// The request for the written pages (`PAGEMAP_SCAN`).
const WRITTEN_PAGES: u64 = 0xc060_6610;

/// Calls that read from or duplicate their first argument, a descriptor.
const READING: Calls = calls![
    SYS_read SYS_readv SYS_pread64 SYS_preadv SYS_preadv2 SYS_dup SYS_dup3; x86_64: SYS_dup2
];

/// Allowed advice about this process's own memory. Advice that takes pages from the whole machine
/// (`MADV_HWPOISON`, `MADV_SOFT_OFFLINE`) is not included.
const ADVICE: [u64; 17] = [
    0,   // MADV_NORMAL
    1,   // MADV_RANDOM
    2,   // MADV_SEQUENTIAL
    3,   // MADV_WILLNEED
    4,   // MADV_DONTNEED
    8,   // MADV_FREE
    10,  // MADV_DONTFORK
    11,  // MADV_DOFORK
    14,  // MADV_HUGEPAGE
    15,  // MADV_NOHUGEPAGE
    16,  // MADV_DONTDUMP
    17,  // MADV_DODUMP
    20,  // MADV_COLD
    22,  // MADV_POPULATE_READ
    23,  // MADV_POPULATE_WRITE
    102, // MADV_GUARD_INSTALL: the stacks of glibc 2.42
    103, // MADV_GUARD_REMOVE
];

/// Allowed commands of `membarrier`, about this process's own threads. Some machines need them
/// after code generation.
const BARRIERS: [u64; 7] = [0, 8, 16, 32, 64, 128, 256];

/// The socket options, by level, that HTTP, the runtime and resolvers set. Options for filters,
/// devices and marks are not included.
const OPTIONS: [(i32, i32); 18] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (libc::SOL_SOCKET, libc::SO_SNDBUF),
    (libc::SOL_SOCKET, libc::SO_RCVBUF),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (libc::IPPROTO_IP, libc::IP_RECVERR),
    (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER),
];

/// The rules for a process that serves.
pub(super) fn rules(calls: &CallFilter) -> Built<CallRules> {
    let mut rules: CallRules = GROUPS
        .iter()
        .flat_map(|group| always(group.calls))
        .collect();
    for (call, cases) in conditions(calls)? {
        // An empty list means that the call is never allowed. In a filter, it would mean always.
        match cases.is_empty() {
            true => rules.remove(&call),
            false => rules.insert(call, cases),
        };
    }
    Ok(rules)
}

/// Calls that are allowed only under conditions. A call with an empty list here is never allowed.
fn conditions(calls: &CallFilter) -> Built<Vec<(i64, Vec<SeccompRule>)>> {
    let without =
        |argument, bits| Ok::<_, seccompiler::BackendError>(vec![masked(argument, bits, 0)?]);
    let mut conditions = vec![
        (libc::SYS_fcntl, fcntl(&calls.page_maps)?),
        (libc::SYS_ioctl, requests(&calls.page_maps)?),
        (libc::SYS_prctl, prctl()?),
        (libc::SYS_mmap, not_writable_and_executable()?),
        (libc::SYS_mprotect, not_writable_and_executable()?),
        (libc::SYS_madvise, one_of(2, &ADVICE)?),
        (libc::SYS_membarrier, one_of(0, &BARRIERS)?),
        (libc::SYS_clone, thread()?),
        (libc::SYS_tgkill, itself()?),
        // 0 is this process.
        (libc::SYS_prlimit64, one_of(0, &[0])?),
        (libc::SYS_fchmod, without(1, SET_ID)?),
        (libc::SYS_openat, opening(2)?),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, opening(1)?),
        // Only without a path: then the call changes an open file.
        (libc::SYS_utimensat, null(1, Eq)?),
        (libc::SYS_socketpair, vec![stream_pair()?]),
        (libc::SYS_setsockopt, options()?),
    ];
    for (call, flags) in SENDING {
        conditions.push((call, without(flags, FAST_OPEN)?));
    }
    // Without page maps, no descriptor needs protection, and a rule without conditions can't be
    // made.
    if !calls.page_maps.is_empty() {
        for (_, call) in READING {
            let others = SeccompRule::new(other_than(0, &calls.page_maps)?)?;
            conditions.push((*call, vec![others]));
        }
    }
    let listeners: Vec<u64> = calls.listeners.iter().copied().map(number).collect();
    for call in [libc::SYS_accept, libc::SYS_accept4] {
        conditions.push((call, one_of(0, &listeners)?));
    }
    match calls.network {
        Network::None => {
            let none = [libc::SYS_socket, libc::SYS_connect, libc::SYS_bind];
            conditions.extend(none.map(|call| (call, Vec::new())));
        }
        Network::Ports(_) | Network::Any => conditions.push((libc::SYS_socket, sockets()?)),
    }
    Ok(conditions)
}

/// The allowed requests: some for any descriptor, and the request for written pages for page maps.
fn requests(page_maps: &[i32]) -> Built<Vec<SeccompRule>> {
    let mut rules = one_of(1, &REQUESTS)?;
    for descriptor in page_maps {
        rules.push(all([(0, Eq, number(*descriptor)), (1, Eq, WRITTEN_PAGES)])?);
    }
    Ok(rules)
}

/// Allows opening, but not creating a file that runs with its owner's or group's rights. The mode
/// is checked only if the call may create a file.
fn opening(flags: u8) -> Built<Vec<SeccompRule>> {
    let making = number(libc::O_CREAT) | (number(libc::O_TMPFILE) & !number(libc::O_DIRECTORY));
    Ok(vec![
        masked(flags, making, 0)?,
        masked(flags.saturating_add(1), SET_ID, 0)?,
    ])
}

/// Allows a pair of connected Unix stream sockets. Datagram sockets are not allowed, since they
/// could send to any socket with a path, also of another process.
fn stream_pair() -> Built<SeccompRule> {
    all([
        (0, Eq, number(libc::AF_UNIX)),
        (1, MaskedEq(KINDS), number(libc::SOCK_STREAM)),
    ])
}

/// Allows TCP and UDP over IP. Protocols similar to TCP are not allowed, since Landlock has rules
/// only for the ports of TCP.
fn sockets() -> Built<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM] {
            for protocol in [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP] {
                rules.push(all([
                    (0, Eq, number(family)),
                    (1, MaskedEq(KINDS), number(kind)),
                    (2, Eq, number(protocol)),
                ])?);
            }
        }
    }
    Ok(rules)
}

fn options() -> Built<Vec<SeccompRule>> {
    let options = OPTIONS.into_iter();
    let rules = options.map(|(level, name)| all([(1, Eq, number(level)), (2, Eq, number(name))]));
    rules.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::SystemCalls;

    #[test]
    fn each_call_stands_in_one_group_and_each_condition_is_on_one_of_them() {
        let all: Vec<i64> = GROUPS
            .iter()
            .flat_map(|group| group.calls.iter().map(|(_, call)| *call))
            .collect();
        let distinct: BTreeSet<i64> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
        let calls = CallFilter {
            list: SystemCalls::AllowList,
            network: Network::Any,
            listeners: vec![3],
            page_maps: vec![4],
        };
        for (call, cases) in conditions(&calls).unwrap() {
            assert!(distinct.contains(&call), "{call}");
            assert!(!cases.is_empty(), "{call}");
        }
        assert!(rules(&calls).unwrap().len() == all.len());
    }

    #[test]
    fn what_is_not_granted_is_not_allowed_at_all() {
        let calls = CallFilter::new(SystemCalls::AllowList, Network::None);
        let rules = rules(&calls).unwrap();
        for call in [
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_bind,
            libc::SYS_accept,
            libc::SYS_accept4,
        ] {
            assert!(!rules.contains_key(&call), "{call}");
        }
    }
}
