//! Configuration: `toolward.toml` of the user's configuration directory or of
//! `--config`, and what `--policy` puts on top. Never a file of the current
//! directory, never one of a bundle.

use std::io;
use std::path::{Path, PathBuf};

use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_host::confine::SystemCalls;
use toolward_host::secrets;
use toolward_policy::{ContextSource, Policy, PolicyError};
use toolward_signing::trust::{TrustSettings, TrustStore};

use crate::confine;
use crate::environment::Environment;
use crate::error::Error;
use crate::file;
use crate::trust::Trust;

/// The file in the configuration directory.
const CONFIG_FILE: &str = "toolward.toml";

/// Longest key or configuration file, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// Files of policies on top of the configured one. What one of them denies is denied.
#[derive(Debug, Default, Clone)]
pub struct PolicyFiles(pub Vec<PathBuf>);

/// A configuration or policy file, read once.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl ConfigFile {
    /// Reads a file of at most 1 MiB.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            path: path.to_owned(),
            text: read_text(path)?,
        })
    }

    /// The user's own, if it is there.
    pub fn of_user(environment: &Environment) -> Result<Option<Self>, Error> {
        match default_config(environment).filter(|path| !is_missing(path)) {
            Some(path) => Self::read(&path).map(Some),
            None => Ok(None),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whom it trusts; key files are named relative to it.
    pub fn trust_store(&self) -> Result<TrustStore, Error> {
        self.trust_and_keys().0
    }

    /// What it says beside its policy: whom it trusts, and its channels. The policy
    /// knows all other tables, or refuses them.
    pub fn beside_policy(&self) -> toml::Table {
        let table = self.text.parse::<toml::Table>().unwrap_or_default();
        let known = ["publisher", "trust", "channel"];
        let beside = table.into_iter();
        let beside = beside.filter(|(name, _)| known.contains(&name.as_str()));
        beside.collect()
    }

    /// The files that keys are read from.
    pub fn key_files(&self) -> Vec<PathBuf> {
        self.trust_and_keys().1
    }

    /// How strictly trust is taken; key files are named relative to it.
    pub fn trust_settings(&self) -> Result<TrustSettings, Error> {
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let mut key_file = |name: &str| {
            read_text(&folder.join(name)).map_err(|failure| std::io::Error::other(failure.message))
        };
        TrustSettings::from_toml_with(&self.text, &mut key_file).map_err(|refusal| {
            let message = format!("{}: {refusal}", self.path.display());
            let failure = Error::usage(refusal.code(), message);
            match refusal.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })
    }

    fn trust_and_keys(&self) -> (Result<TrustStore, Error>, Vec<PathBuf>) {
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let mut files = Vec::new();
        let mut key_file = |name: &str| {
            let path = folder.join(name);
            let read = read_text(&path);
            files.push(path);
            read.map_err(|failure| std::io::Error::other(failure.message))
        };
        let store = TrustStore::from_toml_with(&self.text, &mut key_file);
        let store = store.map_err(|refusal| {
            let message = format!("{}: {refusal}", self.path.display());
            let failure = Error::usage(refusal.code(), message);
            match refusal.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        });
        (store, files)
    }

    /// Which system calls a confined process keeps.
    pub fn system_calls(&self) -> Result<SystemCalls, Error> {
        Ok(confine::setting(&self.text, &self.path)?.unwrap_or_default())
    }

    /// What it grants; files and directories are named relative to it.
    pub fn policy(&self) -> Result<Policy, Error> {
        let folder = match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let folder = folder
            .canonicalize()
            .map_err(|error| Error::unreadable(&self.path, error))?;
        let name = self.path.display().to_string();
        Policy::from_toml_in(&self.text, &name, &folder).map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &PolicyError) -> Error {
        let message = format!("{}: {error}", self.path.display());
        let hint = error.hint().unwrap_or(
            "the page `The policy file` of the book has every table and key; look at it again \
             with `toolward policy check FILE`",
        );
        let failure = Error::usage(error.code(), message).hint(hint);
        let number = |found: Option<usize>| u32::try_from(found?).ok();
        match (number(error.line()), number(error.column())) {
            (Some(line), Some(column)) => failure.with_diagnostics(&[Diagnostic {
                code: error.code(),
                severity: Severity::Error,
                message: error.message().to_owned(),
                file: self.path.display().to_string(),
                line,
                column,
                hint: error.hint().map(str::to_owned),
            }]),
            _ => failure,
        }
    }
}

/// What the operator grants, of all files together.
#[derive(Debug)]
pub struct Granted {
    /// All files in one.
    pub policy: Policy,
    /// The files that it was read from.
    pub files: Vec<PathBuf>,
    /// The file that takes lines which are missing.
    pub place: PathBuf,
}

impl Granted {
    /// Reads all policies: the configured one, then those of the flags.
    pub fn read(
        trust: &Trust,
        policies: &PolicyFiles,
        environment: &Environment,
    ) -> Result<Self, Error> {
        let configured = trust.file(environment)?;
        let mut granted = Self {
            policy: Policy::empty(),
            files: Vec::new(),
            place: default_config(environment).unwrap_or_else(|| CONFIG_FILE.into()),
        };
        if let Some(file) = configured {
            granted.add(file)?;
            // One that is wrong is said before anything is done.
            file.system_calls()?;
        }
        for path in &policies.0 {
            let file = ConfigFile::read(path)?;
            granted.add(&file)?;
            confine::refuse_setting(&file.text, &file.path)?;
        }
        // Once: what changes later counts for the next process.
        let variable = environment.variable;
        let mut value = |source: &ContextSource| context_value(source, variable);
        granted.policy = granted.policy.with_contexts(&mut value);
        Ok(granted)
    }

    fn add(&mut self, file: &ConfigFile) -> Result<(), Error> {
        let earlier = std::mem::take(&mut self.policy);
        // What both say, though each may say it, is wrong in the later one.
        let joined = earlier.layer(file.policy()?);
        self.policy = joined.map_err(|error| file.broken(&error))?;
        file.path().clone_into(&mut self.place);
        self.files.push(self.place.clone());
        Ok(())
    }
}

/// The text of a value of `[[context]]`, as that of a secret is read.
fn context_value(
    source: &ContextSource,
    variable: fn(&str) -> Option<String>,
) -> Result<String, String> {
    let bytes = match source {
        ContextSource::Env(name) => {
            let value = variable(name);
            return value.ok_or_else(|| format!("the environment variable {name} is not set"));
        }
        ContextSource::File(path) => secrets::read_file(Path::new(path))
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("{path}: there is no such file"))?,
        ContextSource::Written(_) => return Err("it is written in the policy".to_owned()),
    };
    String::from_utf8(bytes.bytes().to_vec()).map_err(|_| "it is not UTF-8".to_owned())
}

/// Where the user's configuration is.
pub fn default_config(environment: &Environment) -> Option<PathBuf> {
    environment
        .config_directory
        .as_ref()
        .map(|directory| directory.join(CONFIG_FILE))
}

/// Whether nothing is there under that name. A link that leads nowhere, or a
/// directory that can't be looked into, may hold what denies: it is not missing.
pub fn is_missing(path: &Path) -> bool {
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if !path.symlink_metadata().is_err_and(|error| absent(&error)) {
        return false;
    }
    // The closest directory that has an entry at all has to be there, too.
    let above = path.ancestors().skip(1);
    let mut entries = above.filter(|above| above.symlink_metadata().is_ok());
    entries.next().is_none_or(Path::is_dir)
}

/// Reads a small text file of the user's. Refuses anything but a regular file.
pub fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(file::read(path, MAX_FILE_BYTES)?)
        .map_err(|error| Error::unreadable(path, error))
}
