//! The seccomp half: what Landlock has no rules for. A list of calls that are
//! refused, since what a runtime needs differs from system to system.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::{ConfineError, Network};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

/// Starting programs: refused beside the second layer of Landlock.
const PROGRAMS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Calls that serving guests never takes. `io_uring` stands here because it makes
/// sockets without asking this filter.
const NEVER: [i64; 53] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Without an address, `listen` takes a free port, which no rule names.
    libc::SYS_listen,
    // Shared with all processes of the user, and in no namespace of files.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that take a connection, from the socket that is their first argument.
const ACCEPTING: [i64; 2] = [libc::SYS_accept, libc::SYS_accept4];

/// Requests that write into the input of a terminal, as if somebody had typed: one
/// that was inherited is open, and a shell reads from it later.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Calls that take `MSG_FASTOPEN`, and the argument with it: they connect, and
/// Landlock is not asked.
const SENDING: [(i64, u8); 3] = [
    (libc::SYS_sendto, 3),
    (libc::SYS_sendmsg, 2),
    (libc::SYS_sendmmsg, 3),
];
const FAST_OPEN: u64 = 0x2000_0000;

/// What the numbers of the x32 calls have in common. They are the same calls on
/// the same machine, so that a list of numbers alone lets them pass.
const X32: u32 = 0x4000_0000;

/// Refuses those calls, and the sockets that `network` does not name, from this
/// thread on; starting programs only if `programs` is false. Connections are taken
/// from the one socket `listener`, which listens already, or from none.
pub(super) fn apply(
    network: &Network,
    listener: Option<i32>,
    programs: bool,
) -> Result<(), ConfineError> {
    let Some(machine) = machine() else {
        return Ok(());
    };
    let program = program(network, listener, programs, machine);
    let program = program.map_err(|error| ConfineError::Refused(error.to_string()))?;
    install(&program)
}

/// Puts a filter over this thread, where the kernel has filters.
pub(super) fn install(program: &BpfProgram) -> Result<(), ConfineError> {
    match seccompiler::apply_filter(program) {
        Ok(()) => Ok(()),
        Err(seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error))
            if [libc::EINVAL, libc::ENOSYS]
                .map(Some)
                .contains(&error.raw_os_error()) =>
        {
            Ok(())
        }
        Err(error) => Err(ConfineError::Refused(error.to_string())),
    }
}

/// The machine, where this code knows how to write filters for it.
pub(super) fn machine() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// Whether this kernel has filters, and this code knows the machine.
pub(super) fn is_available() -> bool {
    machine().is_some()
        && std::fs::read_to_string("/proc/self/status")
            .is_ok_and(|status| status.lines().any(|line| line.starts_with("Seccomp:")))
}

fn program(
    network: &Network,
    listener: Option<i32>,
    programs: bool,
    machine: TargetArch,
) -> Built<BpfProgram> {
    let mut rules: Rules = NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    if !programs {
        rules.extend(PROGRAMS.map(|call| (call, Vec::new())));
    }
    for call in ACCEPTING {
        let others = match listener {
            Some(listener) => {
                let listener = u64::from(listener.cast_unsigned());
                vec![when(0, SeccompCmpOp::Ne, listener)?]
            }
            None => Vec::new(),
        };
        rules.insert(call, others);
    }
    let sockets = match network {
        // No condition: always refused.
        Network::None => Vec::new(),
        Network::Ports(_) | Network::Any => other_sockets()?,
    };
    rules.insert(libc::SYS_socket, sockets);
    // The kernel looks at the lower half of a request.
    let typing = TYPING.map(|request| when(1, SeccompCmpOp::Eq, request));
    rules.insert(
        libc::SYS_ioctl,
        typing.into_iter().collect::<Built<Vec<_>>>()?,
    );
    for (call, flags) in SENDING {
        let rule = when(flags, SeccompCmpOp::MaskedEq(FAST_OPEN), FAST_OPEN)?;
        rules.insert(call, vec![rule]);
    }
    // The limits of another process can end it; nought is this one.
    let others = when(0, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![others]);
    let program = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        machine,
    )?
    .try_into()?;
    Ok(match machine {
        TargetArch::x86_64 => without_x32(program),
        _ => program,
    })
}

/// A rule about the lower half of one argument.
pub(super) fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Built<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)?;
    SeccompRule::new(vec![condition])
}

/// Puts before `program` that calls with such a number are refused. Jumps are
/// relative, so that its own stay right.
fn without_x32(program: BpfProgram) -> BpfProgram {
    let instruction = |code: u32, if_true, if_false, operand| sock_filter {
        // The codes are bits of the lower half.
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: operand,
    };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let mut whole = vec![
        // The number is what a filter is shown first.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, refused),
    ];
    whole.extend(program);
    whole
}

/// Every socket but TCP and UDP over IP: Landlock knows the ports of TCP alone,
/// so that nothing may look like it and be something else.
fn other_sockets() -> Built<Vec<SeccompRule>> {
    let number = |number: i32| u64::from(number.cast_unsigned());
    let is_not = |argument: u8, value: i32| {
        SeccompCondition::new(
            argument,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            number(value),
        )
    };
    let mut rules = vec![
        SeccompRule::new(vec![is_not(0, libc::AF_INET)?, is_not(0, libc::AF_INET6)?])?,
        SeccompRule::new(vec![
            is_not(2, 0)?,
            is_not(2, libc::IPPROTO_TCP)?,
            is_not(2, libc::IPPROTO_UDP)?,
        ])?,
    ];
    // The kinds of sockets are few, and share their number with flags.
    let kinds = 0xf;
    for kind in (0..=kinds).filter(|kind| ![libc::SOCK_STREAM, libc::SOCK_DGRAM].contains(kind)) {
        let kinds = SeccompCmpOp::MaskedEq(number(kinds));
        rules.push(when(1, kinds, number(kind))?);
    }
    Ok(rules)
}
