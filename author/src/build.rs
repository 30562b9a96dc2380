//! Builds the components of a bundle under work, each `[[build]]` of `bundle.toml` with
//! the tools of its language, and copies what comes out to its place. A build installs
//! nothing: an error names the command that does.

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

/// What builds a kind of source; `None` for a module that is built already.
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

/// What `new` writes, by the kind of source.
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
    /// Confine the programs that are started, where the kernel can ([`can_confine`]):
    /// below the user's home they read the checkout and the toolchain only, they write
    /// to scratch and target directories and caches, and have no network.
    pub confine: bool,
    /// The tools of other languages.
    pub tools: BuildTools,
}

/// Whether this kernel can confine a build: it has Landlock (Linux 5.13).
pub use toolward_confine::build_profile::is_available as can_confine;

/// What a build reports while it runs.
#[derive(Debug, Clone, Copy)]
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

/// What is going to be built, read once: the build is what the user confirmed,
/// even if the files change meanwhile.
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
    /// When `bundle.toml` is missing or invalid, or has no `[[build]]`.
    pub fn read(directory: &Path) -> Result<Self, BuildError> {
        // A missing directory has no bundle.toml, which is the error.
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

    /// The programs that are started, by name, each once.
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
/// At the first build that fails; components built before it stay.
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

/// The tools that build a kind of source for bundles in `directory`, in words. Of Rust's tools
/// it builds an empty crate, without network, and confined where the kernel can; it starts no
/// others.
///
/// # Errors
///
/// Which tool is missing, with the command that installs it; what is wrong with Cargo.
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
    // What the host's engine does not run is refused here and not at its first call.
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

/// The component that the source becomes, and how the tools that make it name themselves.
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
    // What others made is kept, and Cargo links one module.
    let folded = match entry.kind {
        BuildKind::Wasm | BuildKind::Rust => None,
        _ => fold::component(&component).ok(),
    };
    Ok((folded.unwrap_or(component), compilers))
}

/// The source's place, without links on the way: a link could lead out of the bundle.
fn find_source(directory: &Path, entry: &BuildEntry) -> Result<PathBuf, BuildError> {
    let path = directory.join(&entry.source);
    match path.canonicalize() {
        Ok(found) if found == path => Ok(found),
        _ if entry.kind == BuildKind::Rust => Err(BuildError::NoCrate(path)),
        _ => Err(BuildError::SourceMissing(path)),
    }
}

/// Checks that the driver can have the snapshot that it asks for.
fn check_snapshot(directory: &Path, entry: &BuildEntry) -> Result<(), BuildError> {
    if !entry.snapshot {
        return Ok(());
    }
    let files = files::collect(directory).map_err(AuthorError::from)?.files;
    let (documents, _) = rules::read(&files);
    let problem = lints::snapshot(&documents, entry);
    Ok(none(problem.into_iter().collect()).map_err(AuthorError::from)?)
}

/// Checks the component as a host does, as if it lay at its place already.
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
    // A pipe in the file's place is not waited for.
    let file = toolward_support::files::open_regular(path).map_err(std::io::Error::other)?;
    let mut bytes = Vec::new();
    // One byte more than a component may have, so that a larger one is seen.
    file.take(MAX_SIZE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
