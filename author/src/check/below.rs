//! The bundles below a directory that is not one itself.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::bundle_toml;
use toolward_bundle::files::BUILD_FOLDERS;
use toolward_signing::manifest;

/// How deep bundles are looked for below a directory that is none itself.
const SEARCH_DEPTH: usize = 4;

/// How many directories are looked into for bundles.
const SEARCH_LIMIT: usize = 10_000;

/// The nearest ones, by path.
pub(super) fn bundles_below(folder: &Path) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    let mut left = SEARCH_LIMIT;
    find_bundles(folder, SEARCH_DEPTH, &mut left, &mut roots);
    roots
}

fn find_bundles(folder: &Path, depth: usize, left: &mut usize, roots: &mut Vec<PathBuf>) {
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
        .collect();
    folders.sort();
    for folder in folders {
        match left.checked_sub(1) {
            None => return,
            Some(less) => *left = less,
        }
        if folder.join(bundle_toml::FILE).is_file() || folder.join(manifest::FILE).is_file() {
            roots.push(folder);
        } else if depth > 1 {
            find_bundles(&folder, depth - 1, left, roots);
        }
    }
}
