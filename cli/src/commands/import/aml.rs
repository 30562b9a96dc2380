//! `import aml`: a bundle of tool definitions.

use std::path::{Path, PathBuf};

use clap::Args;
use toolward_adapters::aml::EXTENSION;
use toolward_adapters::import::{self, AmlFile, AmlOptions, NewBundle};

use super::{Budget, written};
use crate::codes::Code;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;

/// Largest definition, in bytes: the limit of a bundle's documents.
const MAX_BYTES: usize = 1024 * 1024;

/// How many definitions one bundle is made of.
const MAX_FILES: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The definitions, or directories with some
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The id of the bundle, and what the ids of its tools start with: send_email becomes PREFIX.send-email
    #[arg(long, value_name = "ID")]
    prefix: String,

    /// Who will sign it
    #[arg(long, default_value = "local")]
    publisher: String,

    /// Make tools of drafts, too
    #[arg(long)]
    allow_draft: bool,

    /// The version of AML that your platform approves [default: 1.2]
    #[arg(long, value_name = "VERSION")]
    spec_version: Option<String>,

    /// Where to; the directory must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let mut paths = Vec::new();
    for path in &arguments.files {
        match path.is_dir() {
            true => paths.extend(definitions(path)?),
            false => paths.push(path.clone()),
        }
    }
    if paths.len() > MAX_FILES {
        let message = format!("{} definitions, the limit is {MAX_FILES}", paths.len());
        return Err(Failure::new(Kind::Usage, Code::ImportTooMany, message));
    }
    let mut budget = Budget::default();
    let files = paths.iter().map(|path| read(path, &mut budget));
    let files: Vec<AmlFile> = files.collect::<Result<_>>()?;
    let options = AmlOptions {
        bundle: NewBundle {
            id: arguments.prefix.clone(),
            publisher: arguments.publisher.clone(),
            created: environment.created()?,
        },
        allow_draft: arguments.allow_draft,
        spec_version: arguments.spec_version.clone(),
    };
    let imported = match import::aml(&files, &options) {
        Ok(imported) => imported,
        // Its findings name the files.
        Err(error) => {
            let found = error.diagnostics().to_vec();
            return Err(Failure::of(Kind::Failed, error).with_diagnostics(found));
        }
    };
    let todo = "read the contracts, then";
    written(
        &imported,
        &arguments.output,
        &options.bundle.id,
        todo,
        output,
    )
}

/// The definitions in a directory, by name.
fn definitions(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(directory).map_err(|error| Failure::unreadable(directory, error))?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.ends_with(EXTENSION))
    };
    let mut found: Vec<PathBuf> = files.filter(named).take(MAX_FILES + 1).collect();
    found.sort();
    Ok(found)
}

fn read(path: &Path, budget: &mut Budget) -> Result<AmlFile> {
    let name = path.display().to_string();
    match String::from_utf8(budget.read(path, MAX_BYTES)?) {
        Ok(text) => Ok(AmlFile { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(Failure::unreadable(path, format!("byte {at} is not UTF-8")))
        }
    }
}
