//! What is going to be built.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::{BuildEntry, BuildKind, read_bundle_toml};

use super::error::BuildError;
use crate::error::AuthorError;

/// What is going to be built, read once: the build is what the user confirmed,
/// even if the files change meanwhile.
#[derive(Debug, Clone)]
pub struct Plan {
    directory: PathBuf,
    builds: Vec<BuildEntry>,
}

impl Plan {
    /// The builds of the bundle in `directory`.
    ///
    /// # Errors
    ///
    /// When `bundle.toml` is missing or invalid, or has no `[[build]]`.
    pub fn read(directory: &Path) -> Result<Self, BuildError> {
        // A missing directory has no bundle.toml, which is the error.
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let bundle = read_bundle_toml(&directory).map_err(AuthorError::from)?;
        match bundle.builds.is_empty() {
            true => Err(BuildError::NothingToBuild),
            false => Ok(Self {
                directory,
                builds: bundle.builds,
            }),
        }
    }

    /// The bundle's directory, absolute and without links.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The builds, in their order.
    #[must_use]
    pub fn builds(&self) -> &[BuildEntry] {
        &self.builds
    }

    /// The programs that are started, by name, each once.
    #[must_use]
    pub fn programs(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self
            .builds
            .iter()
            .filter_map(|entry| match entry.kind {
                BuildKind::Rust => Some("cargo"),
                BuildKind::Js => Some("node"),
                BuildKind::Python => Some("componentize-py"),
                BuildKind::Go => Some("go"),
                BuildKind::C => Some("zig or clang"),
                BuildKind::Wasm => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
