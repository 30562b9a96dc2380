//! The file of hashed tokens: what it may say, and who may have written it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{FileType, Mode, OFlags};
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Token, TokenHash, Tokens};
use crate::http::{HttpError, Identity};
use crate::principal::{Principal, Tools};

/// Bytes of a token file; thousands of tokens fit.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The name of the user of a local process. A token of this name would share what
/// that user stored and approved.
const RESERVED_NAME: &str = "local";

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    token: Vec<toml::Spanned<WrittenToken>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenToken {
    pub(super) name: String,
    pub(super) hash: String,
    /// Without it the token reaches nothing.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    #[serde(default)]
    pub(super) may_approve: bool,
    pub(super) expires: Option<toml::value::Datetime>,
    pub(super) requests: Option<usize>,
}

/// Reads a file of tokens. It must belong to the user who runs this process, or to
/// root, and nobody else may read or write it.
pub fn read(path: &Path) -> Result<Tokens, HttpError> {
    parse(&text(path)?)
}

/// The text of such a file; of one that is too large, more than [`parse`] takes.
pub(super) fn text(path: &Path) -> Result<String, HttpError> {
    let unusable = |source: std::io::Error| HttpError::TokenFile {
        path: path.to_owned(),
        action: "read",
        source,
    };
    // What is checked is the file that was opened, whatever the path says later;
    // without waiting, should it be a pipe.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| unusable(error.into()))?;
    safe(path, &file)?;
    let mut text = String::new();
    File::from(file)
        .take(MAX_FILE_BYTES.saturating_add(1))
        .read_to_string(&mut text)
        .map_err(unusable)?;
    Ok(text)
}

/// Refuses a file that others may have read or written.
fn safe(path: &Path, file: &impl AsFd) -> Result<(), HttpError> {
    let of = |problem: String| HttpError::TokenFileUnsafe {
        path: path.to_owned(),
        problem,
    };
    let status = rustix::fs::fstat(file).map_err(|error| HttpError::TokenFile {
        path: path.to_owned(),
        action: "read",
        source: error.into(),
    })?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(of("is no regular file".to_owned()));
    }
    let user = rustix::process::geteuid().as_raw();
    if status.st_uid != user && status.st_uid != 0 {
        return Err(of(format!(
            "belongs to user {}, and this process is user {user}",
            status.st_uid
        )));
    }
    let mode = status.st_mode & 0o7777;
    if mode & 0o077 != 0 {
        return Err(of(format!(
            "has mode {mode:04o}: others than its owner can read or change it"
        )));
    }
    Ok(())
}

/// Reads the text of a token file.
pub(super) fn parse(text: &str) -> Result<Tokens, HttpError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(HttpError::Tokens {
            problem: format!("is larger than {MAX_FILE_BYTES} bytes"),
            line: None,
        });
    }
    let line_of = |offset: usize| {
        text.get(..offset)
            .map(|before| before.matches('\n').count().saturating_add(1))
    };
    let written: Written = toml::from_str(text).map_err(|error| HttpError::Tokens {
        problem: format!("can't be read: {}", error.message()),
        line: error.span().and_then(|span| line_of(span.start)),
    })?;
    let mut identities: HashMap<Arc<str>, Identity> = HashMap::new();
    let mut tokens: Vec<Token> = Vec::new();
    for entry in written.token {
        let line = line_of(entry.span().start);
        let wrong = |problem: String| HttpError::Tokens { problem, line };
        let token = validated(entry.into_inner()).map_err(wrong)?;
        let identity = &token.identity;
        let name = &identity.principal.name;
        // Two tokens of one name are one principal, while one replaces the other.
        if let Some(first) = identities.get(name)
            && first != identity
        {
            return Err(wrong(format!(
                "gives `{name}` two tokens that differ in `tools`, `may_approve` or `requests`"
            )));
        }
        if tokens.iter().any(|other| other.hash == token.hash) {
            return Err(wrong(format!("names the hash of `{name}` twice")));
        }
        identities.insert(Arc::clone(name), identity.clone());
        tokens.push(token);
    }
    Ok(Tokens {
        tokens: tokens.into(),
    })
}

pub(super) fn validated(written: WrittenToken) -> Result<Token, String> {
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

/// `["*"]` is all tools, nothing is none.
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

#[cfg(test)]
mod tests;
