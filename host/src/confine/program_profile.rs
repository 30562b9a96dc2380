//! The confinement of a program that an operator lets run outside the sandbox: its own file, the libraries of the
//! system, and the workspaces of its line; no sockets and no processes unless the line says so.

use std::os::fd::{AsFd, OwnedFd};

use landlock::AccessFs;
use seccompiler::BpfProgram;
use toolward_policy::WorkspaceAccess;

use super::error::ConfineError;
use super::landlock_rules::{READ, Rules, WRITE};
use super::network::Network;
use super::{report, seccomp, system};

/// What a program keeps.
pub(crate) struct Kept<'a, W> {
    /// The file that is executed.
    pub(crate) executed: &'a OwnedFd,
    /// A script, which its interpreter reads.
    pub(crate) read: Option<&'a OwnedFd>,
    pub(crate) workspaces: W,
    /// Whether it may make connections.
    pub(crate) network: bool,
    /// Whether it may start processes.
    pub(crate) processes: bool,
}

/// A confinement that is made and not yet applied. Applying it takes no memory.
pub(crate) struct Profile {
    rules: Rules,
    calls: Option<BpfProgram>,
}

/// What this kernel lacks to confine a program; `isolated` says whether it has a namespace of processes of its own.
///
/// # Errors
///
/// The parts that are missing, for people.
pub(crate) fn holds(isolated: bool) -> Result<(), String> {
    let missing = report::missing_for_programs(isolated);
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("missing: {}", missing.join(", "))),
    }
}

/// Makes the confinement of one program.
///
/// # Errors
///
/// If the kernel supports a part of this and fails to make it.
pub(crate) fn prepare<'a>(
    kept: &'a Kept<'a, impl Iterator<Item = (&'a OwnedFd, &'a WorkspaceAccess)> + Clone>,
) -> Result<Profile, ConfineError> {
    let network = match kept.network {
        true => Network::Any,
        false => Network::None,
    };
    let mut rules = Rules::new(&network, true)?;
    rules.keep_open(
        kept.executed.as_fd(),
        AccessFs::ReadFile | AccessFs::Execute,
    )?;
    if let Some(script) = kept.read {
        rules.keep_open(script.as_fd(), AccessFs::ReadFile.into())?;
    }
    for (directory, access) in kept.workspaces.clone() {
        let access = match access {
            WorkspaceAccess::ReadOnly => READ,
            WorkspaceAccess::ReadWrite => READ | WRITE,
        };
        rules.keep_open(directory.as_fd(), access)?;
    }
    for path in system::LOADERS {
        rules.keep_program(path.as_ref());
    }
    for path in system::LIBRARIES {
        rules.keep_if_there(path.as_ref());
    }
    if kept.network {
        for path in system::files() {
            rules.keep_if_there(&path);
        }
    }
    rules.keep_device("/dev/null".as_ref());
    for device in ["/dev/zero", "/dev/urandom", "/dev/random"] {
        rules.keep_if_there(device.as_ref());
    }
    Ok(Profile {
        rules,
        calls: seccomp::for_program(network, kept.processes)?,
    })
}

impl Profile {
    /// Confines this thread, for good.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or has no filters.
    pub(crate) fn apply(self) -> Result<(), ConfineError> {
        let refused = |what: &str| ConfineError::Incomplete(what.to_owned());
        let calls = self.calls.ok_or_else(|| refused("seccomp"))?;
        self.rules.apply()?;
        seccompiler::apply_filter(&calls).map_err(|error| ConfineError::Refused(error.into()))
    }
}
