//! Snapshots of directories, to compare two points in time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolward_signing::Digest;

/// Everything below `directory`: name → mode and digest, or the target of a link.
pub(crate) fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    walk(directory, "", &mut found);
    found
}

fn walk(directory: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            found.insert(format!("{name}/"), format!("{mode:o}"));
            walk(&path, &format!("{name}/"), found);
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(name, format!("-> {}", target.display()));
        } else {
            let digest = Digest::of(&fs::read(&path).unwrap());
            found.insert(name, format!("{mode:o} {digest}"));
        }
    }
}

/// Copies a file or a directory, except directories named `target`.
pub(crate) fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            if name != "target" {
                copy(&from.join(&name), &to.join(&name));
            }
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}
