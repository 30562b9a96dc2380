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

use landlock::{ABI, AccessFs, BitFlags, RulesetStatus, make_bitflags};

pub use self::overseer::Overseer;
use crate::ConfineError;
use crate::landlock_rules::Rules;
use crate::report;
use crate::seccomp::{self, Network};

/// What the programs of a build reach. Paths that can't be opened are left out.
#[derive(Debug, Clone, Default)]
pub struct BuildProfile {
    /// What no directory above it gives access to; without links.
    pub private: Vec<PathBuf>,
    /// Read and executed, with all below.
    pub read: Vec<PathBuf>,
    /// Also written.
    pub write: Vec<PathBuf>,
}

impl BuildProfile {
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
        // No file, no TCP, and no process that was not started under these rules.
        let mut rules = Rules::new(&Network::None, true)?;
        for (paths, access) in [(&self.read, READ), (&self.write, WRITE)] {
            for path in paths.iter().filter_map(|path| path.canonicalize().ok()) {
                self.allow(&mut rules, &path, access);
            }
        }
        rules.keep_each(DEVICES, DEVICE);
        if let RulesetStatus::NotEnforced = rules.apply()? {
            let refused = "the kernel enforces none of the rules";
            return Err(ConfineError::Refused(refused.into()));
        }
        // Before the filter that refuses a second listener.
        let overseer = Overseer::listen(write, self.private.clone())?;
        seccomp::apply_to_build()?;
        Ok(overseer)
    }

    /// Allows what lies at and below a path without links, except what is private.
    fn allow(&self, rules: &mut Rules, path: &Path, access: BitFlags<AccessFs>) {
        if self.private.iter().any(|private| private == path) {
            return;
        }
        if !self.private.iter().any(|private| private.starts_with(path)) {
            return rules.keep_if_there(path, access);
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            // A link could lead to what is private, and has no rights itself.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.allow(rules, &entry.path(), access);
            }
        }
    }
}

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
    report::landlock() != ABI::Unsupported
}
