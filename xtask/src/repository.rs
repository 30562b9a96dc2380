//! Paths in the repository.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Outcome;

/// The workspaces whose members are drivers.
pub(crate) const GUEST_WORKSPACES: [&str; 2] = ["examples", "tests/guests"];

/// The target for which drivers are built.
pub(crate) const GUEST_TARGET: &str = "wasm32-wasip2";

/// Returns the repository's root. This package is one level below it.
pub(crate) fn root() -> Outcome<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().ok_or("this package has no parent folder")?;
    Ok(root.to_owned())
}

/// Returns Cargo's target folder, as the caller uses it.
pub(crate) fn target() -> Outcome<PathBuf> {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(target) => Ok(PathBuf::from(target)),
        None => Ok(root()?.join("target")),
    }
}

/// Returns the Cargo that runs this program.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns a folder's entries in the order of their names.
pub(crate) fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let describe = |error| format!("{}: {error}", folder.display());
    let mut entries = std::fs::read_dir(folder)
        .map_err(describe)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(describe)?;
    entries.sort();
    Ok(entries)
}
