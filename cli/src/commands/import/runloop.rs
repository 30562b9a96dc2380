//! `import runloop`: a bundle of a hand-written tools.json.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use toolward_adapters::import::{self, NewBundle, RunloopFiles};
use toolward_operator::file;

use super::{Budget, written};
use crate::codes::Code;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;

/// Largest file, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How many schemas there may be.
const MAX_SCHEMAS: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The agent's directory: tools.json of version 1, and schemas/ and policy.caps if they exist
    directory: PathBuf,

    /// The id of the bundle [default: the directory's name]
    #[arg(long)]
    id: Option<String>,

    /// Who will sign it
    #[arg(long, default_value = "local")]
    publisher: String,

    /// Where to; the directory must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let directory = &arguments.directory;
    let files = RunloopFiles {
        tools_json: file::read(&directory.join("tools.json"), MAX_BYTES)?,
        schemas: schemas(&directory.join("schemas"), &mut Budget::default())?,
        policy_caps: caps(&directory.join("policy.caps"))?,
    };
    let whole = directory.canonicalize();
    let whole = whole.map_err(|error| Failure::unreadable(directory, error))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let id = arguments.id.clone();
    let bundle = NewBundle {
        id: id.unwrap_or_else(|| name.to_ascii_lowercase().replace('_', "-")),
        publisher: arguments.publisher.clone(),
        created: environment.created()?,
    };
    let imported = import::runloop(&files, &bundle).map_err(|error| {
        let found = error.diagnostics().to_vec();
        Failure::of(Kind::Failed, error)
            .with_diagnostics(found)
            .in_file(directory)
    })?;
    let todo = "read tools.json, then";
    written(&imported, &arguments.output, &bundle.id, todo, output)
}

/// The policy of the agent, where there is one.
fn caps(path: &Path) -> Result<Option<String>> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let text = String::from_utf8(file::read(path, MAX_BYTES)?);
    text.map(Some)
        .map_err(|_| Failure::unreadable(path, "it is not UTF-8"))
}

/// The JSON files of a folder, by name.
fn schemas(folder: &Path, budget: &mut Budget) -> Result<BTreeMap<String, Vec<u8>>> {
    if folder.symlink_metadata().is_err() {
        return Ok(BTreeMap::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::unreadable(folder, error))?;
    let mut found = BTreeMap::new();
    for entry in entries.filter_map(std::result::Result::ok) {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        // What no bundle can name is no schema of one.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !name.ends_with(".json") || name.starts_with('.') || !name.bytes().all(plain) {
            continue;
        }
        if found.len() == MAX_SCHEMAS {
            let message = format!("more than {MAX_SCHEMAS} schemas");
            return Err(Failure::new(Kind::Usage, Code::ImportTooMany, message));
        }
        found.insert(name, budget.read(&entry.path(), MAX_BYTES)?);
    }
    Ok(found)
}
