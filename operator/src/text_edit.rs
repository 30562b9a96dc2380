//! A change of a text file of the user's: what differs, for a person to read, and the change itself, which leaves a
//! line among the [lasting changes](crate::lasting_changes).

use std::path::{Path, PathBuf};

use toolward_files::{EditedFile, Problem};

use crate::error::{Code, Error};
use crate::lasting_changes::{LastingChange, LastingChanges};

/// Largest file that is changed, in bytes. Clients keep histories in theirs.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A text file that may be changed.
///
/// ```
/// use std::path::Path;
/// use toolward_operator::text_edit::TextEdit;
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
    file: EditedFile,
    text: String,
}

impl TextEdit {
    /// Reads a file beneath `root` without following links; one that is not there is empty.
    ///
    /// # Errors
    /// `file-unfit` for a link, anything but a regular file, one with several names, one of another user or one that
    /// others may change, also where that is true of a folder of `path`, one of more than 16 MiB, and one that is not
    /// UTF-8; `file-unreadable`.
    pub fn beneath(root: &Path, path: &Path) -> Result<Self, Error> {
        let file = EditedFile::beneath(root, path, MAX_FILE_BYTES).map_err(unusable)?;
        let bytes = file.bytes().unwrap_or_default().to_vec();
        let text = String::from_utf8(bytes).map_err(|error| {
            let message = format!("{}: {}", file.path().display(), error.utf8_error());
            Error::failed(Code::FileUnfit, message).hint("change the file yourself")
        })?;
        Ok(Self { file, text })
    }

    /// Reads a file beneath the deepest folder above it that is there.
    ///
    /// # Errors
    /// Those of [`TextEdit::beneath`].
    pub fn of(place: &Path) -> Result<Self, Error> {
        let mut above = place.ancestors().skip(1);
        let root = above.find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        let path = place.strip_prefix(root).unwrap_or(place);
        Self::beneath(root, path)
    }

    /// Its text with lines below it, in its own form of lines.
    pub fn appended(&self, lines: &str) -> String {
        let (text, newline) = (&self.text, newline(&self.text));
        let between = match text.as_str() {
            "" => String::new(),
            text if text.ends_with('\n') => newline.to_owned(),
            _ => newline.repeat(2),
        };
        let lines = lines.trim_end().replace('\n', newline);
        format!("{text}{between}{lines}{newline}")
    }

    /// Its text with a line behind the one that has the byte at `offset`.
    pub(crate) fn inserted(&self, offset: usize, line: &str) -> Option<String> {
        let (text, newline) = (&self.text, newline(&self.text));
        let end = text.get(offset..)?.find('\n');
        let end = end.map_or(text.len(), |end| {
            end.saturating_add(offset).saturating_add(1)
        });
        let (before, after) = text.split_at_checked(end)?;
        let between = match before.ends_with('\n') {
            true => "",
            false => newline,
        };
        Some(format!("{before}{between}{line}{newline}{after}"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where its earlier text will be, or is.
    pub fn backup(&self) -> Option<PathBuf> {
        self.file.backup()
    }

    /// Whether what it held before the first change is there already. It is kept.
    pub fn has_backup(&self) -> bool {
        self.file.has_backup()
    }

    /// The lines that differ from `after`: those that go behind `-`, those that come behind `+`. May hold untrusted
    /// text.
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
    /// `file-changed` if the file is not as it was read; those of [`TextEdit::beneath`] and [`LastingChanges::add`].
    /// The file is as it was then.
    pub fn write(
        self,
        after: &str,
        change: LastingChange,
        changes: &LastingChanges,
    ) -> Result<(), Error> {
        changes.add(change)?;
        self.file.write(after.as_bytes()).map_err(unusable)
    }
}

fn newline(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

fn unusable(error: toolward_files::Error) -> Error {
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
            let path = path.display();
            unfit(&format!(
                "take others' right to write from it: chmod go-w {path}"
            ))
        }
        _ => unfit("change the file yourself"),
    }
}
