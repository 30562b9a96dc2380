//! `build`: builds the components of a bundle with the tools of their languages, after consent to
//! build the directory. Also finds out which tools the components serve, for `build` and `test`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;

use toolward_author::BuildKind;
use toolward_author::build::{self, BuildOptions, BuildProgress, BuildTools, Built, Plan};
use toolward_bundle::{codes, files, text};
use toolward_host::{Broker, Host};
use toolward_operator::examples::{MissingTool, ToolProbe};
use toolward_operator::processes;
use toolward_signing::Digest;
use toolward_support::files::{Folder, Protection};

use crate::environment::search_path;
use crate::prelude::*;
use crate::{approve, helper};

/// The most lines of the build tools' output in the JSON error of a failed build.
const MAX_LOG_LINES: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The bundle's directory, with bundle.toml
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// A Cargo whose compiler has the target wasm32-wasip2
    ///
    /// [default: TOOLWARD_GUEST_CARGO, else cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<OsString>,

    /// Refuse to change the crates' Cargo.lock
    #[arg(long)]
    locked: bool,

    /// Use no network
    #[arg(long)]
    offline: bool,

    /// Where the build tools of languages other than Rust are installed
    ///
    /// [default: TOOLWARD_TOOLCHAIN, else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,

    /// Start the build tools without asking whether this directory may be built
    #[arg(long)]
    allow_build: bool,

    /// Let the build tools use the network, and read and write all that you can
    ///
    /// For compilers that need more than the sources and their own files.
    #[arg(long)]
    no_confine: bool,
}

/// Returns the places of the build tools, and the settings of Rust's tools.
pub(crate) fn tools(named: Option<&PathBuf>, context: &Context) -> BuildTools {
    let own = || Some(context.data_directory.as_ref()?.join("toolchain"));
    let named = named.map(|named| std::path::absolute(named).unwrap_or_else(|_| named.clone()));
    BuildTools {
        directory: named
            .or_else(|| context.toolchain_directory.clone())
            .or_else(own),
        path: search_path(),
        home: context.home.clone(),
        rust: context.rust.clone(),
    }
}

/// The guest toolchain's Cargo.
pub(crate) fn guest_cargo(named: Option<&OsString>, context: &Context) -> OsString {
    let cargo = named.or(context.guest_cargo.as_ref()).cloned();
    cargo.unwrap_or_else(|| OsString::from("cargo"))
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result {
    let options = BuildOptions {
        cargo: guest_cargo(arguments.guest_cargo.as_ref(), context),
        locked: arguments.locked,
        offline: arguments.offline,
        confine: !arguments.no_confine,
        tools: tools(arguments.toolchain.as_ref(), context),
    };
    let directory = &arguments.directory;
    let plan = Plan::read(directory).map_err(failed)?;
    let confined = options.confine && build::can_confine();
    confirm(&plan, arguments.allow_build, confined, context)?;
    let mut log = Vec::new();
    let mut progress = |progress: BuildProgress<'_>| match progress {
        BuildProgress::Unconfined => {
            context.note("note: this kernel can't confine builds: the tools reach all that you do");
        }
        BuildProgress::Started { from, number, of } => {
            context.note(format!("building {from} ({number} of {of})"));
        }
        BuildProgress::Line(line) => {
            let line = text::visible(line, 2000);
            context.note(format!("  {line}"));
            if context.json() && log.len() < MAX_LOG_LINES {
                log.push(line);
            }
        }
    };
    let built = build::build(&plan, &options, &mut progress).map_err(|error| {
        let mut failure = failed(error);
        if context.json() {
            failure.details.insert("log".to_owned(), json!(log));
        }
        failure
    })?;
    served(directory, context)?;
    report(&built, directory, confined, context)
}

/// Fails if a component does not serve a tool that its driver implements.
fn served(directory: &Path, context: &Context) -> Result {
    let missing = match missing_tools(directory, context) {
        Ok(missing) => missing,
        Err(failure) => {
            let (message, code) = (failure.message, failure.code);
            context.note(format!(
                "the components were not asked which tools they serve: {message} ({code})"
            ));
            return Ok(());
        }
    };
    if missing.is_empty() {
        return Ok(());
    }
    let tools = counted(missing.len(), "tool");
    let message = format!("no component serves {tools} of `implements`; what was built stays");
    let found = missing.into_iter().map(|one| one.diagnostic).collect();
    let code = codes::TOOL_NOT_SERVED.code;
    Err(Failure::with_code(Kind::Failed, code, message).with_diagnostics(found))
}

