//! The directory that a build works in: the worlds, scripts, and what comes out.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::error::BuildError;
use super::wrap;
use crate::error::AuthorError;

pub(super) struct Scratch {
    directory: tempfile::TempDir,
    bundle: PathBuf,
}

impl Scratch {
    /// For one build of the bundle in `bundle`. It is removed when this is dropped.
    pub(super) fn new(bundle: &Path) -> Result<Self, BuildError> {
        let failed = |source| AuthorError::Write {
            path: std::env::temp_dir(),
            source,
        };
        let directory = tempfile::Builder::new()
            .prefix("toolward-build-")
            // Another user could replace a script before it runs.
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(failed)?;
        let scratch = Self {
            directory,
            bundle: bundle.to_owned(),
        };
        wrap::write(&scratch.worlds()).map_err(failed)?;
        Ok(scratch)
    }

    /// For a bundle inside it.
    pub(super) fn of_its_own() -> Result<Self, BuildError> {
        let mut scratch = Self::new(Path::new("/"))?;
        scratch.bundle = scratch.directory.path().to_owned();
        Ok(scratch)
    }

    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The files of `wit/`.
    pub(super) fn worlds(&self) -> PathBuf {
        self.path("wit")
    }

    /// The bundle that is built.
    pub(super) fn bundle(&self) -> &Path {
        &self.bundle
    }

    /// Writes files into a folder of it.
    pub(super) fn write(&self, folder: &str, files: &[(&str, &str)]) -> Result<(), BuildError> {
        let folder = self.path(folder);
        let failed = |source| AuthorError::Write {
            path: folder.clone(),
            source,
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        for (name, text) in files {
            std::fs::write(folder.join(name), text).map_err(failed)?;
        }
        Ok(())
    }
}
