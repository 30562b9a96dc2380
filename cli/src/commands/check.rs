//! `check`: diagnostics over a file, a bundle, or a directory of bundles.

mod explain;

use std::path::{Path, PathBuf};

use clap::Args;
use toolward_author::against::Earlier;
use toolward_author::check::{CheckOptions, CheckReport, ImportFormat, check_with};

use crate::failure::{Code, Exit, Failure, Result, packed};
use crate::output::{Output, counted};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle's directory, a directory of bundles, or one file
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Fail on warnings too
    #[arg(long)]
    deny_warnings: bool,

    /// Compare the contracts with an earlier release: a bundle's directory or archive
    #[arg(long, value_name = "BUNDLE")]
    against: Option<PathBuf>,

    /// Say what a code means and what to do about it, instead
    #[arg(long, value_name = "CODE", conflicts_with_all = ["path", "deny_warnings", "against"])]
    explain: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit> {
    if let Some(code) = &arguments.explain {
        explain::run(code, output)?;
        return Ok(Exit::Fine);
    }
    let report = match &arguments.against {
        Some(old) => against(&arguments.path, old)?,
        None => check_with(&arguments.path, &options(None)),
    };
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

/// Other hosts' formats.
#[cfg(feature = "adapters")]
const FORMATS: &[&dyn ImportFormat] = toolward_adapters::import::FORMATS;
#[cfg(not(feature = "adapters"))]
const FORMATS: &[&dyn ImportFormat] = &[];

fn options(earlier: Option<&Earlier>) -> CheckOptions<'_> {
    CheckOptions {
        earlier,
        formats: FORMATS,
    }
}

fn against(path: &Path, old: &Path) -> Result<CheckReport> {
    let earlier = Earlier::read(old).map_err(packed)?;
    let report = check_with(path, &options(Some(&earlier)));
    // Without a readable bundle.toml there is no id, and an error has the reason.
    if report.compared == 0 && report.errors() == 0 {
        let message = format!(
            "{} has no bundle with the id of {}, {}",
            path.display(),
            old.display(),
            earlier.id()
        );
        let failure = Failure::usage(Code::BundleOther, message);
        return Err(failure.hint("name an earlier release of the bundle that is checked"));
    }
    Ok(report)
}
