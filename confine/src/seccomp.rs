//! The seccomp half: what Landlock has no rules for. By default a list of the
//! system calls that serving needs; everything else is refused.
//!
//! A refused call fails with `EPERM`, and the process continues. Calls that a C library
//! tries first, and does without where the kernel is older, fail with `ENOSYS`.

pub(super) mod allowed;
pub(super) mod arguments;
pub(super) mod calls;
pub(super) mod denied;
pub(super) mod filter;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use self::arguments::{Built, Rules};
pub(super) use self::calls::Calls;
pub use self::calls::SystemCalls;
use super::error::ConfineError;
use super::network::Network;

/// Under a deny-list the calls that are answered with `ENOSYS`: a C library then takes one whose flags a filter sees.
const KNOWN: [i64; 1] = [libc::SYS_clone3];

/// Likewise, where files with set-id bits must not be made: the mode of `openat2` is not seen.
const UNSEEN: [i64; 2] = [libc::SYS_clone3, libc::SYS_openat2];

impl Calls {
    /// Refuses every other call, from this thread on.
    pub(super) fn apply(&self) -> Result<(), ConfineError> {
        let built = |machine| match self.list {
            SystemCalls::AllowList => allow(allowed::rules(self)?, machine),
            SystemCalls::DenyList => deny(denied::rules(self, false)?, machine, &KNOWN),
        };
        install_built(built)
    }
}

/// Refuses the calls that are known to do harm, and all sockets, but not starting
/// programs.
pub(super) fn apply_to_broker() -> Result<(), ConfineError> {
    let calls = Calls {
        list: SystemCalls::DenyList,
        network: Network::None,
        listeners: Vec::new(),
        page_maps: Vec::new(),
    };
    install_built(|machine| deny(denied::rules(&calls, true)?, machine, &KNOWN))
}

/// The filter of a program that an operator lets run: the calls that are known to do harm, and
/// sockets and processes unless they are allowed. `None` where this code has no filters for the
/// machine.
pub(super) fn for_program(
    network: Network,
    processes: bool,
) -> Result<Option<BpfProgram>, ConfineError> {
    let Some(machine) = machine() else {
        return Ok(None);
    };
    let calls = Calls {
        list: SystemCalls::DenyList,
        network,
        listeners: Vec::new(),
        page_maps: Vec::new(),
    };
    let built =
        denied::rules_of_program(&calls, processes).and_then(|rules| deny(rules, machine, &UNSEEN));
    let built = built.map_err(|error| ConfineError::Refused(error.into()))?;
    Ok(Some(built))
}

/// Refuses the programs of a build the calls that are known to do harm, and all sockets but connected pairs.
pub(super) fn apply_to_build() -> Result<(), ConfineError> {
    let calls = Calls {
        list: SystemCalls::DenyList,
        network: Network::None,
        listeners: Vec::new(),
        page_maps: Vec::new(),
    };
    install_built(|machine| deny(denied::rules_of_build(&calls)?, machine, &UNSEEN))
}

fn install_built(built: impl FnOnce(TargetArch) -> Built<BpfProgram>) -> Result<(), ConfineError> {
    let Some(machine) = machine() else {
        return Ok(());
    };
    let program = built(machine).map_err(|error| ConfineError::Refused(error.into()))?;
    install(&program)
}

fn allow(rules: Rules, machine: TargetArch) -> Built<BpfProgram> {
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, machine)?;
    let absent = filter::Absent {
        calls: &filter::FALLS_BACK,
        newer: true,
    };
    Ok(filter::guarded(filter.try_into()?, machine, &absent))
}

fn deny(rules: Rules, machine: TargetArch, calls: &[i64]) -> Built<BpfProgram> {
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine)?;
    let absent = filter::Absent {
        calls,
        newer: false,
    };
    Ok(filter::guarded(filter.try_into()?, machine, &absent))
}

/// A filter that fails calls that are not in `rules` with `ENOSYS`.
pub(super) fn only(rules: Rules, machine: TargetArch) -> Built<BpfProgram> {
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let filter = SeccompFilter::new(rules, missing, SeccompAction::Allow, machine)?;
    let absent = filter::Absent {
        calls: &[],
        newer: false,
    };
    Ok(filter::guarded(filter.try_into()?, machine, &absent))
}

/// Installs a filter on this thread, if the kernel has filters.
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
        Err(error) => Err(ConfineError::Refused(error.into())),
    }
}

/// The machine; `None` if this code has no filters for it.
pub(super) fn machine() -> Option<TargetArch> {
    std::env::consts::ARCH.try_into().ok()
}

/// Whether this kernel has filters, and this code knows the machine.
pub(super) fn is_available() -> bool {
    machine().is_some()
        && std::fs::read_to_string("/proc/self/status")
            .is_ok_and(|status| status.lines().any(|line| line.starts_with("Seccomp:")))
}
