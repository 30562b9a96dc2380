//! No sockets, which Landlock has few rules for. Datagrams would carry away what a build
//! reads, and over its socket the session's service manager starts programs for anyone
//! who asks. Pairs of sockets stay: Node.js talks through them to what it starts.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter, SeccompRule};

/// What the numbers of the x32 calls have in common.
const X32: i64 = 0x4000_0000;

/// Refuses new sockets to this thread and to what it starts, where the kernel has filters
/// of system calls.
pub(super) fn forbid() -> Result<(), Error> {
    let Ok(machine) = std::env::consts::ARCH.try_into() else {
        return Ok(());
    };
    let calls = [
        libc::SYS_socket,
        // It makes sockets, too.
        libc::SYS_io_uring_setup,
    ];
    // No rules for the arguments: whatever they are.
    let rules: BTreeMap<i64, Vec<SeccompRule>> = calls
        .into_iter()
        .flat_map(|call| [call, call | X32])
        .map(|call| (call, Vec::new()))
        .collect();
    let refused = SeccompAction::Errno(libc::EACCES.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine)?;
    let program: BpfProgram = filter.try_into()?;
    match seccompiler::apply_filter(&program) {
        Err(Error::Prctl(error) | Error::Seccomp(error))
            if [libc::EINVAL, libc::ENOSYS]
                .map(Some)
                .contains(&error.raw_os_error()) =>
        {
            Ok(())
        }
        applied => applied,
    }
}
