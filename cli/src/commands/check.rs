//! `check`: diagnostics over a file, a bundle, or a directory of bundles.

use std::path::PathBuf;

use clap::Args;
use toolward_author::check::check_path;

use crate::failure::{Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle's directory, a directory of bundles, or one file
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Fail on warnings too
    #[arg(long)]
    deny_warnings: bool,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let report = check_path(&arguments.path);
    for diagnostic in &report.diagnostics {
        if output.json() {
            output.value(diagnostic)?;
        } else {
            output.diagnostic(diagnostic)?;
        }
    }
    let (errors, warnings) = (report.errors(), report.warnings());
    output.note(format!(
        "{}: {} checked, {}, {}",
        arguments.path.display(),
        counted(report.documents, "document"),
        counted(errors, "error"),
        counted(warnings, "warning")
    ));
    let failed = errors > 0 || (arguments.deny_warnings && warnings > 0);
    Ok(if failed { Exit::Failed } else { Exit::Fine })
}

/// `1 error`, `2 errors`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
