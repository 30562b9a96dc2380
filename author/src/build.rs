//! Builds the components of a bundle under work, each `[[build]]` of `bundle.toml` with
//! the tools of its language, and copies what comes out to its place. A build installs
//! nothing; [`install`] does.

mod c;
mod cargo;
mod compiler;
mod confine;
mod error;
mod fold;
mod go;
mod install;
mod js;
mod lines;
mod plan;
mod program;
mod python;
mod scratch;
mod start;
mod tool;
mod wrap;

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_bundle::component::{MAX_SIZE, Surface, SurfaceError};
use toolward_bundle::dev::{BuildEntry, BuildKind};
use toolward_bundle::files::{self, FilesError};
use toolward_bundle::text::list;
use toolward_bundle::{ReadError, rules};

use self::cargo::{Crate, name_compiler, run_cargo};
pub use self::error::{BuildError, BuildReason};
pub use self::install::{Installable, install};
pub use self::plan::Plan;
pub use self::program::{RustSettings, Tools};
use self::scratch::Scratch;
use crate::error::AuthorError;
use crate::stale::Sources;
use crate::{lints, output};

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
    /// Confine the programs that are started, where the kernel can ([`can_confine`]):
    /// below the user's home they read the checkout and the toolchain only, they write
    /// to scratch and target directories and caches, and have no network.
    pub confine: bool,
    /// The tools of other languages.
    pub tools: Tools,
}

/// Whether this kernel can confine a build: it has Landlock (Linux 5.13).
#[must_use]
pub fn can_confine() -> bool {
    confine::is_available()
}

/// What a build reports while it runs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum BuildProgress<'a> {
    /// This kernel can't confine builds: the programs reach all that the user does.
    Unconfined,
    /// A `[[build]]` starts.
    Started {
        /// Its source.
        from: &'a str,
        /// Which it is, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A line that a tool printed, unchanged. It may hold anything.
    Line(&'a str),
}

/// A component that was built.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Built {
    /// Its `[[build]]`.
    pub entry: BuildEntry,
    /// Whether another build of the same source gives the same bytes.
    pub reproducible: bool,
    /// What it shows outside.
    pub surface: Surface,
    /// The tools that made it, as each names itself: `rustc 1.95.0 (…)`. None for a module
    /// that was there before.
    pub compilers: Vec<String>,
}

/// A file that tools made, and how they name themselves.
struct Made {
    file: PathBuf,
    compilers: Vec<String>,
}

