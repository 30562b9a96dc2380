//! The Landlock half: which paths are kept, which ports.

use std::os::fd::BorrowedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, NetPort, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, make_bitflags,
};

use rustix::fs::FileType;

use super::error::ConfineError;
use crate::seccomp::Network;

/// The newest rules that this code knows. An older kernel enforces the rules that it
/// has.
pub(super) const NEWEST: ABI = ABI::V9;

/// Reading, without executing.
pub(super) const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | ReadDir});

/// Writing, without making symbolic links, devices, pipes or sockets, which serving
/// does not need.
pub(super) const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir | MakeReg | Refer
});

/// Where names are resolved.
const DNS: u16 = 53;

/// The rules of the first layer so far.
pub(super) struct Rules(Option<RulesetCreated>);

impl Rules {
    /// Rules about files and network; about starting programs only if
    /// `programs` says so.
    pub(super) fn new(network: &Network, programs: bool) -> Result<Self, ConfineError> {
        let files = AccessFs::from_all(NEWEST);
        let handled = match programs {
            true => files,
            false => files & !AccessFs::Execute,
        };
        Self::create(network, handled)
            .map(|created| Self(Some(created)))
            .map_err(refused)
    }

    fn create(
        network: &Network,
        handled: BitFlags<AccessFs>,
    ) -> Result<RulesetCreated, RulesetError> {
        let net = match network {
            Network::Any => BitFlags::from(AccessNet::BindTcp),
            Network::None | Network::Ports(_) => AccessNet::from_all(NEWEST),
        };
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
        Ok(created)
    }

    /// Keeps `path` and everything below it.
    pub(super) fn keep(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), ConfineError> {
        self.add(path, access).map_err(|source| ConfineError::Path {
            path: path.to_owned(),
            source,
        })
    }

    /// Keeps it for reading, if it exists.
    pub(super) fn keep_if_there(&mut self, path: &Path) {
        let _ = self.add(path, READ);
    }

    /// Keeps a file for executing, if it exists.
    pub(super) fn keep_program(&mut self, path: &Path) {
        let _ = self.add(path, AccessFs::ReadFile | AccessFs::Execute);
    }

    /// Keeps a device file for reading and writing, if it exists.
    pub(super) fn keep_device(&mut self, path: &Path) {
        let _ = self.add(path, AccessFs::ReadFile | AccessFs::WriteFile);
    }

    /// Keeps an open file, or an open directory with all below.
    pub(super) fn keep_open(
        &mut self,
        file: BorrowedFd<'_>,
        access: BitFlags<AccessFs>,
    ) -> Result<(), ConfineError> {
        let kept = rustix::fs::fstat(file).map_err(|error| ConfineError::Refused(error.into()))?;
        let access = match FileType::from_raw_mode(kept.st_mode) {
            FileType::Directory => access,
            _ => access & AccessFs::from_file(NEWEST),
        };
        let created = self.0.as_mut();
        let created = created.ok_or_else(|| ConfineError::Refused("there are no rules".into()))?;
        created
            .add_rule(PathBeneath::new(file, access))
            .map_err(refused)?;
        Ok(())
    }

    fn add(
        &mut self,
        path: &Path,
        access: BitFlags<AccessFs>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let file = PathFd::new(path)?;
        let metadata = std::fs::metadata(path)?;
        let access = match metadata.is_dir() {
            true => access,
            // The kernel rejects rights of directories for a file.
            false => access & AccessFs::from_file(NEWEST),
        };
        let rules = self.0.as_mut().ok_or("there are no rules")?;
        rules.add_rule(PathBeneath::new(file, access))?;
        Ok(())
    }

    pub(super) fn apply(self) -> Result<(), ConfineError> {
        match self.0 {
            Some(created) => created.restrict_self().map(|_| ()).map_err(refused),
            None => Ok(()),
        }
    }
}

/// The second layer: nothing may be executed, and no rule makes an exception.
pub(super) fn no_programs() -> Result<(), ConfineError> {
    let apply = || {
        Ruleset::default()
            .handle_access(AccessFs::Execute)?
            .create()?
            .restrict_self()
    };
    apply().map(|_| ()).map_err(refused)
}

/// Rules that allow nothing at all.
pub(super) fn nothing() -> Result<(), RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .restrict_self()?;
    Ok(())
}

fn refused(error: RulesetError) -> ConfineError {
    ConfineError::Refused(error.into())
}
