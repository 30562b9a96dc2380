//! `build`: the components of a bundle, with the tools of their languages.

pub(crate) mod consent;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolward_author::BuildKind;
use toolward_author::build::{self, BuildProgress, Built, Options, Plan, Tools};
use toolward_bundle::{codes, files, text};

use super::probe;
use crate::environment::{Environment, search_path};
use crate::failure::{Failure, Kind, Result};
use crate::output::{Output, counted};

/// How many of the tools' lines stand in the error of a failed build.
const MAX_LOG_LINES: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The bundle's directory, with bundle.toml
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// A Cargo whose compiler has the target wasm32-wasip2 [default:
    /// TOOLWARD_GUEST_CARGO, else cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<OsString>,

    /// Refuse to change the crates' Cargo.lock
    #[arg(long)]
    locked: bool,

    /// Use no network
    #[arg(long)]
    offline: bool,

    /// Where the tools of other languages are installed [default: TOOLWARD_TOOLCHAIN,
    /// else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,

    /// Start the tools without asking whether this directory may be built
    #[arg(long)]
    allow_build: bool,

    /// Let the tools read and write all that you can, and use the network: for
    /// compilers that need more than the sources and their own files
    #[arg(long)]
    no_confine: bool,
}

/// Where the tools of other languages come from.
pub(crate) fn tools(named: Option<&PathBuf>, environment: &Environment) -> Tools {
    let own = || Some(environment.data_directory.as_ref()?.join("toolchain"));
    let named = named.map(|named| std::path::absolute(named).unwrap_or_else(|_| named.clone()));
    Tools {
        directory: named
            .or_else(|| environment.toolchain_directory.clone())
            .or_else(own),
        path: search_path(),
        home: environment.home.clone(),
        rust: environment.rust.clone(),
    }
}

/// The guest toolchain's Cargo.
pub(crate) fn guest_cargo(named: Option<&OsString>, environment: &Environment) -> OsString {
    named
        .or(environment.guest_cargo.as_ref())
        .cloned()
        .unwrap_or_else(|| OsString::from("cargo"))
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let options = Options {
        cargo: guest_cargo(arguments.guest_cargo.as_ref(), environment),
        locked: arguments.locked,
        offline: arguments.offline,
        confine: !arguments.no_confine,
        tools: tools(arguments.toolchain.as_ref(), environment),
    };
    let directory = &arguments.directory;
    let plan = Plan::read(directory).map_err(|error| Failure::of(Kind::Failed, error))?;
    let confined = options.confine && build::can_confine();
    let consent = consent::Asked {
        allowed: arguments.allow_build,
        confined,
    };
    consent::obtain(&plan, &consent, environment, output)?;
    let mut log = Vec::new();
    let mut progress = |progress: BuildProgress<'_>| match progress {
        BuildProgress::Unconfined => {
            output.note("note: this kernel can't confine builds: the tools reach all that you do");
        }
        BuildProgress::Started { from, number, of } => {
            output.note(format!("building {from} ({number} of {of})"));
        }
        BuildProgress::Line(line) => {
            let line = text::visible(line, 2000);
            output.note(format!("  {line}"));
            if output.json() && log.len() < MAX_LOG_LINES {
                log.push(line);
            }
        }
        _ => {}
    };
    let built = build::build(&plan, &options, &mut progress).map_err(|error| {
        let mut failure = Failure::of(Kind::Failed, error);
        if output.json() {
            failure.details.insert("log".to_owned(), json!(log));
        }
        failure
    })?;
    served(directory, environment, output)?;
    report(&built, directory, confined, output)
}

/// Fails where a component does not serve a tool that its driver implements.
fn served(directory: &Path, environment: &Environment, output: &Output) -> Result {
    let missing = match probe::under_work(directory, environment, output) {
        Ok(missing) => missing,
        Err(failure) => {
            output.note(format!(
                "the components were not asked which tools they serve: {} ({})",
                failure.message, failure.code
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

/// Says what was built.
fn report(built: &[Built], directory: &Path, confined: bool, output: &mut Output) -> Result {
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for one in built {
        let (entry, surface) = (&one.entry, &one.surface);
        let mut value = json!({
            "kind": entry.kind.word(), "source": entry.source, "output": entry.output,
            "size": surface.size, "imports": surface.imports, "reproducible": one.reproducible,
            "compilers": one.compilers,
        });
        if let (BuildKind::Rust, Some(value)) = (entry.kind, value.as_object_mut()) {
            // The key from when there was only Cargo.
            value.insert("crate".to_owned(), json!(entry.source));
        }
        values.push(value);
        let place = directory.join(files::place(directory, &entry.output));
        let varies = match one.reproducible {
            true => "",
            false => ", other bytes in each build",
        };
        lines.push(format!(
            "{} ({} bytes, {} imports{varies})",
            place.display(),
            surface.size,
            surface.imports.len()
        ));
    }
    let compilers = toolward_author::compilers(built);
    let compiler = (!compilers.is_empty()).then_some(&compilers);
    if let Some(compiler) = compiler {
        output.note(format!("compiled by {compiler}"));
    }
    let value = json!({
        "ok": true, "confined": confined, "built": values, "compiler": compiler,
    });
    output.result(&value, lines.join("\n"))
}
