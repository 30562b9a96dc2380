//! The file of hashed tokens: its format, and the check of its owner and mode.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolward_contract::Position;
use toolward_support::files::{Links, Problem, Protection};

use super::{Token, TokenHash, Tokens};
use crate::http::{HttpError, Identity};
use crate::principal::{Principal, Tools};

/// Bytes of a token file; thousands of tokens fit.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The name of the user of a local process. A token of this name would share what
/// that user stored and approved.
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
pub(super) struct WrittenToken {
    pub(super) name: String,
    pub(super) hash: String,
    /// Without it the token can use no tool.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    #[serde(default)]
    pub(super) may_approve: bool,
    pub(super) expires: Option<toml::value::Datetime>,
    pub(super) requests: Option<usize>,
}

/// Reads a file of tokens. It must belong to the user who runs this process, and
/// nobody else may read or write it.
pub fn read(path: &Path) -> Result<Tokens, HttpError> {
    parse(&text(path)?)
}

/// The text of such a file. A link to it is followed.
pub(super) fn text(path: &Path) -> Result<String, HttpError> {
    let bytes = toolward_support::files::open(path, Protection::Private, Links::Follow)
        .and_then(|file| toolward_support::files::read(file, path, MAX_FILE_BYTES))
        .map_err(|error| refused(path, error.problem))?;
    String::from_utf8(bytes).map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        unreadable(path, source)
    })
}

fn unreadable(path: &Path, source: io::Error) -> HttpError {
    HttpError::TokenFile {
        path: path.to_owned(),
        action: "read",
        source,
    }
}

/// The error of a file that others may have read or written, or that can't be read.
fn refused(path: &Path, problem: Problem) -> HttpError {
    match problem {
        Problem::Io { source, .. } => unreadable(path, source),
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

/// Reads the text of a token file.
pub(super) fn parse(text: &str) -> Result<Tokens, HttpError> {
    if u64::try_from(text.len()).is_ok_and(|length| length > MAX_FILE_BYTES) {
        return Err(too_large());
    }
    let line_of = |offset| usize::try_from(Position::of_offset(text, offset).line).ok();
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
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    use super::super::generate;
    use super::*;
    use crate::http::Refusal;

    fn entry(name: &str, hash: &TokenHash, more: &str) -> String {
        format!("[[token]]\nname = \"{name}\"\nhash = \"{hash}\"\n{more}\n")
    }

    fn refused(text: &str) -> String {
        let error = parse(text).unwrap_err();
        assert_eq!(error.code(), "token-file-invalid", "{error}");
        error.to_string()
    }

    #[test]
    fn a_token_has_what_its_entry_says_and_no_more() {
        let (bare, bare_hash) = generate().unwrap();
        let (full, full_hash) = generate().unwrap();
        let text = entry("bare", &bare_hash, "")
            + &entry(
                "full",
                &full_hash,
                "tools = [\"com.example.*\", \"org.other@2\"]\nmay_approve = true\nrequests = 3",
            );
        let tokens = parse(&text).unwrap();
        let now = SystemTime::now();

        let bare = tokens.find(Some(bare.expose()), now).unwrap();
        assert!(!bare.principal.tools.include("com.example.echo", 1));
        assert!(!bare.principal.may_approve);
        assert_eq!(bare.requests, None);

        let full = tokens.find(Some(full.expose()), now).unwrap();
        assert_eq!(&*full.principal.name, "full");
        assert!(full.principal.tools.include("com.example.echo", 1));
        assert!(!full.principal.tools.include("org.other", 1));
        assert!(full.principal.tools.include("org.other", 2));
        assert!(full.principal.may_approve);
        assert_eq!(full.requests, Some(3));
    }

    #[test]
    fn a_token_holds_until_the_moment_that_it_expires() {
        let (secret, hash) = generate().unwrap();
        let tokens = parse(&entry("one", &hash, "expires = 2030-01-01T00:00:00Z")).unwrap();
        let moment = SystemTime::UNIX_EPOCH + Duration::from_secs(1_893_456_000);
        assert!(
            tokens
                .find(Some(secret.expose()), moment - Duration::from_secs(1))
                .is_ok()
        );
        assert_eq!(
            tokens.find(Some(secret.expose()), moment),
            Err(Refusal::Expired)
        );
    }

    #[test]
    fn two_tokens_of_one_name_are_one_principal_only_if_they_may_the_same() {
        let (one, one_hash) = generate().unwrap();
        let (other, other_hash) = generate().unwrap();
        let same = entry("one", &one_hash, "tools = [\"*\"]")
            + &entry("one", &other_hash, "tools = [\"*\"]");
        let tokens = parse(&same).unwrap();
        let now = SystemTime::now();
        assert_eq!(
            tokens.find(Some(one.expose()), now),
            tokens.find(Some(other.expose()), now)
        );
        let differing = entry("one", &one_hash, "tools = [\"*\"]") + &entry("one", &other_hash, "");
        assert!(refused(&differing).contains("line 5"));
    }

    #[test]
    fn what_an_entry_can_not_mean_is_refused_with_its_line() {
        let (_, hash) = generate().unwrap();
        for (text, says) in [
            ("token = 1".to_owned(), "line 1"),
            (entry("", &hash, ""), "name"),
            (entry("Alice", &hash, ""), "name"),
            (entry("local", &hash, ""), "local"),
            (entry("one", &hash, "tool = [\"*\"]"), "unknown field"),
            (entry("one", &hash, "tools = [\"*\", \"a\"]"), "`*`"),
            (entry("one", &hash, "tools = [\"a*\"]"), "a*"),
            (entry("one", &hash, "tools = [\"a@x\"]"), "a@x"),
            (entry("one", &hash, "requests = 0"), "0 requests"),
            (entry("one", &hash, "expires = 2030-01-01"), "expire"),
            (entry("one", &hash, "") + &entry("two", &hash, ""), "twice"),
            (
                "[[token]]\nname = \"one\"\nhash = \"blake3:12\"\n".to_owned(),
                "64 digits",
            ),
            (
                "[[token]]\nname = \"one\"\nhash = \"toolward_secret\"\n".to_owned(),
                "64 digits",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("toolward_secret"), "{error}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        let (secret, hash) = generate().unwrap();
        std::fs::write(&path, entry("one", &hash, "")).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let error = read(&path).unwrap_err();
            assert_eq!(error.code(), "token-file-unsafe", "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            read(&path)
                .unwrap()
                .find(Some(secret.expose()), SystemTime::now())
                .is_ok()
        );
    }

    #[test]
    fn a_file_that_is_no_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(
            read(directory.path()).unwrap_err().code(),
            "token-file-unsafe"
        );
        assert_eq!(
            read(&directory.path().join("missing")).unwrap_err().code(),
            "token-file-unusable"
        );
    }
}
