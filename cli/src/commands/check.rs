//! `check`: diagnostics over a file, a bundle, or a directory of bundles.

mod explain;

use std::path::PathBuf;

use clap::Args;
use toolward_author::check::check_path;

use crate::failure::{Exit, Result};
use crate::output::{Output, counted};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle's directory, a directory of bundles, or one file
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Fail on warnings too
    #[arg(long)]
    deny_warnings: bool,

    /// Say what a code means and what to do about it, instead
    #[arg(long, value_name = "CODE", conflicts_with_all = ["path", "deny_warnings"])]
    explain: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit> {
    if let Some(code) = &arguments.explain {
        explain::run(code, output)?;
        return Ok(Exit::Fine);
    }
    let report = check_path(&arguments.path);
    for diagnostic in &report.diagnostics {
        output.diagnostic(diagnostic)?;
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
