//! Writes a token to a file for its owner, and its entry to the file of hashed tokens.
//! Both are written atomically, and only their owner can read them.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use toolward_support::files::{Lock, lock};

use super::file::{self, WrittenToken};
use super::{Secret, TokenHash};
use crate::http::HttpError;

/// One entry for the file of hashed tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    name: String,
    text: String,
}

impl Entry {
    /// An entry for the token with this hash. `tools` are ids, `id@major`,
    /// prefixes with `.*`, or `*` alone; without any the token reaches nothing.
    ///
    /// # Errors
    /// A name or a tool that the file can't have.
    pub fn new(
        name: &str,
        hash: TokenHash,
        tools: &[String],
        may_approve: bool,
    ) -> Result<Self, HttpError> {
        let written = WrittenToken {
            name: name.to_owned(),
            hash: hash.to_string(),
            tools: tools.to_vec(),
            may_approve,
            expires: None,
            requests: None,
        };
        file::validated(written).map_err(|problem| HttpError::Token { problem })?;
        let mut text = format!("[[token]]\nname = \"{name}\"\nhash = \"{hash}\"\n");
        if !tools.is_empty() {
            let tools: Vec<String> = tools.iter().map(|tool| format!("\"{tool}\"")).collect();
            text.push_str(&format!("tools = [{}]\n", tools.join(", ")));
        }
        if may_approve {
            text.push_str("may_approve = true\n");
        }
        Ok(Self {
            name: name.to_owned(),
            text,
        })
    }

    /// The entry as lines of TOML.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Adds an entry to a file of hashed tokens, which is made if it isn't there.
///
/// # Errors
/// A file that a server would not read, or one that has an entry of this name.
pub fn add(path: &Path, entry: &Entry) -> Result<(), HttpError> {
    let unusable = |source: std::io::Error| unusable(path, source);
    // Replaces the target of a link, not the link.
    let place = match std::fs::canonicalize(path) {
        Ok(place) => place,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.is_symlink() {
                let message = "it is a link, and nothing is where it leads";
                return Err(unusable(std::io::Error::new(ErrorKind::NotFound, message)));
            }
            path.to_owned()
        }
        Err(error) => return Err(unusable(error)),
    };
    // Without the lock, one of two concurrent additions would be lost.
    let _alone = alone(&place).map_err(unusable)?;
    let mut text = match file::text(&place) {
        Ok(text) => text,
        Err(HttpError::TokenFile { source, .. }) if source.kind() == ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => return Err(error),
    };
    if file::parse(&text)?.names().any(|name| name == entry.name) {
        return Err(HttpError::TokenKnown {
            path: path.to_owned(),
            name: entry.name.clone(),
        });
    }
    if !text.is_empty() {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(&entry.text);
    // Checks that the result can be read before writing it.
    file::parse(&text)?;
    replace(&place, text.as_bytes())
}

/// Replaces a file by one with the token that only its owner can read.
pub fn write(path: &Path, secret: &Secret) -> Result<(), HttpError> {
    let line = zeroize::Zeroizing::new(format!("{}\n", secret.expose()));
    replace(path, line.as_bytes())
}

/// Locks the file against other additions until it is dropped.
fn alone(path: &Path) -> std::io::Result<File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = File::open(directory)?;
    lock(&directory, Lock::Exclusive, Duration::ZERO)?;
    Ok(directory)
}

fn unusable(path: &Path, source: std::io::Error) -> HttpError {
    HttpError::TokenFile {
        path: path.to_owned(),
        action: "written",
        source,
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), HttpError> {
    toolward_support::files::replace(path, bytes, 0o600).map_err(|error| unusable(path, error))
}

#[cfg(test)]
mod tests;
