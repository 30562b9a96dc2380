//! Builds the components of a bundle under work: runs Cargo for each
//! `[[build]]` of `bundle.toml` and copies what comes out to its place. Which
//! compiler that is, is the caller's choice; nothing is installed here.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::author::{AuthorError, BuildEntry, output, read_bundle_toml};
use crate::component::{HANDLER, MAX_SIZE, Surface, SurfaceError};
use crate::rules::list;

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

/// Why a component can't be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// `bundle.toml` is missing or invalid, or the component can't be written.
    #[error(transparent)]
    Author(#[from] AuthorError),
    /// `bundle.toml` has no `[[build]]`.
    #[error("bundle.toml has no [[build]] table")]
    NothingToBuild,
    /// The crate is not there.
    #[error("{path}: there is no Cargo.toml", path = path.display())]
    NoCrate {
        /// Its directory.
        path: PathBuf,
    },
    /// Cargo can't be started, or its output can't be read.
    #[error("{program}: {source}", program = program.display())]
    Cargo {
        /// The program.
        program: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Cargo ended with an error.
    #[error("building {krate} failed ({status})")]
    Failed {
        /// The crate's directory.
        krate: String,
        /// How Cargo ended.
        status: std::process::ExitStatus,
        /// Whether the compiler said that it lacks the target.
        target_missing: bool,
    },
    /// The crate has made no component.
    #[error("{krate} has made no .wasm file")]
    NoComponent {
        /// The crate's directory.
        krate: String,
    },
    /// What the crate has made is no component.
    #[error("{krate}: {source}")]
    Surface {
        /// The crate's directory.
        krate: String,
        /// Why not.
        source: SurfaceError,
    },
    /// What the crate has made is a component of another world.
    #[error("{krate}: the component exports {exports}; expected {HANDLER}")]
    World {
        /// The crate's directory.
        krate: String,
        /// What it exports.
        exports: String,
    },
}

impl BuildError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Author(error) => error.code(),
            Self::NothingToBuild => "nothing-to-build",
            Self::NoCrate { .. } => "crate-missing",
            Self::Cargo { .. } => "cargo-unusable",
            Self::Failed { target_missing, .. } if *target_missing => "guest-target-missing",
            Self::Failed { .. } => "build-failed",
            Self::NoComponent { .. } => "component-missing",
            Self::Surface { source, .. } => source.code(),
            Self::World { .. } => "component-world",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Author(error) => error.hint(),
            Self::NothingToBuild => Some(
                "add `[[build]]` with `crate = \"driver\"` and `output = \"drivers/ID/driver.wasm\"`"
                    .to_owned(),
            ),
            Self::NoCrate { .. } => {
                Some("`crate` in bundle.toml names the directory of the driver's Cargo.toml".to_owned())
            }
            Self::Cargo { .. } => Some(
                "name a Cargo that can be run, with `--guest-cargo` or TOOLWARD_GUEST_CARGO".to_owned(),
            ),
            Self::Failed { target_missing, .. } => Some(if *target_missing {
                format!(
                    "this compiler has no {TARGET}: `rustup target add {TARGET}`, or name another Cargo with `--guest-cargo`"
                )
            } else {
                "the compiler says what is wrong; is there a target wasm32-wasip2? `--guest-cargo` names another cargo"
                    .to_owned()
            }),
            Self::NoComponent { .. } => {
                Some("the crate needs `[lib]` with `crate-type = [\"cdylib\"]`".to_owned())
            }
            Self::Surface { source, .. } => source.hint(),
            Self::World { .. } => {
                Some("the crate needs the `driver!` macro of toolward-guest".to_owned())
            }
        }
    }
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
    let bundle = read_bundle_toml(directory)?;
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
    let entry = BuildEntry {
        krate: "an empty crate".to_owned(),
        output: String::new(),
    };
    let options = Options {
        cargo: cargo.to_owned(),
        locked: false,
        offline: true,
    };
    let manifest = directory.path().join("Cargo.toml");
    let mut said = String::new();
    let artefact = run_cargo(&manifest, &entry, &options, &mut |progress| {
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
            krate: format!("{} ({said})", entry.krate),
            status,
            target_missing,
        },
        other => other,
    })?;
    let bytes = read_bounded(&artefact).map_err(failed)?;
    Surface::read(&bytes).map_err(|source| BuildError::Surface {
        krate: entry.krate,
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
    let artefact = run_cargo(&manifest, entry, options, progress)?;
    let bytes = read_bounded(&artefact).map_err(|source| {
        BuildError::Author(AuthorError::Files(crate::files::FilesError::Io {
            path: artefact.clone(),
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

/// Runs Cargo and gives the path of the component that it made.
fn run_cargo(
    manifest: &Path,
    entry: &BuildEntry,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<PathBuf, BuildError> {
    let unusable = |source| BuildError::Cargo {
        program: PathBuf::from(&options.cargo),
        source,
    };
    let mut command = Command::new(&options.cargo);
    command
        .args(["build", "--release", "--target", TARGET, "--manifest-path"])
        .arg(manifest)
        .args(["--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if options.locked {
        command.arg("--locked");
    }
    if options.offline {
        command.arg("--offline");
    }
    let mut child = command.spawn().map_err(unusable)?;
    let messages = collect_messages(&mut child);
    let mut target_missing = false;
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.map_err(unusable)?;
            let line = String::from_utf8_lossy(&line);
            target_missing |= line.contains("may not be installed")
                || line.contains("can't find crate for `std`")
                || line.contains("can't find crate for `core`");
            progress(Progress::Line(&line));
        }
    }
    let status = child.wait().map_err(unusable)?;
    let artefacts = messages.and_then(|thread| thread.join().ok());
    if !status.success() {
        return Err(BuildError::Failed {
            krate: entry.krate.clone(),
            status,
            target_missing,
        });
    }
    let canonical = manifest.canonicalize().map_err(unusable)?;
    artefacts
        .unwrap_or_default()
        .into_iter()
        .filter(|(of, _)| Path::new(of).canonicalize().is_ok_and(|of| of == canonical))
        .map(|(_, file)| PathBuf::from(file))
        .next_back()
        .ok_or_else(|| BuildError::NoComponent {
            krate: entry.krate.clone(),
        })
}

/// The `.wasm` files that Cargo says it made, each with its crate's manifest.
type Artefacts = Vec<(String, String)>;

/// Reads Cargo's messages beside its other output, so that neither pipe fills.
fn collect_messages(child: &mut Child) -> Option<std::thread::JoinHandle<Artefacts>> {
    let stdout = child.stdout.take()?;
    Some(std::thread::spawn(move || {
        let mut artefacts = Artefacts::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message.get("reason").and_then(Value::as_str) != Some("compiler-artifact") {
                continue;
            }
            let Some(manifest) = message.get("manifest_path").and_then(Value::as_str) else {
                continue;
            };
            let files = message.get("filenames").and_then(Value::as_array);
            for file in files.into_iter().flatten().filter_map(Value::as_str) {
                if file.ends_with(".wasm") {
                    artefacts.push((manifest.to_owned(), file.to_owned()));
                }
            }
        }
        artefacts
    }))
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than a component may have, so that a larger one is seen.
    std::fs::File::open(path)?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