/// Reports what was built.
fn report(built: &[Built], directory: &Path, confined: bool, context: &Context) -> Result {
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for one in built {
        let (entry, surface) = (&one.entry, &one.surface);
        let mut value = json!({
            "kind": entry.kind.word(), "source": entry.source, "output": entry.output,
            "size": surface.size, "imports": surface.imports, "reproducible": one.reproducible,
            "compilers": one.compilers,
        });
        if let (BuildKind::Rust, Some(value)) = (entry.kind, value.as_object_mut()) {
            // This key dates from the time when Cargo was the only tool.
            value.insert("crate".to_owned(), json!(entry.source));
        }
        values.push(value);
        let place = directory.join(files::place(directory, &entry.output));
        let (place, size, imports) = (place.display(), surface.size, surface.imports.len());
        let varies = match one.reproducible {
            true => "",
            false => ", other bytes in each build",
        };
        lines.push(format!("{place} ({size} bytes, {imports} imports{varies})"));
    }
    let compilers = toolward_author::compilers(built);
    let compiler = (!compilers.is_empty()).then_some(&compilers);
    if let Some(compiler) = compiler {
        context.note(format!("compiled by {compiler}"));
    }
    let value = json!({
        "ok": true, "confined": confined, "built": values, "compiler": compiler,
    });
    context.result(&value, lines.join("\n"))
}

/// Asks for the consent to build a directory, unless a flag (`allowed`) gives it, and remembers it.
/// Does nothing if the consent was given before. A build starts programs on the directory's
/// sources, which may come from other people.
fn confirm(plan: &Plan, allowed: bool, confined: bool, context: &Context) -> Result {
    let programs = plan.programs();
    // Consent to build with all rights includes consent to build confined.
    let is_known =
        |confined| consent_mark(plan, confined, context).is_some_and(|mark| mark.is_file());
    if programs.is_empty() || is_known(false) || is_known(confined) {
        return Ok(());
    }
    let place = visible_line(&plan.directory.display().to_string(), 1000);
    let programs = programs.join(", ");
    let starts = format!("building {place} starts {programs} on its sources");
    let reach = match confined {
        true => "They read nothing in your home but the checkout and the toolchain.",
        false => "They run with your rights, and can read what you can read.",
    };
    // If the output is for a program, nothing is asked, since the text above the question is not
    // shown.
    if !allowed && !approve::agrees(&format!("{starts}. {reach}"), "Build it?", context) {
        let message = format!("{starts}: not confirmed");
        let failure = Failure::denied(Code::BuildUnconfirmed, message);
        return Err(failure.hint("if you trust its sources: --allow-build"));
    }
    remember_consent(plan, confined, context);
    Ok(())
}

/// Remembers that these programs may build this directory, either only confined or in any case. If
/// the consent can't be stored, the next build asks again.
pub(crate) fn remember_consent(plan: &Plan, confined: bool, context: &Context) {
    let Some(mark) = consent_mark(plan, confined, context) else {
        return;
    };
    let Some(folder) = mark.parent() else { return };
    if Folder::make(folder, Protection::Private).is_ok() {
        // It exists already if another process was faster.
        let _ = toolward_support::files::write_new(&mark, &[], 0o600);
    }
}

/// The file whose presence means that the directory may be built. The consent is for these programs
/// and for this directory, but not for another directory at the same path.
fn consent_mark(plan: &Plan, confined: bool, context: &Context) -> Option<PathBuf> {
    let directory = &plan.directory;
    let found = directory.metadata().ok()?;
    let (device, inode, programs) = (found.dev(), found.ino(), plan.programs().join(","));
    let mut key = format!("{device}:{inode}:{programs}").into_bytes();
    if confined {
        key.extend_from_slice(b":confined");
    }
    key.push(0);
    key.extend_from_slice(directory.as_os_str().as_bytes());
    let state = context.state_directory.as_ref()?;
    Some(state.join("builds").join(Digest::of(&key).to_string()))
}

/// Returns the probe, which asks these components for the tools that they serve, and a host without
/// grants for it. Returns `None` if the components can't be probed.
pub(super) fn probe(
    content: &Content,
    cache: &CompileCache,
    broker: &Broker,
) -> Result<Option<(ToolProbe, Host)>> {
    let probe = ToolProbe::of(content).map(|probe| {
        let host = cache.host(probe.host(), broker)?;
        Ok::<_, Failure>((probe, host))
    });
    probe.transpose()
}

/// Probes the components of a bundle's source directory in this process, which is confined from
/// then on. A bundle whose documents have errors is not probed, since `check` lists the errors.
fn missing_tools(directory: &Path, context: &Context) -> Result<Vec<MissingTool>> {
    let Ok(content) = Content::from_dev(directory) else {
        return Ok(Vec::new());
    };
    let cache = CompileCache::default();
    let broker = cache.broker(&helper::compiler()?, context)?;
    let Some((probe, host)) = probe(&content, &cache, &broker)? else {
        return Ok(Vec::new());
    };
    broker.start()?;
    let confinement = host.requirements().confinement();
    processes::confine(confinement, &broker, &Trust::default(), context)?;
    let runtime = runtime()?;
    let missing = runtime.block_on(probe.ask(&host));
    runtime.shutdown_background();
    Ok(missing)
}
