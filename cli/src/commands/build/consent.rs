//! The consent to build a directory: a build starts programs on its sources, which may
//! be somebody else's.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use toolward_author::build::Plan;
use toolward_bundle::text::visible_line;
use toolward_signing::Digest;
use toolward_support::files::{Folder, Protection};

use crate::codes::Code;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;

/// What is asked.
pub(crate) struct Asked {
    /// Whether a flag has confirmed it.
    pub(crate) allowed: bool,
    /// Whether the programs will be confined.
    pub(crate) confined: bool,
}

/// Asks, unless it was confirmed before or a flag confirms it, and remembers it.
pub(crate) fn obtain(
    plan: &Plan,
    asked: &Asked,
    environment: &Environment,
    output: &mut Output,
) -> Result {
    let programs = plan.programs();
    // Whoever let it run with all rights has also let it run with few.
    let known = || {
        [false, asked.confined]
            .into_iter()
            .any(|confined| mark(plan, confined, environment).is_some_and(|mark| mark.is_file()))
    };
    if programs.is_empty() || known() {
        return Ok(());
    }
    if asked.allowed {
        remember(plan, asked.confined, environment);
        return Ok(());
    }
    let place = plan.directory().display().to_string();
    let starts = format!(
        "building {} starts {} on its sources",
        visible_line(&place, 1000),
        programs.join(", ")
    );
    let unconfirmed = || {
        let message = format!("{starts}: not confirmed");
        Failure::new(Kind::Denied, Code::BuildUnconfirmed, message)
            .hint("if you trust its sources: --allow-build")
    };
    // Output for a program has no notes, so that a person would be asked about nothing.
    if !has_terminal() || output.json() {
        return Err(unconfirmed());
    }
    let reach = match asked.confined {
        true => "They read nothing in your home but the checkout and the toolchain.",
        false => "They run with your rights, and can read what you can read.",
    };
    output.say(format!("{starts}. {reach}"));
    match dialoguer::Confirm::new()
        .with_prompt("Build it?")
        .default(false)
        .interact()
    {
        Ok(true) => {
            remember(plan, asked.confined, environment);
            Ok(())
        }
        _ => Err(unconfirmed()),
    }
}

/// Remembers that these programs may build this directory, only confined or in any case.
/// Where it can't, the next build asks again.
pub(crate) fn remember(plan: &Plan, confined: bool, environment: &Environment) {
    let Some(mark) = mark(plan, confined, environment) else {
        return;
    };
    let Some(folder) = mark.parent() else { return };
    if Folder::make(folder, Protection::Private).is_ok() {
        // It exists already where another process was as quick.
        let _ = toolward_support::files::write_new(&mark, &[], 0o600);
    }
}

/// The file whose presence says that the directory may be built: this very one, not
/// another that takes its place, and by these programs.
fn mark(plan: &Plan, confined: bool, environment: &Environment) -> Option<PathBuf> {
    let directory = plan.directory();
    let found: Metadata = directory.metadata().ok()?;
    let which = format!(
        "{}:{}:{}",
        found.dev(),
        found.ino(),
        plan.programs().join(",")
    );
    let mut key = which.into_bytes();
    if confined {
        key.extend_from_slice(b":confined");
    }
    key.push(0);
    key.extend_from_slice(directory.as_os_str().as_bytes());
    let state = environment.state_directory.as_ref()?;
    Some(state.join("builds").join(Digest::of(&key).to_string()))
}
