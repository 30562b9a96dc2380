//! The confinement of the programs that a build starts: they read the system and a checkout, write to few directories,
//! start programs, and make no sockets but pairs.
//!
//! Landlock has no rules for rights and times of files, and a filter sees no paths. So an [`Overseer`], a thread of the
//! process that starts the build, is asked for each such change and does it itself, in the directories that may be
//! written only. Owners and attributes are never changed.
//!
//! Landlock's rules only allow, and a rule for a directory holds for all below it. So a directory with something private
//! below is opened entry by entry.

mod overseer;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictSelf,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    make_bitflags,
};

pub use self::overseer::Overseer;
use crate::error::ConfineError;
use crate::seccomp;

/// What the programs of a build reach. Paths that can't be opened are left out.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// What no directory above it gives access to; without links.
    pub private: Vec<PathBuf>,
    /// Read and executed, with all below.
    pub read: Vec<PathBuf>,
    /// Also written.
    pub write: Vec<PathBuf>,
}

impl Kept {
    /// Confines the calling thread permanently, with what it starts. The overseer has to
    /// [watch](Overseer::watch) from a thread that is not confined.
    ///
    /// # Errors
    ///
    /// [`ConfineError::Refused`] if the kernel enforces no rules, or refuses some.
    pub fn apply(&self) -> Result<Overseer, ConfineError> {
        let write = self
            .write
            .iter()
            .filter_map(|path| path.canonicalize().ok());
        let write = write.filter(|path| !self.private.contains(path)).collect();
        let mut rules = Rules::new(self.private.clone())
            .map_err(|error| ConfineError::Refused(error.into()))?;
        for path in &self.read {
            rules.read(path);
        }
        for path in &self.write {
            rules.write(path);
        }
        rules.devices();
        rules.apply().map_err(ConfineError::Refused)?;
        // Before the filter that refuses a second listener.
        let overseer = Overseer::listen(write, self.private.clone())?;
        seccomp::apply_to_build()?;
        Ok(overseer)
    }
}

/// The newest rules that this code knows. An older kernel enforces the rules that it has.
const NEWEST: ABI = ABI::V9;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

/// All but devices and sockets.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    Execute | ReadFile | ReadDir | WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir
        | MakeReg | MakeSym | MakeFifo | Refer
});

/// The devices that compilers use; no terminal, which could be typed into.
const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

const DEVICE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// Whether this kernel has such rules.
pub fn is_available() -> bool {
    // Without a flag this only asks which rules there are.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    status.is_ok_and(|status| matches!(status.landlock, LandlockStatus::Available { .. }))
}

/// The rules so far. What can't be opened is not allowed.
struct Rules {
    created: RulesetCreated,
    private: Vec<PathBuf>,
}

impl Rules {
    /// Rules that allow no file, no TCP, and no process that was not started under them.
    /// `private`, without links, are what a rule for a directory above does not allow.
    fn new(private: Vec<PathBuf>) -> Result<Self, RulesetError> {
        let created = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?;
        Ok(Self { created, private })
    }

    /// Allows reading and executing.
    fn read(&mut self, path: &Path) {
        self.allow_resolved(path, READ);
    }

    /// Allows reading, executing and writing.
    fn write(&mut self, path: &Path) {
        self.allow_resolved(path, WRITE);
    }

    /// Allows the devices that do no harm.
    fn devices(&mut self) {
        for device in DEVICES {
            self.add(Path::new(device), DEVICE);
        }
    }

    fn apply(self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match self.created.restrict_self()?.ruleset {
            RulesetStatus::NotEnforced => Err("the kernel enforces none of the rules".into()),
            _ => Ok(()),
        }
    }

    fn allow_resolved(&mut self, path: &Path, access: BitFlags<AccessFs>) {
        if let Ok(path) = path.canonicalize() {
            self.allow(&path, access);
        }
    }

    /// Allows what lies at and below a path without links, except what is private.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) {
        if self.private.iter().any(|private| private == path) {
            return;
        }
        if !self.private.iter().any(|private| private.starts_with(path)) {
            return self.add(path, access);
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            // A link could lead to what is private, and has no rights itself.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.allow(&entry.path(), access);
            }
        }
    }

    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) {
        let Ok(metadata) = path.metadata() else {
            return;
        };
        let access = match metadata.is_dir() {
            true => access,
            // The kernel rejects rights of directories for a file.
            false => access & AccessFs::from_file(NEWEST),
        };
        if let Ok(file) = PathFd::new(path) {
            // Some kinds of files, such as mounts that are made on demand, take no rules.
            let _ = (&mut self.created).add_rule(PathBeneath::new(file, access));
        }
    }
}
