//! Makes the committed files that follow from the project's own crates: the example archives and
//! the book's reference pages. It is a separate program, since `xtask` must not wait for these
//! crates. Run it with `cargo xtask`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command, not a library"
)]

mod bundles;
mod pages;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The error is a message for the developer.
type Outcome<T = ()> = Result<T, String>;

/// The repository's root.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["examples", compiler] => bundles::write(&root(), compiler),
        ["examples-check"] => bundles::check(&root()),
        ["docs", program] => pages::write(&root(), Path::new(program)),
        ["docs-check", program] => pages::check(&root(), Path::new(program)),
        _ => Err(
            "usage: xtask-generate examples COMPILER | examples-check | \
                  docs TOOLWARD | docs-check TOOLWARD"
                .to_owned(),
        ),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_bundles_are_those_of_their_sources() {
        bundles::check(&root()).unwrap();
    }

    #[test]
    fn the_committed_pages_are_those_of_the_tables() {
        pages::check_tables(&root()).unwrap();
    }

    /// Appends the modules with the name `mod.rs`. The library for drivers keeps such files, since
    /// the signed examples contain the digest of its sources.
    fn modules_called_mod(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default();
            if path.is_symlink() {
                // The link leads to the library.
            } else if path.is_dir() {
                if !["target", "guest-sdk", ".git"]
                    .iter()
                    .any(|other| name == *other)
                {
                    modules_called_mod(&path, found);
                }
            } else if name == "mod.rs" {
                found.push(path);
            }
        }
    }

    #[test]
    fn each_module_is_named_by_its_file() {
        let mut found = Vec::new();
        modules_called_mod(&root(), &mut found);
        assert!(found.is_empty(), "write foo.rs beside foo/: {found:?}");
    }
}
