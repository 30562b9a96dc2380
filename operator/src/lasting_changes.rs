//! Lasting changes that a person confirmed, for example of clients' files or of the policy. Each is
//! a line of one file in the state directory. `doctor` shows the newest changes, and `serve` shows
//! each change once. [`TextEdit`] shows and makes a change of a text file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;
use toolward_support::files::{EditedFile, Problem};

use crate::file::StateFile;
use crate::{Code, Environment, Error, Result, unix_seconds};

/// The file in the state directory.
const FILE: &str = "changes.jsonl";

/// How many changes are stored. The oldest are dropped first.
const MAX_CHANGES: usize = 500;

/// Largest file, in bytes. All stored changes fit, since a path has at most 4 KiB.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A lasting change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingChange {
    /// The time, in RFC 3339.
    at: String,
    /// The command, such as `mcp config --write`.
    command: String,
    /// A description of the change.
    what: String,
    /// The file that it changed.
    file: PathBuf,
    /// The name and the digest of the entry that the command wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<(String, String)>,
    /// Whether `serve` has shown it.
    #[serde(default)]
    served: bool,
}

impl LastingChange {
    /// A change of `file` by a command. `what` describes it.
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

    /// Returns the change with the entry that was written.
    #[must_use]
    pub fn with_entry(self, name: &str, digest: Digest) -> Self {
        let entry = Some((name.to_owned(), digest.to_string()));
        Self { entry, ..self }
    }

    /// Whether it wrote an entry of this name and digest to the file.
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
    file: StateFile,
}

impl LastingChanges {
    /// The changes in the state directory.
    ///
    /// # Errors
    /// `store-unusable` if there is no state directory.
    pub fn of(environment: &Environment) -> Result<Self> {
        let Some(state) = &environment.state_directory else {
            let message = "there is no place for the list of changes: no home directory";
            return Err(Error::usage(Code::StoreUnusable, message)
                .hint("set HOME or XDG_STATE_HOME to an absolute path"));
        };
        let file = StateFile::new(state.join(FILE), MAX_FILE_BYTES);
        Ok(Self { file })
    }

    /// Returns all changes, the oldest first. Without a file it returns none.
    ///
    /// # Errors
    /// `file-unreadable` if the file can't be read, belongs to another user, or is not in the form
    /// that this library writes.
    pub fn all(&self) -> Result<Vec<LastingChange>> {
        let bytes = self.file.read()?.unwrap_or_default();
        let lines = bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let all = lines.map(serde_json::from_slice).collect::<Result<_, _>>();
        all.map_err(|error| Error::unreadable(&self.file.path, error))
    }

    /// Adds a change that is made now.
    ///
    /// # Errors
    /// As [`LastingChanges::all`]; `write-failed` if the file can't be written.
    pub fn add(&self, change: LastingChange) -> Result<()> {
        let at = Timestamp::from_unix(unix_seconds(SystemTime::now()));
        let at = at.map(|at| at.to_string()).unwrap_or_default();
        let _locked = self.file.lock()?;
        let mut all = self.all()?;
        all.push(LastingChange { at, ..change });
        self.write(&all)
    }

    /// Returns the changes that no earlier call returned, for `serve` to show.
    ///
    /// # Errors
    /// As [`LastingChanges::all`]. If the changes can't be marked as shown, the next call returns
    /// them again.
    pub fn unserved(&self) -> Result<Vec<LastingChange>> {
        // Fast, without a lock: usually the file does not exist, and each server waits for this
        // call before its first answer.
        if self.file.path.symlink_metadata().is_err() {
            return Ok(Vec::new());
        }
        let _locked = self.file.lock()?;
        let mut all = self.all()?;
        let unserved: Vec<LastingChange> = all.iter().filter(|one| !one.served).cloned().collect();
        if !unserved.is_empty() {
            all.iter_mut().for_each(|one| one.served = true);
            let _ = self.write(&all);
        }
        Ok(unserved)
    }

    fn write(&self, all: &[LastingChange]) -> Result<()> {
        let newest = all.iter().skip(all.len().saturating_sub(MAX_CHANGES));
        let lines = newest.map(|one| Ok(serde_json::to_string(one)? + "\n"));
        let text = lines.collect::<Result<String, serde_json::Error>>();
        let text = text.map_err(|error| Error::unwritable(&self.file.path, error))?;
        self.file.write(text.as_bytes())
    }
}

/// The largest file that is changed, in bytes. Some clients store histories in their files.
const MAX_EDITED_BYTES: u64 = 16 << 20;

/// A text file that may be changed.
///
/// ```
/// use std::path::Path;
/// use toolward_operator::lasting_changes::TextEdit;
///
/// # fn main() -> Result<(), toolward_operator::Error> {
/// # let home = tempfile::tempdir().unwrap();
/// std::fs::write(home.path().join("settings.json"), "{\n}\n").unwrap();
/// let edit = TextEdit::beneath(home.path(), Path::new("settings.json"))?;
/// assert_eq!(edit.difference("{\n  \"a\": 1\n}\n"), "+  \"a\": 1\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextEdit {
    /// The file, and a backup of its earlier text.
    pub file: EditedFile,
    /// Its text.
    pub text: String,
}

