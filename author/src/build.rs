//! Builds the components of a bundle under work (an unpacked bundle, with a `bundle.toml`). Each
//! `[[build]]` of `bundle.toml` is built with the tools of its language, and the output is copied
//! to its place. A build installs nothing: an error names the command that installs a missing tool.

mod c;
mod confine;
mod error;
mod fold;
mod go;
mod js;
mod language;
mod program;
mod python;
mod rust;
mod start;
mod tool;
mod wrap;

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_bundle::component::{MAX_SIZE, Surface, SurfaceError, validate};
use toolward_bundle::dev::{BuildEntry, BuildKind, read_bundle_toml};
use toolward_bundle::files::{self, FilesError};
use toolward_bundle::rules;
use toolward_bundle::text::list;

pub use self::error::{BuildError, BuildReason};
pub(crate) use self::language::NewDriver;
use self::language::{BuildJob, BuildLanguage};
use self::program::Scratch;
pub use self::program::{BuildTools, RustSettings};
use crate::error::{AuthorError, none};
use crate::stale::BuildSources;
use crate::{lints, output};

/// Returns the language of a kind of source; `None` for a module that is built already.
fn language(kind: BuildKind) -> Option<&'static BuildLanguage> {
    Some(match kind {
        BuildKind::Rust => &rust::LANGUAGE,
        BuildKind::Js => &js::LANGUAGE,
        BuildKind::Python => &python::LANGUAGE,
        BuildKind::Go => &go::LANGUAGE,
        BuildKind::C => &c::LANGUAGE,
        BuildKind::Wasm => return None,
    })
}

/// Returns the drivers that `new` can write, each with the kind of its source.
pub(crate) fn new_drivers() -> impl Iterator<Item = (BuildKind, &'static NewDriver)> {
    let kinds = BuildKind::ALL.iter();
    let languages = kinds.filter_map(|kind| Some((*kind, language(*kind)?)));
    languages.flat_map(|(kind, language)| language.new_drivers.iter().map(move |one| (kind, one)))
}

/// The target that drivers compile for.
pub const TARGET: &str = "wasm32-wasip2";

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// A Cargo whose compiler has the target [`TARGET`].
    pub cargo: OsString,
    /// Refuse to change `Cargo.lock` (`--locked`).
    pub locked: bool,
    /// Use no network (`--offline`).
    pub offline: bool,
    /// Confine the started programs if the kernel can ([`can_confine`]). Below the user's home they
    /// then read only the checkout and the installed tools. They write only to scratch and target
    /// directories, caches and `Cargo.lock`, and have no network. Before a confined build,
    /// `cargo metadata`, `cargo -vV` and `cargo fetch` run unconfined; `cargo fetch` uses the
    /// network unless `offline` is set.
    pub confine: bool,
    /// The tools of other languages, the settings of Rust's tools, and the user's home.
    pub tools: BuildTools,
}

/// Whether this kernel can confine a build: it has Landlock (Linux 5.13).
pub use toolward_confine::build_profile::is_available as can_confine;

/// The progress of a build.
#[derive(Debug, Clone, Copy)]
pub enum BuildProgress<'a> {
    /// This kernel can't confine builds: the programs reach everything that the user can reach.
    Unconfined,
    /// A `[[build]]` starts.
    Started {
        /// Its source.
        from: &'a str,
        /// The number of the build, starting at 1.
        number: usize,
        /// The number of all builds.
        of: usize,
    },
    /// A line that a tool printed, unchanged. It may contain any characters, such as control
    /// characters.
    Line(&'a str),
}

/// A component that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// Its `[[build]]`.
    pub entry: BuildEntry,
    /// Whether another build of the same source gives the same bytes.
    pub reproducible: bool,
    /// The imports and exports of the component.
    pub surface: Surface,
    /// The tools that made it, as each names itself: `rustc 1.95.0 (…)`. Empty for a module that
    /// existed already.
    pub compilers: Vec<String>,
}

/// The builds of a bundle, read once from `bundle.toml`. So the builds that the user confirmed are
/// run, even if `bundle.toml` changes in the meantime.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The bundle's directory, absolute and without links.
    pub directory: PathBuf,
    builds: Vec<BuildEntry>,
}

impl Plan {
    /// The builds of the bundle in `directory`.
    ///
    /// # Errors
    ///
    /// If `bundle.toml` is missing or invalid, or has no `[[build]]`.
    pub fn read(directory: &Path) -> Result<Self, BuildError> {
        // A missing directory is reported as a missing bundle.toml.
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        let bundle = read_bundle_toml(&directory).map_err(AuthorError::from)?;
        match bundle.builds.is_empty() {
            true => Err(BuildError::NothingToBuild),
            false => Ok(Self {
                directory,
                builds: bundle.builds,
            }),
        }
    }

