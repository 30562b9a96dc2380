//! The confinement of the programs that a build starts: they read the system and a checkout, write to few directories,
//! start programs, and make no sockets but pairs.
//!
//! Landlock has no rules for rights and times of files, and a filter sees no paths. So an [`Overseer`], a thread of the
//! process that starts the build, is asked for each such change and does it itself, in the directories that may be
//! written only. Owners and attributes are never changed.

mod overseer;
mod rules;

use std::path::PathBuf;

pub use self::overseer::Overseer;
use self::rules::Rules;
pub use self::rules::is_available;
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
    /// Confines the calling thread, for good, with what it starts. The overseer has to
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
