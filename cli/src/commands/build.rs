//! `build`: the components of a bundle, with the guest toolchain.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::build::{self, Options, Progress};
use toolward_bundle::text;

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure};
use crate::output::Output;

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
}

/// The guest toolchain's Cargo.
pub(crate) fn guest_cargo(named: Option<&OsString>, environment: &Environment) -> OsString {
    named
        .or(environment.guest_cargo.as_ref())
        .cloned()
        .unwrap_or_else(|| OsString::from("cargo"))
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let options = Options {
        cargo: guest_cargo(arguments.guest_cargo.as_ref(), environment),
        locked: arguments.locked,
        offline: arguments.offline,
    };
    let mut log = Vec::new();
    let mut progress = |progress: Progress<'_>| match progress {
        Progress::Started { krate, number, of } => {
            output.note(format!("building {krate} ({number} of {of})"));
        }
        Progress::Line(line) => {
            let line = text::visible(line, 2000);
            output.note(format!("  {line}"));
            log.push(line);
        }
        _ => {}
    };
    let built = build::build(&arguments.directory, &options, &mut progress).map_err(|error| {
        let mut failure = failure::built(error);
        if output.json() {
            failure.details.insert("log".to_owned(), json!(log));
        }
        failure
    })?;
    if output.json() {
        let built: Vec<_> = built
            .iter()
            .map(|one| {
                json!({
                    "crate": one.krate,
                    "output": one.output,
                    "size": one.surface.size,
                    "imports": one.surface.imports,
                })
            })
            .collect();
        output.value(&json!({ "ok": true, "built": built }))?;
        return Ok(Exit::Fine);
    }
    for one in &built {
        output.line(format!(
            "{} ({} bytes, {} imports)",
            arguments.directory.join(&one.output).display(),
            one.surface.size,
            one.surface.imports.len()
        ))?;
    }
    Ok(Exit::Fine)
}
