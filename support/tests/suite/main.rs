//! Private files and folders: normal use, and unsafe owners, modes and links.

#![expect(clippy::unwrap_used, reason = "tests")]

mod edited;
mod folders;
mod locks;
mod reading;
mod writing;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A folder that is removed at the end.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with a mode.
    fn file(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        set_mode(&path, mode);
        path
    }

    /// How many entries the folder has.
    fn count(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}
