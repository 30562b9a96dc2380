//! Configuration: `toolward.toml` in the user's configuration directory or from `--config`, and
//! policy files. Files in the current directory or in a bundle are read only if a flag names them.

use std::io;
use std::path::{Path, PathBuf};

use toolward_contract::diagnostic::{self, Diagnostic, Severity};
use toolward_host::confine::SystemCalls;
use toolward_policy::{OTHER_TABLES, Policy, PolicyError, table_key};
use toolward_signing::Refusal;
use toolward_signing::trust::{TrustSettings, TrustStore};

use crate::file;
use crate::ledger::{self, LedgerSettings};
use crate::registries::{self, Registries};
use crate::settings;
use crate::{Environment, Error, Kind, Result};

/// The file in the configuration directory.
pub(crate) const CONFIG_FILE: &str = "toolward.toml";

/// Longest key or configuration file, in bytes.
const MAX_FILE_BYTES: usize = 1024 * 1024;

/// A configuration or policy file, read once.
///
/// ```
/// use toolward_operator::config::ConfigFile;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("toolward.toml");
/// std::fs::write(&path, "[[grant]]\npublisher = \"acme\"\n")?;
/// let file = ConfigFile::read(&path)?;
/// assert_eq!(file.policy()?.grants().count(), 1);
/// assert_eq!(file.trust_store()?.publishers().count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl ConfigFile {
    /// Reads a file of at most 1 MiB.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            text: read_text(path)?,
        })
    }

    /// Reads the configuration file in the user's configuration directory, if it exists.
    pub fn of_user(environment: &Environment) -> Result<Option<Self>> {
        let path = default_config(environment).filter(|path| !is_missing(path));
        path.map(|path| Self::read(&path)).transpose()
    }

    /// Reads the trust store that the file declares. Paths of key files are relative to the file.
    pub fn trust_store(&self) -> Result<TrustStore> {
        self.with_keys(TrustStore::from_toml_with).0
    }

    /// Returns the tables outside the policy for which a running server accepts no change.
    pub fn beside_policy(&self) -> toml::Table {
        let mut table = self.text.parse::<toml::Table>().unwrap_or_default();
        let fixed = OTHER_TABLES.iter().filter(|(_, is_fixed)| *is_fixed);
        let fixed: Vec<&str> = fixed.map(|(name, _)| table_key(name)).collect();
        table.retain(|name, _| fixed.contains(&name));
        table
    }

    /// Returns the key files that the file names.
    pub fn key_files(&self) -> Vec<PathBuf> {
        self.with_keys(TrustStore::from_toml_with).1
    }

    /// Reads the settings of `[trust]` and the channels. Paths of key files are relative to the
    /// file.
    pub fn trust_settings(&self) -> Result<TrustSettings> {
        self.with_keys(TrustSettings::from_toml_with).0
    }

    /// Returns the result of `read` for the text and its key files, and the paths of the key files.
    fn with_keys<T>(
        &self,
        read: impl FnOnce(&str, &mut dyn FnMut(&str) -> io::Result<String>) -> Result<T, Refusal>,
    ) -> (Result<T>, Vec<PathBuf>) {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let mut files = Vec::new();
        let mut key_file = |name: &str| {
            files.push(folder.join(name));
            read_text(&folder.join(name)).map_err(|failure| io::Error::other(failure.message))
        };
        let read = read(&self.text, &mut key_file);
        let read = read.map_err(|refusal| Error::of(Kind::Usage, refusal).in_file(&self.path));
        (read, files)
    }

    /// Reads which system calls a confined process may make.
    pub fn system_calls(&self) -> Result<SystemCalls> {
        settings::system_calls(&self.text, &self.path)
    }

    /// Reads `[clients]`: the clients on standard input and output that may ask the person who uses
    /// them for approval.
    pub fn approving_clients(&self) -> Result<Vec<String>> {
        settings::approving_clients(&self.text, &self.path)
    }

    /// Reads the settings of `[ledger]`. Paths of files and directories are relative to the file.
    pub fn ledger(&self) -> Result<LedgerSettings> {
        self.check_toml()?;
        ledger::settings(&self.text, &self.path, &self.folder()?)
    }

    /// Reads the settings of `[[registry]]`. Paths of files are relative to the file.
    pub fn registries(&self) -> Result<Registries> {
        self.check_toml()?;
        registries::settings(&self.text, &self.path, &self.folder()?)
    }

    /// Checks the tables of settings, such as `[clients]` and `[ledger]`.
    pub fn check_settings(&self) -> Result<()> {
        self.system_calls()?;
        self.approving_clients()?;
        self.ledger()?;
        self.registries().map(drop)
    }

    /// Reports a text that is not TOML in the same way as an invalid policy.
    fn check_toml(&self) -> Result<()> {
        match toolward_support::fields::parse_toml(&self.text) {
            Ok(_) => Ok(()),
            Err(_) => self.policy().map(drop),
        }
    }

    /// Reads the policy. Paths of files and directories are relative to the file.
    pub fn policy(&self) -> Result<Policy> {
        let folder = self.folder()?;
        let name = self.path.display().to_string();
        Policy::from_toml_in(&self.text, &name, &folder).map_err(|error| self.broken(&error))
    }

    fn folder(&self) -> Result<PathBuf> {
        let folder = self.path.parent().filter(|one| *one != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        folder.map_err(|error| Error::unreadable(&self.path, error))
    }

    pub(crate) fn broken(&self, error: &PolicyError) -> Error {
        let message = format!("{}: {error}", self.path.display());
        let hint = error.hint().unwrap_or(
            "correct the line that is named; `toolward policy suggest` prints lines that are valid",
        );
        let failure = Error::with_code(Kind::Usage, error.code(), message).hint(hint);
        let number = |found: Option<usize>| u32::try_from(found?).ok();
        let (Some(line), Some(column)) = (number(error.line()), number(error.column())) else {
            return failure;
        };
        let mut found = [Diagnostic {
            code: error.code(),
            severity: Severity::Error,
            message: error.message().to_owned(),
            file: self.path.display().to_string(),
            line,
            column,
            hint: error.hint().map(str::to_owned),
            excerpt: None,
        }];
        diagnostic::attach(&mut found, |_| Some(self.text.as_bytes()));
        failure.with_diagnostics(found.into())
    }
}

/// The path of the user's configuration.
pub fn default_config(environment: &Environment) -> Option<PathBuf> {
    let directory = environment.config_directory.as_ref()?;
    Some(directory.join(CONFIG_FILE))
}

/// Whether no file has this path. A dangling link or an unreadable directory does not count as
/// missing, since a file that can't be read may contain a denial.
pub fn is_missing(path: &Path) -> bool {
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    if !path.symlink_metadata().is_err_and(|error| absent(&error)) {
        return false;
    }
    // The closest ancestor that exists must be a directory, and not a dangling link.
    let above = path.ancestors().skip(1);
    let mut entries = above.filter(|above| above.symlink_metadata().is_ok());
    entries.next().is_none_or(Path::is_dir)
}

/// Reads a small text file of the user. Refuses anything but a regular file.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(file::read(path, MAX_FILE_BYTES)?)
        .map_err(|error| Error::unreadable(path, error))
}
