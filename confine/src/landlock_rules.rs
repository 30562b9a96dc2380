//! The Landlock rules: the paths and ports that a confined process may still use.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};
use rustix::fs::FileType;

use crate::ConfineError;
use crate::seccomp::Network;

/// The newest Landlock version that this code supports. An older kernel enforces only the kinds of
/// rules that it knows.
pub(super) const NEWEST: ABI = ABI::V9;

/// The right to read, without executing.
pub(super) const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// The right to write, without making symbolic links, devices, pipes or sockets, which serving does
/// not need.
pub(super) const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir | MakeReg | Refer
});

/// The right to read and execute one file.
pub(super) const PROGRAM: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | Execute});

/// The right to read and write a device.
pub(super) const DEVICE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile});

/// The port for name resolution.
const DNS: u16 = 53;

/// Rules that are not applied yet.
pub(super) struct Rules(RulesetCreated);

impl Rules {
    /// Rules that restrict files, the network, signals to other processes and, if `programs` is
    /// true, the execution of programs.
    pub(super) fn new(network: &Network, programs: bool) -> Result<Self, ConfineError> {
        let files = AccessFs::from_all(NEWEST);
        let handled = match programs {
            true => files,
            false => files & !AccessFs::Execute,
        };
        let net = match network {
            Network::Any => BitFlags::from(AccessNet::BindTcp),
            Network::None | Network::Ports(_) => AccessNet::from_all(NEWEST),
        };
        let create = || {
            let mut created = Ruleset::default()
                .handle_access(handled)?
                .handle_access(net)?
                .scope(Scope::from_all(NEWEST))?
                .create()?;
            if let Network::Ports(ports) = network {
                for port in ports.iter().copied().chain([DNS]) {
                    created = created.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
                }
            }
            Ok(Self(created))
        };
        create().map_err(refused)
    }

    /// Keeps this access to `path` and everything below it.
    pub(super) fn keep(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), ConfineError> {
        self.add(path, access)
            .map_err(|source| ConfineError::Path(path.to_owned(), source))
    }

    /// As [`Rules::keep`], for each path that exists and accepts a rule. Some automatic mounts
    /// accept no rules.
    pub(super) fn keep_if_there(
        &mut self,
        paths: impl IntoIterator<Item: AsRef<Path>>,
        access: BitFlags<AccessFs>,
    ) {
        for path in paths {
            let _ = self.add(path.as_ref(), access);
        }
    }

    /// Keeps this access to an open file, or to an open directory and everything below it.
    pub(super) fn keep_open(
        &mut self,
        file: BorrowedFd<'_>,
        access: BitFlags<AccessFs>,
    ) -> Result<(), ConfineError> {
        let kept = rustix::fs::fstat(file).map_err(|error| ConfineError::Refused(error.into()))?;
        let is_directory = FileType::from_raw_mode(kept.st_mode) == FileType::Directory;
        self.add_open(file, is_directory, access).map_err(refused)
    }

    fn add(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let file = PathFd::new(path)?;
        let is_directory = std::fs::metadata(path)?.is_dir();
        Ok(self.add_open(file, is_directory, access)?)
    }

    fn add_open(
        &mut self,
        file: impl AsFd,
        is_directory: bool,
        access: BitFlags<AccessFs>,
    ) -> Result<(), RulesetError> {
        let access = match is_directory {
            true => access,
            // The kernel rejects directory rights for a file.
            false => access & AccessFs::from_file(NEWEST),
        };
        (&mut self.0)
            .add_rule(PathBeneath::new(file, access))
            .map(|_| ())
    }

    /// Applies the rules to this thread, and returns how far the kernel enforces them.
    pub(super) fn apply(self) -> Result<RulesetStatus, ConfineError> {
        let status = self.0.restrict_self().map_err(refused)?;
        Ok(status.ruleset)
    }
}

/// Applies the second layer of a process that runs guests: no file may be executed.
pub(super) fn no_programs() -> Result<(), ConfineError> {
    let apply = || {
        Ruleset::default()
            .handle_access(AccessFs::Execute)?
            .create()?
            .restrict_self()
    };
    apply().map(|_| ()).map_err(refused)
}

fn refused(error: RulesetError) -> ConfineError {
    ConfineError::Refused(error.into())
}
