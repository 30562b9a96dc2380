//! The confinement of the programs that a build starts: they can read the system and a checkout,
//! write to a few directories, start programs, and make no sockets except connected pairs.
//!
//! Landlock has no rules for modes and times of files, and a system-call filter sees no paths. So
//! each change of a mode or a time is passed to an [`Overseer`], a thread of the process that
//! starts the build. The overseer makes the change itself, but only in directories that may be
//! written. Owners and attributes can't be changed.
//!
//! A rule of Landlock can allow access but not refuse it, and a rule for a directory applies to
//! everything below it. So a directory with a private path below it is allowed entry by entry.

mod overseer;

use std::path::{Path, PathBuf};

use landlock::{ABI, AccessFs, BitFlags, RulesetStatus, make_bitflags};

pub use self::overseer::Overseer;
use crate::ConfineError;
use crate::landlock_rules::Rules;
use crate::report;
use crate::seccomp::{self, Network};

/// The paths that the programs of a build may access. Paths that can't be opened are left out.
#[derive(Debug, Clone, Default)]
pub struct BuildProfile {
    /// Paths that stay inaccessible even if a directory above is allowed. No component of a private
    /// path may be a symbolic link.
    pub private: Vec<PathBuf>,
    /// Paths that may be read and executed, with everything below.
    pub read: Vec<PathBuf>,
    /// Paths that may also be written.
    pub write: Vec<PathBuf>,
}

impl BuildProfile {
    /// Confines the calling thread permanently, and everything that it starts. Call
    /// [`Overseer::watch`] on the result from a thread that is not confined.
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
        // Until rules are added, this allows no files, no TCP, and no signals to processes outside
        // this confinement.
        let mut rules = Rules::new(&Network::None, true)?;
        for (paths, access) in [(&self.read, READ), (&self.write, WRITE)] {
            for path in paths.iter().filter_map(|path| path.canonicalize().ok()) {
                self.allow(&mut rules, &path, access);
            }
        }
        rules.keep_if_there(DEVICES, DEVICE);
        if let RulesetStatus::NotEnforced = rules.apply()? {
            let refused = "the kernel enforces none of the rules";
            return Err(ConfineError::Refused(refused.into()));
        }
        // Must come first, since the filter of `apply_to_build` refuses new listeners.
        let overseer = Overseer::listen(write, self.private.clone())?;
        seccomp::apply_to_build()?;
        Ok(overseer)
    }

    /// Allows a canonical path and everything below it, except private paths.
    fn allow(&self, rules: &mut Rules, path: &Path, access: BitFlags<AccessFs>) {
        if self.private.iter().any(|private| private == path) {
            return;
        }
        if !self.private.iter().any(|private| private.starts_with(path)) {
            return rules.keep_if_there([path], access);
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            // Links are skipped: a link could lead to a private path, and needs no access itself.
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.allow(rules, &entry.path(), access);
            }
        }
    }
}

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

/// All kinds of access, except the kinds for devices and sockets.
const WRITE: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    Execute | ReadFile | ReadDir | WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir
        | MakeReg | MakeSym | MakeFifo | Refer
});

/// The devices that compilers use. Terminals are left out, since a program could type into them.
const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

const DEVICE: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

/// Whether this kernel has Landlock.
pub fn is_available() -> bool {
    report::landlock() != ABI::Unsupported
}
