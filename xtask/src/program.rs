//! Builds the workspace's own programs, to run them here or in tests.

use std::path::PathBuf;

use crate::{Outcome, process, repository};

/// The feature of the program that makes pages and examples.
pub(crate) const GENERATE: &str = "xtask/generate";

/// Builds a program, and returns its path.
///
/// It uses the features that the whole workspace gives its dependencies. With the features of one
/// package alone, many dependencies would be compiled twice.
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
