//! The workspace's own programs, built to be run here or by tests.

use std::path::PathBuf;

use crate::{Outcome, process, repository};

/// The feature of what makes pages and examples.
pub(crate) const GENERATE: &str = "xtask/generate";

/// Builds a program and says where it lies.
///
/// With the features that the whole workspace gives its dependencies: with those of
/// one package alone, many would be compiled once more.
pub(crate) fn build(name: &str) -> Outcome<PathBuf> {
    process::run(
        repository::cargo()
            .args(["build", "--locked", "--workspace", "--bin", name])
            .args(["--features", GENERATE])
            .current_dir(repository::root()?),
    )?;
    Ok(repository::target()?.join("debug").join(name))
}

/// Makes the release build.
pub(crate) fn release() -> Outcome<PathBuf> {
    process::run(
        repository::cargo()
            .args([
                "build",
                "--locked",
                "--release",
                "--package",
                "toolward-cli",
            ])
            .current_dir(repository::root()?),
    )?;
    Ok(repository::target()?.join("release/toolward"))
}
