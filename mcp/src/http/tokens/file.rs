//! The file of hashed tokens: its format, the check of its owner and mode, and new entries. Files
//! are written atomically, and only their owner can read them.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolward_contract::Position;
use toolward_support::files::{Links, Lock, Problem, Protection, lock};

use super::{Secret, Token, TokenHash, Tokens};
use crate::http::{HttpError, Identity};
use crate::principal::{Principal, Tools};

/// Bytes of a token file; thousands of tokens fit.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The principal of local processes. A token of this name would share its stored data and
/// approvals.
const RESERVED_NAME: &str = "local";

/// The file's text form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    token: Vec<toml::Spanned<WrittenToken>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    hash: String,
    /// Without this member the token can use no tool.
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    may_approve: bool,
    expires: Option<toml::value::Datetime>,
    requests: Option<usize>,
}

/// Reads a file of tokens. It must belong to the user who runs this process, and no other user may
/// read or write it.
pub fn read(path: &Path) -> Result<Tokens, HttpError> {
    parse(&text(path)?)
}

/// Returns the text of a token file. If the path is a link, it is followed.
fn text(path: &Path) -> Result<String, HttpError> {
    let bytes = toolward_support::files::open(path, Protection::Private, Links::Follow)
        .and_then(|file| toolward_support::files::read(file, path, MAX_FILE_BYTES))
        .map_err(|error| refused(path, error.problem))?;
    String::from_utf8(bytes).map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        unusable(path, "read", source)
    })
}

fn unusable(path: &Path, action: &'static str, source: io::Error) -> HttpError {
    HttpError::TokenFile {
        path: path.to_owned(),
        action,
        source,
    }
}

/// Returns the error of a file that others may have read or written, or that can't be read.
fn refused(path: &Path, problem: Problem) -> HttpError {
    match problem {
        Problem::Io { source, .. } => unusable(path, "read", source),
        Problem::TooLarge { .. } => too_large(),
        problem => HttpError::TokenFileUnsafe {
            path: path.to_owned(),
            problem: problem.describe(),
        },
    }
}

fn too_large() -> HttpError {
    HttpError::Tokens {
        problem: format!("is larger than {MAX_FILE_BYTES} bytes"),
        line: None,
    }
}

/// Parses the text of a token file.
pub(super) fn parse(text: &str) -> Result<Tokens, HttpError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(too_large());
    }
    let line_of = |offset| usize::try_from(Position::of_offset(text, offset).line).ok();
    let written: Written = toml::from_str(text).map_err(|error| HttpError::Tokens {
        problem: format!("can't be read: {}", error.message()),
        line: error.span().and_then(|span| line_of(span.start)),
    })?;
    let mut tokens: Vec<Token> = Vec::new();
    for entry in written.token {
        let line = line_of(entry.span().start);
        let wrong = |problem: String| HttpError::Tokens { problem, line };
        let token = validated(entry.into_inner()).map_err(wrong)?;
        let identity = &token.identity;
        let name = &identity.principal.name;
        // Tokens with the same name belong to one principal, for example while a new token replaces
        // an old one.
        let differs =
            |other: &Token| other.identity.principal.name == *name && other.identity != *identity;
        if tokens.iter().any(differs) {
            return Err(wrong(format!(
                "gives `{name}` two tokens that differ in `tools`, `may_approve` or `requests`"
            )));
        }
        if tokens.iter().any(|other| other.hash == token.hash) {
            return Err(wrong(format!("names the hash of `{name}` twice")));
        }
        tokens.push(token);
    }
    Ok(Tokens {
        tokens: tokens.into(),
    })
}

