//! What commands changed lastingly after a person typed a yes: files of clients, the policy. Each is a line of one file
//! in the state directory, which `doctor` shows, and `serve` once.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use toolward_files::{Folder, Links, Lock, Protection};
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;

use crate::environment::Environment;
use crate::error::{Code, Error};

/// The file in the state directory.
const FILE: &str = "changes.jsonl";

/// How many changes are kept; the oldest go first.
const MAX_CHANGES: usize = 500;

/// Largest file, in bytes. Paths have at most 4 KiB.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// How long another process may hold the list.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// A lasting change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingChange {
    /// When, in RFC 3339.
    at: String,
    /// The command, such as `mcp config --write`.
    command: String,
    /// What it changed, in words.
    what: String,
    /// The file that it changed.
    file: PathBuf,
    /// The name and the digest of the entry that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<(String, String)>,
    /// Whether `serve` has shown it.
    #[serde(default)]
    served: bool,
}

impl LastingChange {
    /// A change of `file` by a command, in words.
    #[must_use]
    pub fn new(command: &str, what: impl Into<String>, file: &Path) -> Self {
        Self {
            at: String::new(),
            command: command.to_owned(),
            what: what.into(),
            file: file.to_owned(),
            entry: None,
            served: false,
        }
    }

    /// The same, with the entry that was written.
    #[must_use]
    pub fn with_entry(self, name: &str, digest: Digest) -> Self {
        let entry = Some((name.to_owned(), digest.to_string()));
        Self { entry, ..self }
    }

    /// Whether it wrote an entry of this name and digest to the file.
    #[must_use]
    pub fn wrote(&self, file: &Path, name: &str, digest: &Digest) -> bool {
        let entry = (name.to_owned(), digest.to_string());
        self.file == file && self.entry.as_ref() == Some(&entry)
    }
}

impl std::fmt::Display for LastingChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (at, command, what) = (&self.at, &self.command, &self.what);
        write!(f, "{at}: `{command}` {what} in {}", self.file.display())
    }
}

/// The lasting changes of this user.
///
/// ```
/// use toolward_operator::Environment;
/// use toolward_operator::lasting_changes::{LastingChange, LastingChanges};
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// # let home = tempfile::tempdir().unwrap();
/// let mut environment = Environment::default();
/// environment.state_directory = Some(home.path().join("state"));
/// let changes = LastingChanges::of(&environment)?;
/// let file = "/home/ada/.cursor/mcp.json".as_ref();
/// changes.add(LastingChange::new("mcp config --write", "wrote an entry", file))?;
/// assert_eq!(changes.all()?.len(), 1);
/// assert_eq!(changes.unserved()?.len(), 1);
/// assert_eq!(changes.unserved()?.len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LastingChanges {
    path: PathBuf,
}

impl LastingChanges {
    /// Those that the state directory holds.
    ///
    /// # Errors
    /// `store-unusable` if there is no state directory.
    pub fn of(environment: &Environment) -> Result<Self, Error> {
        match &environment.state_directory {
            Some(state) => Ok(Self {
                path: state.join(FILE),
            }),
            None => Err(Error::usage(
                Code::StoreUnusable,
                "there is no place for the list of changes: no home directory",
            )
            .hint("set HOME or XDG_STATE_HOME to an absolute path")),
        }
    }

    /// All of them, the oldest first; none if there is no file.
    ///
    /// # Errors
    /// `file-unreadable` if the file can't be read, belongs to somebody else, or is not what this library wrote.
    pub fn all(&self) -> Result<Vec<LastingChange>, Error> {
        let unreadable = |error: toolward_files::Error| Error::unreadable(&self.path, error);
        let opened = toolward_files::open(&self.path, Protection::Private, Links::Refuse);
        let file = match opened {
            Err(error) if error.is_missing() => return Ok(Vec::new()),
            opened => opened.map_err(unreadable)?,
        };
        let bytes = toolward_files::read(file, &self.path, MAX_FILE_BYTES).map_err(unreadable)?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| {
                serde_json::from_slice(line).map_err(|error| Error::unreadable(&self.path, error))
            })
            .collect()
    }

    /// Adds one, made now.
    ///
    /// # Errors
    /// Those of [`LastingChanges::all`]; `write-failed`.
    pub fn add(&self, change: LastingChange) -> Result<(), Error> {
        let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = seconds.map(|since| since.as_secs()).unwrap_or_default();
        let at = Timestamp::from_unix(i64::try_from(seconds).unwrap_or_default());
        let at = at.map(|at| at.to_string()).unwrap_or_default();
        let folder = self.path.parent().unwrap_or(&self.path);
        let _locked = self.locked(Folder::make(folder, Protection::Own))?;
        let mut all = self.all()?;
        all.push(LastingChange { at, ..change });
        self.write(&all)
    }

    /// Those that this has not returned before, for `serve` to show.
    ///
    /// # Errors
    /// Those of [`LastingChanges::all`]. Where they can't be marked as shown they are returned once more.
    pub fn unserved(&self) -> Result<Vec<LastingChange>, Error> {
        // Most often there is nothing, and this is on the way to each server's first answer.
        if self.path.symlink_metadata().is_err() {
            return Ok(Vec::new());
        }
        let folder = self.path.parent().unwrap_or(&self.path);
        let _locked = self.locked(Folder::open(folder, Protection::Own))?;
        let mut all = self.all()?;
        let unserved: Vec<LastingChange> = all.iter().filter(|one| !one.served).cloned().collect();
        if !unserved.is_empty() {
            all.iter_mut().for_each(|one| one.served = true);
            let _ = self.write(&all);
        }
        Ok(unserved)
    }

    /// Keeps other processes from changing the list as long as the folder is open.
    fn locked(&self, folder: Result<Folder, toolward_files::Error>) -> Result<Folder, Error> {
        let folder = folder.map_err(|error| Error::unwritable(&self.path, error))?;
        toolward_files::lock(&folder, Lock::Exclusive, LOCK_TIMEOUT)
            .map_err(|error| Error::unwritable(&self.path, error))?;
        Ok(folder)
    }

    fn write(&self, all: &[LastingChange]) -> Result<(), Error> {
        let mut text = String::new();
        let kept = all.iter().skip(all.len().saturating_sub(MAX_CHANGES));
        for one in kept {
            let line = serde_json::to_string(one);
            text.push_str(&line.map_err(|error| Error::unwritable(&self.path, error))?);
            text.push('\n');
        }
        toolward_files::replace(&self.path, text.as_bytes(), 0o600)
            .map_err(|error| Error::unwritable(&self.path, error))
    }
}
