//! The bundle that a file is part of.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::bundle_toml;
use toolward_signing::manifest;

/// The nearest bundle that a file lies in, and the file's name within it.
pub(super) fn enclosing_bundle(path: &Path) -> Option<(PathBuf, String)> {
    let mut name = path.file_name()?.to_str()?.to_owned();
    let mut folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    for _ in 0..=8 {
        if folder.join(bundle_toml::FILE).is_file() || folder.join(manifest::FILE).is_file() {
            return Some((folder, name));
        }
        let segment = match folder.file_name() {
            Some(segment) => segment.to_str()?.to_owned(),
            // `.` and `a/..` have no name of their own.
            None => folder
                .canonicalize()
                .ok()?
                .file_name()?
                .to_str()?
                .to_owned(),
        };
        name = format!("{segment}/{name}");
        folder = match folder.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            Some(_) if folder != Path::new(".") => PathBuf::from("."),
            _ => folder.canonicalize().ok()?.parent()?.to_owned(),
        };
    }
    None
}
