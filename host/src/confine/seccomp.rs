//! The seccomp half: what Landlock has no rules for. A list of calls that are
//! refused, since what a runtime needs differs from system to system.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use super::{ConfineError, Network};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

/// Starting programs: refused beside the second layer of Landlock.
const PROGRAMS: [i64; 2] = [libc::SYS_execve, libc::SYS_execveat];

/// Calls that serving guests never takes. `io_uring` stands here because it makes
/// sockets without asking this filter.
const NEVER: [i64; 39] = [
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
];

/// Refuses those calls, and the sockets that `network` does not name, from this
/// thread on; starting programs only if `programs` is false.
pub(super) fn apply(network: &Network, programs: bool) -> Result<(), ConfineError> {
    let Some(machine) = machine() else {
        return Ok(());
    };
    let program = program(network, programs, machine);
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

fn program(network: &Network, programs: bool, machine: TargetArch) -> Built<BpfProgram> {
    let mut rules: Rules = NEVER.into_iter().map(|call| (call, Vec::new())).collect();
    if !programs {
        rules.extend(PROGRAMS.map(|call| (call, Vec::new())));
    }
    let sockets = match network {
        // No condition: always refused.
        Network::None => Vec::new(),
        Network::Ports(_) | Network::Any => other_sockets()?,
    };
    rules.insert(libc::SYS_socket, sockets);
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        machine,
    )?
    .try_into()
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
        let is = SeccompCondition::new(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(number(kinds)),
            number(kind),
        )?;
        rules.push(SeccompRule::new(vec![is])?);
    }
    Ok(rules)
}
