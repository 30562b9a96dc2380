//! What each language does for a build.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::World;

use super::error::BuildError;
use super::program::{Scratch, Wanted};
use super::tool::{Tool, run};
use super::{BuildOptions, BuildProgress};

/// Builds drivers in one language with the tools that its own package manager installs.
pub(super) trait BuildLanguage: Sync {
    /// The program that a build starts, for people.
    fn program(&self) -> &'static str;

    /// Whether another build of the same source gives the same bytes.
    fn is_reproducible(&self) -> bool {
        true
    }

    /// The tools for bundles in `directory`, in words, or which is missing.
    fn look(&self, options: &BuildOptions, directory: &Path) -> Result<String, BuildError>;

    /// Makes a core module or a component of the source.
    fn build(&self, job: &mut BuildJob<'_>) -> Result<BuildOutput, BuildError>;
}

/// A source to build.
pub(super) struct BuildJob<'a> {
    /// The source's name for the user.
    pub(super) from: &'a str,
    pub(super) source: &'a Path,
    pub(super) world: World,
    pub(super) snapshot: bool,
    pub(super) scratch: &'a Scratch,
    pub(super) options: &'a BuildOptions,
    pub(super) progress: &'a mut dyn FnMut(BuildProgress<'_>),
}

impl BuildJob<'_> {
    pub(super) fn find(&self, wanted: &Wanted) -> Result<PathBuf, BuildError> {
        self.options.tools.find(wanted, self.scratch.bundle())
    }

    pub(super) fn tool(&self, program: &Path) -> Tool {
        Tool::new(program, self.scratch, self.options)
    }

    /// Runs a tool, and reports what it prints.
    pub(super) fn run(&mut self, tool: Tool) -> Result<(), BuildError> {
        run(tool, self.from, self.progress)
    }
}

/// A file that tools made, and how they name themselves.
pub(super) struct BuildOutput {
    pub(super) file: PathBuf,
    pub(super) compilers: Vec<String>,
}
