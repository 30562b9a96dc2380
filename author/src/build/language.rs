//! A driver's language: how `build` builds its sources, and what `toolward new` writes for it.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::World;

use super::error::BuildError;
use super::program::{Scratch, Wanted};
use super::tool::{Tool, run};
use super::{BuildOptions, BuildProgress};

type Look = fn(&BuildOptions, &Path) -> Result<String, BuildError>;

/// How drivers in one language are built, with tools that the language's package manager installs.
pub(super) struct BuildLanguage {
    /// The program that a build starts.
    pub(super) wanted: &'static Wanted,
    /// Whether another build of the same source gives the same bytes.
    pub(super) is_reproducible: bool,
    /// Describes the build tools that bundles in a directory would use, or names a missing one.
    /// `None` if `wanted` is the only tool.
    pub(super) look: Option<Look>,
    /// Makes a core module or a component from the source.
    pub(super) build: fn(&mut BuildJob<'_>) -> Result<BuildOutput, BuildError>,
    /// The drivers that `new` can write. There are several if drivers can be written in variants of
    /// the language.
    pub(super) new_drivers: &'static [NewDriver],
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
        self.options.tools.find(wanted, &self.scratch.bundle)
    }

    pub(super) fn tool(&self, program: &Path) -> Tool {
        Tool::new(program, self.scratch, self.options)
    }

    /// Runs a tool, and reports the lines that it prints.
    pub(super) fn run(&mut self, tool: Tool) -> Result<(), BuildError> {
        run(tool, self.from, self.progress)
    }
}

/// A file that tools made, and the names of these tools.
pub(super) type BuildOutput = (PathBuf, Vec<String>);

/// Files: the place of each, and its text. Places of a library are relative to the driver's folder.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The files that `new` writes for a language: the driver and its guest library. The library is
/// included, so that nothing is fetched under a name that someone else could register.
#[derive(Debug)]
pub(crate) struct NewDriver {
    /// The language's word on the command line.
    pub(crate) word: &'static str,
    /// The lines of `[[build]]` that name the source.
    pub(crate) build: &'static str,
    /// The files of the driver and the README, with placeholders.
    pub(crate) templates: Files,
    /// Its guest library, which is written next to the driver.
    pub(crate) library: Files,
}

/// The templates of a folder: first the listed ones, with their places in `driver`; then
/// `.gitignore` and `README.md`, which each language has; last the template after `;`, if one is
/// given.
macro_rules! templates {
    ($folder:literal: $($template:literal => $place:literal,)* $(; $late:literal => $late_place:literal)?) => {
        &[
            $((
                concat!("driver/", $place),
                include_str!(concat!($folder, "/", $template, ".in")),
            ),)*
            (".gitignore", include_str!(concat!($folder, "/gitignore.in"))),
            ("README.md", include_str!(concat!($folder, "/README.md.in"))),
            $((
                concat!("driver/", $late_place),
                include_str!(concat!($folder, "/", $late, ".in")),
            ),)?
        ]
    };
}

macro_rules! library {
    ($folder:literal => $place:literal: $($name:literal,)*) => {
        &[$((
            concat!($place, $name),
            include_str!(concat!("../../sdk/", $folder, $name)),
        )),*]
    };
}

pub(super) use {library, templates};
