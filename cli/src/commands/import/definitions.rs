//! `import aml` and `import runloop`: make bundles from tool definitions, or from a hand-written
//! tools.json.

use std::collections::BTreeMap;

use toolward_adapters::aml::EXTENSION;
use toolward_adapters::import::{self, AmlFile, AmlOptions, NewBundle, RunloopFiles};

use super::{Budget, MAX_TOTAL, failed, files_in, written};
use crate::prelude::*;

/// Largest definition of AML, in bytes: the limit of a bundle's documents.
const MAX_AML_BYTES: usize = 1024 * 1024;

/// Largest file of Runloop, in bytes.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The most definitions or schemas of one bundle.
const MAX_FILES: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct AmlFlags {
    /// The definitions, or directories with definitions
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The id of the bundle, and what the ids of its tools start with: send_email becomes
    /// PREFIX.send-email
    #[arg(long, value_name = "ID")]
    prefix: String,

    /// The publisher who will sign the bundle
    #[arg(long, default_value = "local")]
    publisher: String,

    /// Also make tools from definitions that are drafts
    #[arg(long)]
    allow_draft: bool,

    /// The version of AML that your platform approves [default: 1.2]
    #[arg(long, value_name = "VERSION")]
    spec_version: Option<String>,

    /// The directory to make; it must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl AmlFlags {
    pub(super) fn run(&self, context: &Context) -> Result {
        let mut paths = Vec::new();
        for path in &self.files {
            match path.is_dir() {
                true => paths.extend(files_in(path, MAX_FILES, |name| name.ends_with(EXTENSION))?),
                false => paths.push(path.clone()),
            }
        }
        if paths.len() > MAX_FILES {
            let message = format!("{} definitions, the limit is {MAX_FILES}", paths.len());
            return Err(Failure::usage(Code::ImportTooMany, message));
        }
        let mut budget = Budget(MAX_TOTAL);
        let files = paths.iter().map(|path| read(path, &mut budget));
        let files: Vec<AmlFile> = files.collect::<Result<_>>()?;
        let options = AmlOptions {
            bundle: NewBundle {
                id: self.prefix.clone(),
                publisher: self.publisher.clone(),
                created: context.created()?,
            },
            allow_draft: self.allow_draft,
            spec_version: self.spec_version.clone(),
        };
        // The findings name their files, so the failure needs no `in_file`.
        let imported = import::aml(&files, &options).map_err(failed)?;
        let todo = "read the contracts, then";
        written(&imported, &self.output, &options.bundle.id, todo, context)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Runloop {
    /// The agent's directory: tools.json of version 1, and schemas/ and policy.caps if they exist
    directory: PathBuf,

    /// The id of the bundle [default: the directory's name]
    #[arg(long)]
    id: Option<String>,

    /// The publisher who will sign the bundle
    #[arg(long, default_value = "local")]
    publisher: String,

    /// The directory to make; it must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl Runloop {
    pub(super) fn run(&self, context: &Context) -> Result {
        let directory = &self.directory;
        let files = RunloopFiles {
            tools_json: file::read(&directory.join("tools.json"), MAX_BYTES)?,
            schemas: schemas(&directory.join("schemas"), &mut Budget(MAX_TOTAL))?,
            policy_caps: caps(&directory.join("policy.caps"))?,
        };
        let whole = directory.canonicalize();
        let whole = whole.map_err(|error| Failure::unreadable(directory, error))?;
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        let id = self.id.clone();
        let options = NewBundle {
            id: id.unwrap_or_else(|| name.to_ascii_lowercase().replace('_', "-")),
            publisher: self.publisher.clone(),
            created: context.created()?,
        };
        let imported = import::runloop(&files, &options);
        let imported = imported.map_err(|error| failed(error).in_file(directory))?;
        let todo = "read tools.json, then";
        written(&imported, &self.output, &options.id, todo, context)
    }
}

fn read(path: &Path, budget: &mut Budget) -> Result<AmlFile> {
    let name = path.display().to_string();
    match String::from_utf8(budget.read(path, MAX_AML_BYTES)?) {
        Ok(text) => Ok(AmlFile { name, text }),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(Failure::unreadable(path, format!("byte {at} is not UTF-8")))
        }
    }
}

/// The policy of the agent, if it exists.
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
    // Ignores files whose names a bundle can't contain.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_schema =
        |name: &str| name.ends_with(".json") && !name.starts_with('.') && name.bytes().all(plain);
    let paths = files_in(folder, MAX_FILES, is_schema)?;
    if paths.len() > MAX_FILES {
        let message = format!("more than {MAX_FILES} schemas");
        return Err(Failure::usage(Code::ImportTooMany, message));
    }
    let read = paths.iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((name.into_owned(), budget.read(path, MAX_BYTES)?))
    });
    read.collect()
}