fn validated(written: WrittenToken) -> Result<Token, String> {
    let name = written.name;
    let named = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || "-_.".contains(character)
    };
    if name.is_empty() || name.len() > 64 || !name.chars().all(named) {
        return Err(format!(
            "has the name {name:?}: expected up to 64 of a-z, 0-9, `-`, `_` and `.`"
        ));
    }
    if name == RESERVED_NAME {
        return Err(format!(
            "has the name `{RESERVED_NAME}`, which is the user of this machine's own"
        ));
    }
    let hash: TokenHash = written.hash.parse().map_err(|()| {
        format!("has no hash for `{name}`: expected `blake3:` or `sha256:` and 64 digits")
    })?;
    let tools = tools(&name, written.tools)?;
    let expires = written
        .expires
        .map(|moment| {
            OffsetDateTime::parse(&moment.to_string(), &Rfc3339)
                .map(SystemTime::from)
                .map_err(|_| {
                    format!("lets `{name}` expire at `{moment}`: expected a date, time and offset")
                })
        })
        .transpose()?;
    if written.requests == Some(0) {
        return Err(format!("lets `{name}` have 0 requests: expected 1 or more"));
    }
    Ok(Token {
        hash,
        identity: Identity {
            principal: Principal {
                name: name.into(),
                tools,
                may_approve: written.may_approve,
            },
            requests: written.requests,
        },
        expires,
    })
}

/// `["*"]` means all tools, and an empty list means none.
fn tools(name: &str, patterns: Vec<String>) -> Result<Tools, String> {
    if patterns.iter().any(|pattern| pattern == "*") {
        return if patterns.len() == 1 {
            Ok(Tools::All)
        } else {
            Err(format!(
                "gives `{name}` all tools by `*`, and others besides"
            ))
        };
    }
    for pattern in &patterns {
        let id = pattern.strip_suffix(".*").unwrap_or(pattern);
        let id = match id.split_once('@') {
            Some((id, major)) if major.parse::<u64>().is_ok() => id,
            Some(_) => "",
            None => id,
        };
        let allowed =
            |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
        if id.is_empty() || !id.chars().all(allowed) {
            return Err(format!(
                "gives `{name}` the tool {pattern:?}: expected `id`, `id@major`, `prefix.*` or `*`"
            ));
        }
    }
    Ok(Tools::Only(patterns.into()))
}

/// One entry for the file of hashed tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    name: String,
    text: String,
}

impl Entry {
    /// Makes an entry for the token with this hash. `tools` are ids, `id@major`, prefixes with
    /// `.*`, or `*` alone; without any, the token can use no tool.
    ///
    /// # Errors
    /// If the file can't have this name or one of these tools.
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
        validated(written).map_err(|problem| HttpError::Token { problem })?;
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

    /// Returns the entry as lines of TOML.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Adds an entry to a file of hashed tokens, which is created if it does not exist.
///
/// # Errors
/// If a server would not read the file, or the file has an entry of this name.
pub fn add(path: &Path, entry: &Entry) -> Result<(), HttpError> {
    let unusable = |source: io::Error| unusable(path, "written", source);
    // Replaces the target of a link, not the link.
    let place = match std::fs::canonicalize(path) {
        Ok(place) => place,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if path.is_symlink() {
                let message = "it is a link, and nothing is where it leads";
                return Err(unusable(io::Error::new(ErrorKind::NotFound, message)));
            }
            path.to_owned()
        }
        Err(error) => return Err(unusable(error)),
    };
    // Without the lock, one of two concurrent additions would be lost.
    let _alone = alone(&place).map_err(unusable)?;
    let mut text = match text(&place) {
        Ok(text) => text,
        Err(HttpError::TokenFile { source, .. }) if source.kind() == ErrorKind::NotFound => {
            String::new()
        }
        Err(error) => return Err(error),
    };
    let is_known = |token: &Token| *token.identity.principal.name == *entry.name;
    if parse(&text)?.tokens.iter().any(is_known) {
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
    parse(&text)?;
    replace(&place, text.as_bytes())
}

/// Writes a token to a file that only its owner can read. A file at this path is replaced.
pub fn write(path: &Path, secret: &Secret) -> Result<(), HttpError> {
    let line = zeroize::Zeroizing::new(format!("{}\n", secret.expose()));
    replace(path, line.as_bytes())
}

/// Locks the file's directory against other additions until the returned handle is dropped.
fn alone(path: &Path) -> io::Result<File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = File::open(directory)?;
    lock(&directory, Lock::Exclusive, Duration::ZERO)?;
    Ok(directory)
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), HttpError> {
    toolward_support::files::replace(path, bytes, 0o600)
        .map_err(|error| unusable(path, "written", error))
}

#[cfg(test)]
mod tests;
