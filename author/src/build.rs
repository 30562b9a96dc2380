//! Builds the components of a bundle under work: runs Cargo for each
//! `[[build]]` of `bundle.toml` and copies what comes out to its place. Which
//! compiler that is, is the caller's choice; nothing is installed here.

mod cargo;
mod error;

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toolward_bundle::component::{MAX_SIZE, Surface};
use toolward_bundle::dev::{BuildEntry, read_bundle_toml};
use toolward_bundle::files::FilesError;
use toolward_bundle::text::list;

use self::cargo::run_cargo;
pub use self::error::BuildError;
use crate::error::AuthorError;
use crate::output;

/// The target that drivers compile for.
pub const TARGET: &str = "wasm32-wasip2";

/// How to build.
#[derive(Debug, Clone)]
pub struct Options {
    /// A Cargo whose compiler has the target [`TARGET`].
    pub cargo: OsString,
    /// Refuse to change `Cargo.lock` (`--locked`).
    pub locked: bool,
    /// Use no network (`--offline`).
    pub offline: bool,
}

/// What a build says on its way.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A `[[build]]` starts.
    Started {
        /// Its crate.
        krate: &'a str,
        /// Which it is, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A line that Cargo or the compiler printed, unchanged. It may hold
    /// anything.
    Line(&'a str),
}

/// A component that was built.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Built {
    /// The crate's directory, as in `bundle.toml`.
    pub krate: String,
    /// The component, as in `bundle.toml`.
    pub output: String,
    /// What it shows outside.
    pub surface: Surface,
}

/// Builds every `[[build]]` of the bundle in `directory`, in order.
///
/// # Errors
///
/// At the first build that fails; components built before it stay.
pub fn build(
    directory: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Built>, BuildError> {
    let bundle = read_bundle_toml(directory).map_err(AuthorError::from)?;
    if bundle.builds.is_empty() {
        return Err(BuildError::NothingToBuild);
    }
    let of = bundle.builds.len();
    let mut built = Vec::with_capacity(of);
    for (number, entry) in (1..).zip(&bundle.builds) {
        progress(Progress::Started {
            krate: &entry.krate,
            number,
            of,
        });
        built.push(build_one(directory, entry, options, progress)?);
    }
    Ok(built)
}

/// Whether `cargo` makes components: builds an empty crate in a directory of its
/// own, without network.
///
/// # Errors
///
/// As [`build`].
pub fn probe(cargo: &OsStr) -> Result<(), BuildError> {
    let failed = |source| AuthorError::Write {
        path: PathBuf::from("temporary directory"),
        source,
    };
    let directory = tempfile::tempdir().map_err(failed)?;
    let manifest = "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
        [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    std::fs::create_dir(directory.path().join("src")).map_err(failed)?;
    std::fs::write(directory.path().join("Cargo.toml"), manifest).map_err(failed)?;
    std::fs::write(directory.path().join("src/lib.rs"), "").map_err(failed)?;
    let krate = "an empty crate";
    let options = Options {
        cargo: cargo.to_owned(),
        locked: false,
        offline: true,
    };
    let manifest = directory.path().join("Cargo.toml");
    let mut said = String::new();
    let artifact = run_cargo(&manifest, krate, &options, &mut |progress| {
        if let Progress::Line(line) = progress
            && line.starts_with("error")
            && said.is_empty()
        {
            said = line.to_owned();
        }
    })
    .map_err(|error| match error {
        BuildError::Failed {
            status,
            target_missing,
            ..
        } if !said.is_empty() => BuildError::Failed {
            krate: format!("{krate} ({said})"),
            status,
            target_missing,
        },
        other => other,
    })?;
    let bytes = read_bounded(&artifact).map_err(failed)?;
    Surface::read(&bytes).map_err(|source| BuildError::Surface {
        krate: krate.to_owned(),
        source,
    })?;
    Ok(())
}

fn build_one(
    directory: &Path,
    entry: &BuildEntry,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Built, BuildError> {
    let manifest = directory.join(&entry.krate).join("Cargo.toml");
    if !manifest.is_file() {
        return Err(BuildError::NoCrate {
            path: directory.join(&entry.krate),
        });
    }
    let artifact = run_cargo(&manifest, &entry.krate, options, progress)?;
    let bytes = read_bounded(&artifact).map_err(|source| {
        BuildError::Author(AuthorError::from(FilesError::Io {
            path: artifact.clone(),
            source,
        }))
    })?;
    let surface = Surface::read(&bytes).map_err(|source| BuildError::Surface {
        krate: entry.krate.clone(),
        source,
    })?;
    if !surface.exports_handler() {
        let names: Vec<&str> = surface
            .exports
            .iter()
            .map(|export| export.name.as_str())
            .collect();
        return Err(BuildError::World {
            krate: entry.krate.clone(),
            exports: if names.is_empty() {
                "nothing".to_owned()
            } else {
                list(&names)
            },
        });
    }
    let place = directory.join(&entry.output);
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(|source| AuthorError::Write {
            path: folder.to_owned(),
            source,
        })?;
    }
    output::file(&place, &bytes)?;
    Ok(Built {
        krate: entry.krate.clone(),
        output: entry.output.clone(),
        surface,
    })
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than a component may have, so that a larger one is seen.
    std::fs::File::open(path)?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