impl TextEdit {
    /// Reads a file beneath `root` without following links; a missing file is empty.
    ///
    /// # Errors
    /// `file-unfit` for a link, for anything but a regular file, for a file with several names, for
    /// a file or a folder of `path` that belongs to another user or that others may change, for
    /// more than 16 MiB, and for text that is not UTF-8; `file-unreadable` if it can't be read.
    pub fn beneath(root: &Path, path: &Path) -> Result<Self> {
        let file = EditedFile::beneath(root, path, MAX_EDITED_BYTES).map_err(unusable)?;
        let bytes = file.bytes().unwrap_or_default().to_vec();
        let text = String::from_utf8(bytes).map_err(|error| {
            let message = format!("{}: {}", file.path().display(), error.utf8_error());
            Error::failed(Code::FileUnfit, message).hint("change the file yourself")
        })?;
        Ok(Self { file, text })
    }

    /// Reads a file beneath the deepest existing folder of its path.
    ///
    /// # Errors
    /// As [`TextEdit::beneath`].
    pub fn of(place: &Path) -> Result<Self> {
        let mut above = place.ancestors().skip(1);
        let root = above.find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let path = place.strip_prefix(root).unwrap_or(place);
        Self::beneath(root, path)
    }

    /// Returns the text with lines appended, using the text's line ends.
    pub fn appended(&self, lines: &str) -> String {
        appended(&self.text, lines)
    }

    /// Returns the lines that differ from `after`: removed lines after `-`, added lines after `+`.
    /// May contain untrusted text.
    pub fn difference(&self, after: &str) -> String {
        let old: Vec<&str> = self.text.lines().collect();
        let new: Vec<&str> = after.lines().collect();
        let pairs = old.iter().zip(&new);
        let first = pairs.take_while(|(old, new)| old == new).count();
        let most = old.len().min(new.len()).saturating_sub(first);
        let pairs = old.iter().rev().zip(new.iter().rev()).take(most);
        let last = pairs.take_while(|(old, new)| old == new).count();
        let middle = |lines: &[&str], sign: char| -> String {
            let end = lines.len().saturating_sub(last);
            let lines = lines.get(first..end).unwrap_or_default();
            lines.iter().map(|line| format!("{sign}{line}\n")).collect()
        };
        middle(&old, '-') + &middle(&new, '+')
    }

    /// Records the change, then writes the file with `after`.
    ///
    /// # Errors
    /// `file-changed` if the file has changed since it was read; otherwise as [`TextEdit::beneath`]
    /// and [`LastingChanges::add`]. After an error the file is unchanged.
    pub fn write(self, after: &str, change: LastingChange, changes: &LastingChanges) -> Result<()> {
        changes.add(change)?;
        self.file.write(after.as_bytes()).map_err(unusable)
    }
}

/// Returns a text with lines appended, using the text's line ends.
pub(crate) fn appended(text: &str, lines: &str) -> String {
    let newline = newline(text);
    let between = match text {
        "" => String::new(),
        text if text.ends_with('\n') => newline.to_owned(),
        _ => newline.repeat(2),
    };
    let lines = lines.trim_end().replace('\n', newline);
    format!("{text}{between}{lines}{newline}")
}

/// Returns a text with a line inserted after the line that contains the byte at `offset`.
pub(crate) fn inserted(text: &str, offset: usize, line: &str) -> Option<String> {
    let newline = newline(text);
    let end = text.get(offset..)?.find('\n');
    let end = end.map_or(text.len(), |end| {
        end.saturating_add(offset).saturating_add(1)
    });
    let (before, after) = text.split_at_checked(end)?;
    let between = if before.ends_with('\n') { "" } else { newline };
    Some(format!("{before}{between}{line}{newline}{after}"))
}

/// Returns a text in which the bytes of a range are replaced.
pub(crate) fn replaced(text: &str, range: &Range<usize>, by: &str) -> Option<String> {
    let (before, after) = (text.get(..range.start)?, text.get(range.end..)?);
    Some(format!("{before}{by}{after}"))
}

/// The line end of a text.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

fn unusable(error: toolward_support::files::Error) -> Error {
    let path = error.path.clone();
    let unfit = |hint: &str| Error::failed(Code::FileUnfit, &error).hint(hint);
    match &error.problem {
        Problem::Io {
            action: "opened" | "read",
            ..
        } => Error::unreadable(&path, error),
        Problem::Io { .. } => Error::unwritable(&path, error),
        Problem::Changed => Error::failed(Code::FileChanged, &error)
            .hint("end the program that writes to it, and give the command again"),
        Problem::Mode { .. } => {
            let hint = "take others' right to write from it: chmod go-w";
            unfit(&format!("{hint} {}", path.display()))
        }
        _ => unfit("change the file yourself"),
    }
}