/// Builds every `[[build]]` of a bundle, in order.
///
/// # Errors
///
/// At the first build that fails; components built before it stay.
pub fn build(
    plan: &Plan,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Vec<Built>, BuildError> {
    if options.confine && !plan.programs().is_empty() && !can_confine() {
        progress(BuildProgress::Unconfined);
    }
    let of = plan.builds().len();
    let mut built = Vec::with_capacity(of);
    for (number, entry) in (1..).zip(plan.builds()) {
        progress(BuildProgress::Started {
            from: &entry.source,
            number,
            of,
        });
        built.push(build_one(plan.directory(), entry, options, progress)?);
    }
    Ok(built)
}

/// The tools that were found for a language, or which is missing.
#[derive(Debug)]
#[non_exhaustive]
pub struct Found {
    /// The kind of source that they build.
    pub kind: BuildKind,
    /// The program, in words.
    pub tools: Result<String, BuildError>,
}

/// Looks for the tools of each language but Rust ([`probe`]), for bundles in
/// `directory`. Starts nothing.
#[must_use]
pub fn look(tools: &Tools, directory: &Path) -> Vec<Found> {
    [
        (BuildKind::Js, js::look(tools, directory)),
        (BuildKind::Python, python::look(tools, directory)),
        (BuildKind::Go, go::look(tools, directory)),
        (BuildKind::C, c::look(tools, directory)),
    ]
    .into_iter()
    .map(|(kind, tools)| Found { kind, tools })
    .collect()
}

/// Whether `cargo` makes components: builds an empty crate in a directory of its
/// own, without network, and confined where the kernel can.
///
/// # Errors
///
/// As [`build`].
pub fn probe(cargo: &OsStr, tools: &Tools) -> Result<(), BuildError> {
    let failed = |source| AuthorError::Write {
        path: PathBuf::from("temporary directory"),
        source,
    };
    let scratch = Scratch::of_its_own()?;
    let directory = scratch.directory();
    let manifest = "[package]\nname = \"probe\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\
        [lib]\ncrate-type = [\"cdylib\"]\n[workspace]\n";
    std::fs::create_dir(directory.join("src")).map_err(failed)?;
    std::fs::write(directory.join("Cargo.toml"), manifest).map_err(failed)?;
    std::fs::write(directory.join("src/lib.rs"), "").map_err(failed)?;
    let from = "an empty crate";
    let options = Options {
        cargo: cargo.to_owned(),
        locked: false,
        offline: true,
        confine: true,
        tools: tools.clone(),
    };
    let mut said = String::new();
    // Cargo takes settings, programs among them, from the current directory and those
    // above it. Only the system's owner writes to the root.
    let krate = Crate {
        program: &find_cargo(&options, directory)?,
        directory: Some(Path::new("/")),
        manifest: &directory.join("Cargo.toml"),
        from,
        scratch: &scratch,
    };
    let artifact = run_cargo(&krate, &options, &mut |progress| {
        if let BuildProgress::Line(line) = progress
            && line.starts_with("error")
            && said.is_empty()
        {
            said = line.to_owned();
        }
    })
    .map_err(|error| match error {
        BuildError::Failed { status, reason, .. } if !said.is_empty() => BuildError::Failed {
            from: format!("{from} ({said})"),
            status,
            reason,
        },
        other => other,
    })?;
    let bytes = read_bounded(&artifact).map_err(failed)?;
    Surface::read(&bytes).map_err(|source| BuildError::Surface {
        from: from.to_owned(),
        source,
    })?;
    Ok(())
}

fn build_one(
    directory: &Path,
    entry: &BuildEntry,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Built, BuildError> {
    check_snapshot(directory, entry)?;
    let sources = Sources::read(directory, entry);
    let (bytes, compilers) = component(directory, entry, options, progress)?;
    let bytes: Arc<[u8]> = bytes.into();
    let surface = Surface::read(&bytes).map_err(|source| BuildError::Surface {
        from: entry.source.clone(),
        source,
    })?;
    if !surface.exports_handler() {
        let names: Vec<&str> = surface
            .exports
            .iter()
            .map(|export| export.name.as_str())
            .collect();
        return Err(BuildError::World {
            from: entry.source.clone(),
            exports: if names.is_empty() {
                "nothing".to_owned()
            } else {
                list(&names)
            },
        });
    }
    check_features(entry, &bytes)?;
    check_rules(directory, entry, &bytes)?;
    output::file_beneath(directory, &files::place(directory, &entry.output), &bytes)?;
    sources.keep(directory, entry, &bytes)?;
    Ok(Built {
        entry: entry.clone(),
        reproducible: !matches!(entry.kind, BuildKind::Js | BuildKind::Python),
        surface,
        compilers,
    })
}

/// The component that the source becomes, and how the tools that make it name themselves.
fn component(
    directory: &Path,
    entry: &BuildEntry,
    options: &Options,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(Vec<u8>, Vec<String>), BuildError> {
    let source = find_source(directory, entry)?;
    let scratch = Scratch::new(directory)?;
    if entry.kind == BuildKind::Rust {
        let manifest = source.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(BuildError::NoCrate { path: source });
        }
        let krate = Crate {
            program: &find_cargo(options, directory)?,
            directory: None,
            manifest: &manifest,
            from: &entry.source,
            scratch: &scratch,
        };
        let artifact = run_cargo(&krate, options, progress)?;
        let compilers = vec![name_compiler(&krate, options, &artifact)];
        return Ok((read_component(&artifact)?, compilers));
    }
    let made = match entry.kind {
        BuildKind::Js => js::build(&source, entry, &scratch, options, progress)?,
        BuildKind::Python => python::build(&source, entry, &scratch, options, progress)?,
        BuildKind::Go => go::build(&source, entry, &scratch, options, progress)?,
        BuildKind::C => c::build(&source, entry, &scratch, options, progress)?,
        BuildKind::Rust | BuildKind::Wasm => Made {
            file: source,
            compilers: Vec::new(),
        },
    };
    let wasm = read_component(&made.file)?;
    if wasm.len() as u64 > MAX_SIZE {
        return Err(BuildError::Surface {
            from: entry.source.clone(),
            source: SurfaceError::TooLarge {
                size: wasm.len() as u64,
            },
        });
    }
    let wasm = match entry.snapshot {
        true => snapshot(entry, &wasm)?,
        false => wasm,
    };
    let component = wrap::component(wasm, &scratch.worlds());
    let component = component.map_err(|message| BuildError::Wrap {
        from: entry.source.clone(),
        message,
    })?;
    // What others made is kept.
    let folded = match entry.kind {
        BuildKind::Wasm => None,
        _ => fold::component(&component).ok(),
    };
    Ok((folded.unwrap_or(component), made.compilers))
}

/// The module after its start.
fn snapshot(entry: &BuildEntry, wasm: &[u8]) -> Result<Vec<u8>, BuildError> {
    start::run(wasm).map_err(|message| BuildError::Snapshot {
        from: entry.source.clone(),
        message,
    })
}

/// Cargo, for the bundle in `directory`.
fn find_cargo(options: &Options, directory: &Path) -> Result<PathBuf, BuildError> {
    let found = options.tools.named(&options.cargo, directory);
    found.ok_or_else(|| BuildError::Cargo {
        program: PathBuf::from(&options.cargo),
        source: std::io::ErrorKind::NotFound.into(),
    })
}

/// The source's place, without links on the way: a link could lead out of the bundle.
fn find_source(directory: &Path, entry: &BuildEntry) -> Result<PathBuf, BuildError> {
    let path = directory.join(&entry.source);
    match path.canonicalize() {
        Ok(found) if found == path => Ok(found),
        _ if entry.kind == BuildKind::Rust => Err(BuildError::NoCrate { path }),
        _ => Err(BuildError::SourceMissing { path }),
    }
}

fn read_component(path: &Path) -> Result<Vec<u8>, BuildError> {
    read_bounded(path).map_err(|source| {
        BuildError::Author(AuthorError::from(FilesError::Io {
            path: path.to_owned(),
            source,
        }))
    })
}

/// Validates with what the host's engine runs, so that a component of another kind is
/// refused here and not at its first call.
fn check_features(entry: &BuildEntry, wasm: &[u8]) -> Result<(), BuildError> {
    toolward_bundle::component::validate(wasm).map_err(|source| BuildError::Features {
        from: entry.source.clone(),
        source: Box::new(source),
    })
}

/// Checks that the driver can have the snapshot that it asks for.
fn check_snapshot(directory: &Path, entry: &BuildEntry) -> Result<(), BuildError> {
    if !entry.snapshot {
        return Ok(());
    }
    let files = files::collect(directory).map_err(AuthorError::from)?.files;
    let (documents, _) = rules::read(&files);
    match lints::snapshot(&documents, entry) {
        None => Ok(()),
        Some(problem) => Err(AuthorError::Read(ReadError::Invalid(vec![problem])).into()),
    }
}

/// Checks the component as a host does, as if it lay at its place already.
fn check_rules(directory: &Path, entry: &BuildEntry, wasm: &Arc<[u8]>) -> Result<(), BuildError> {
    let mut files = files::collect(directory).map_err(AuthorError::from)?.files;
    files.insert(entry.output.clone(), Arc::clone(wasm));
    let (documents, _) = rules::read(&files);
    let mut problems = rules::components(&documents, &files);
    problems.retain(|problem| problem.is_error() && folder(&problem.file) == folder(&entry.output));
    match problems.is_empty() {
        true => Ok(()),
        false => Err(AuthorError::Read(ReadError::Invalid(problems)).into()),
    }
}

/// The folder of a file of the bundle.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // A pipe in the file's place is not waited for.
    let file = toolward_support::files::open_regular(path).map_err(std::io::Error::other)?;
    let mut bytes = Vec::new();
    // One byte more than a component may have, so that a larger one is seen.
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
