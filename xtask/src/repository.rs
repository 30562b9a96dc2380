//! Paths in the repository.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The cargo that runs this, without the variables of this package: build scripts that read
/// variables with these names would run again, and all that depends on them would be compiled
/// again.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    for (name, _) in std::env::vars_os() {
        if is_of_package(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_package(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_gets_no_variables_of_this_package() {
        let removed = |wanted: &str| {
            let command = cargo();
            let mut changed = command.get_envs();
            changed.any(|(name, value)| name == wanted && value.is_none())
        };
        assert!(removed("CARGO_PKG_NAME") && removed("CARGO_MANIFEST_DIR"));
    }
}
