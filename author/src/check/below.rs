//! The bundles and workspaces below a directory that is not a bundle itself.

use std::path::{Path, PathBuf};

use toolward_bundle::codes;
use toolward_bundle::dev::bundle_toml;
use toolward_bundle::files::{self, BUILD_FOLDERS};
use toolward_bundle::locate::about_file;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::manifest;

/// How deep bundles are looked for below a directory that is none itself.
const SEARCH_DEPTH: usize = 4;

/// How many directories are looked into for bundles.
const SEARCH_LIMIT: usize = 10_000;

/// How many bundles and workspaces are checked at once.
const MAX_ROOTS: usize = 1000;

/// What is below a directory.
#[derive(Debug)]
pub(super) struct Below {
    /// The nearest bundles, by path.
    pub(super) bundles: Vec<PathBuf>,
    /// The directories with a folder such as `.tools` and without a bundle.toml, by path. Bundles may be below them.
    pub(super) workspaces: Vec<PathBuf>,
    /// How many more directories may be looked into.
    left: usize,
    is_cut: bool,
}

impl Below {
    /// Looks below a directory, but not into hidden folders.
    pub(super) fn look(folder: &Path) -> Self {
        let mut below = Self::nothing();
        below.look_into(folder, SEARCH_DEPTH);
        below
    }

    /// Looks into the folders with a dot of a workspace.
    pub(super) fn look_into_workspace(workspace: &Path) -> Self {
        let mut below = Self::nothing();
        for folder in files::workspace_folders(workspace) {
            below.look_at(folder, SEARCH_DEPTH);
        }
        below
    }

    fn nothing() -> Self {
        Self {
            bundles: Vec::new(),
            workspaces: Vec::new(),
            left: SEARCH_LIMIT,
            is_cut: false,
        }
    }

    /// The finding that not all was looked at.
    pub(super) fn cut(&self) -> Option<Diagnostic> {
        let message = format!(
            "only {MAX_ROOTS} bundles in {SEARCH_LIMIT} folders are checked at once, and there are more"
        );
        let hint = "check the folders below it one by one";
        self.is_cut
            .then(|| about_file("", &codes::BUNDLE_TOO_LARGE, message, hint))
    }

    fn look_into(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        let mut folders: Vec<PathBuf> = entries
            .map_while(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| !name.starts_with('.') && !BUILD_FOLDERS.contains(&name))
            })
            .map(|entry| entry.path())
            .take(self.left.saturating_add(1))
            .collect();
        folders.sort();
        for folder in folders {
            self.look_at(folder, depth);
        }
    }

    fn look_at(&mut self, folder: PathBuf, depth: usize) {
        let found = self.bundles.len().saturating_add(self.workspaces.len());
        self.is_cut |= self.left == 0 || found >= MAX_ROOTS;
        if self.is_cut {
            return;
        }
        self.left = self.left.saturating_sub(1);
        if folder.join(bundle_toml::FILE).is_file() || folder.join(manifest::FILE).is_file() {
            self.bundles.push(folder);
            return;
        }
        if depth > 1 {
            self.look_into(&folder, depth - 1);
        }
        if files::is_workspace(&folder) {
            self.workspaces.push(folder);
        }
    }
}