    /// Returns the name of the main program of each language in the plan, each once.
    pub fn programs(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = self
            .builds
            .iter()
            .filter_map(|entry| Some(language(entry.kind)?.wanted.name))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Builds every `[[build]]` of a bundle, in order.
///
/// # Errors
///
/// The error of the first build that fails. Later builds are not started, and components that were
/// built before stay in place.
pub fn build(
    plan: &Plan,
    options: &BuildOptions,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Vec<Built>, BuildError> {
    if options.confine && !plan.programs().is_empty() && !can_confine() {
        progress(BuildProgress::Unconfined);
    }
    let of = plan.builds.len();
    let mut built = Vec::with_capacity(of);
    for (number, entry) in (1..).zip(&plan.builds) {
        progress(BuildProgress::Started {
            from: &entry.source,
            number,
            of,
        });
        built.push(build_one(&plan.directory, entry, options, progress)?);
    }
    Ok(built)
}

/// Describes the tools that build a kind of source for bundles in `directory`. For Rust, this
/// builds an empty crate, without network, and confined if the kernel can confine. Tools of other
/// languages are only searched for, not started.
///
/// # Errors
///
/// If a tool is missing, with the command that installs it, or if Cargo does not work.
pub fn look(
    kind: BuildKind,
    options: &BuildOptions,
    directory: &Path,
) -> Result<String, BuildError> {
    let Some(language) = language(kind) else {
        return Ok("nothing is needed".to_owned());
    };
    match language.look {
        Some(look) => look(options, directory),
        None => Ok((options.tools.find(language.wanted, directory)?.display()).to_string()),
    }
}

fn build_one(
    directory: &Path,
    entry: &BuildEntry,
    options: &BuildOptions,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<Built, BuildError> {
    check_snapshot(directory, entry)?;
    let sources = BuildSources::read(directory, entry);
    let (bytes, compilers) = component(directory, entry, options, progress)?;
    let bytes: Arc<[u8]> = bytes.into();
    let from = || entry.source.clone();
    let surface = Surface::read(&bytes).map_err(|source| BuildError::Surface(from(), source))?;
    if !surface.exports_handler() {
        let names = surface.exports.iter().map(|export| export.name.as_str());
        let exports = match &names.collect::<Vec<_>>()[..] {
            [] => "nothing".to_owned(),
            names => list(names),
        };
        return Err(BuildError::World(from(), exports));
    }
    // Checked now, so that a component that the host's engine can't run is refused before its first
    // call.
    validate(&bytes).map_err(|source| BuildError::Features(from(), Box::new(source)))?;
    check_rules(directory, entry, &bytes)?;
    output::file_beneath(directory, &files::place(directory, &entry.output), &bytes)?;
    sources.keep(directory, entry, &bytes)?;
    Ok(Built {
        entry: entry.clone(),
        reproducible: language(entry.kind).is_none_or(|language| language.is_reproducible),
        surface,
        compilers,
    })
}

/// Returns the component that is built from the source, and the names of the tools that made it.
fn component(
    directory: &Path,
    entry: &BuildEntry,
    options: &BuildOptions,
    progress: &mut dyn FnMut(BuildProgress<'_>),
) -> Result<(Vec<u8>, Vec<String>), BuildError> {
    let source = find_source(directory, entry)?;
    let scratch = Scratch::new(directory)?;
    let (file, compilers) = match language(entry.kind) {
        Some(language) => (language.build)(&mut BuildJob {
            from: &entry.source,
            source: &source,
            world: entry.world,
            snapshot: entry.snapshot,
            scratch: &scratch,
            options,
            progress,
        })?,
        None => (source, Vec::new()),
    };
    let failed = FilesError::io(&file);
    let mut wasm = read_bounded(&file).map_err(|error| AuthorError::from(failed(error)))?;
    let (from, size) = (|| entry.source.clone(), wasm.len() as u64);
    if size > MAX_SIZE {
        let large = SurfaceError::TooLarge { size };
        return Err(BuildError::Surface(from(), large));
    }
    if entry.snapshot {
        let started = start::run(&wasm);
        wasm = started.map_err(|message| BuildError::Snapshot(from(), message))?;
    }
    let component = wrap::component(wasm, &scratch.worlds());
    let component = component.map_err(|message| BuildError::Wrap(from(), message))?;
    // Merges the core modules of the component, with two exceptions: a `wasm` source stays
    // unchanged, since the build has not made it, and Cargo's output has only one core module.
    let folded = match entry.kind {
        BuildKind::Wasm | BuildKind::Rust => None,
        _ => fold::component(&component).ok(),
    };
    Ok((folded.unwrap_or(component), compilers))
}

/// Returns the path of the source. No part of the path may be a link, since a link could lead out
/// of the bundle.
fn find_source(directory: &Path, entry: &BuildEntry) -> Result<PathBuf, BuildError> {
    let path = directory.join(&entry.source);
    match path.canonicalize() {
        Ok(found) if found == path => Ok(found),
        _ if entry.kind == BuildKind::Rust => Err(BuildError::NoCrate(path)),
        _ => Err(BuildError::SourceMissing(path)),
    }
}

/// Checks that the driver can have the snapshot that it requests.
fn check_snapshot(directory: &Path, entry: &BuildEntry) -> Result<(), BuildError> {
    if !entry.snapshot {
        return Ok(());
    }
    let files = files::collect(directory).map_err(AuthorError::from)?.files;
    let (documents, _) = rules::read(&files);
    let problem = lints::snapshot(&documents, entry);
    Ok(none(problem.into_iter().collect()).map_err(AuthorError::from)?)
}

/// Checks the component as a host does, as if it were at its place already.
fn check_rules(directory: &Path, entry: &BuildEntry, wasm: &Arc<[u8]>) -> Result<(), BuildError> {
    let mut files = files::collect(directory).map_err(AuthorError::from)?.files;
    files.insert(entry.output.clone(), Arc::clone(wasm));
    let (documents, _) = rules::read(&files);
    let mut problems = rules::components(&documents, &files);
    problems.retain(|problem| problem.is_error() && folder(&problem.file) == folder(&entry.output));
    Ok(none(problems).map_err(AuthorError::from)?)
}

/// The folder of a file of the bundle.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // Does not wait for a pipe at the file's path.
    let file = toolward_support::files::open_regular(path).map_err(std::io::Error::other)?;
    let mut bytes = Vec::new();
    // Reads one byte more than a component may have, so that a larger one is detected.
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
