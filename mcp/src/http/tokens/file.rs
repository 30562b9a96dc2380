//! The file of hashed tokens: its format, the check of its owner and mode, and new entries. Files are written
//! atomically, and only their owner can read them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
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
struct WrittenToken {
    name: String,
    hash: String,
    /// Without it the token can use no tool.
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    may_approve: bool,
    expires: Option<toml::value::Datetime>,
    requests: Option<usize>,
}

/// Reads a file of tokens. It must belong to the user who runs this process, and
/// nobody else may read or write it.
pub fn read(path: &Path) -> Result<Tokens, HttpError> {
    parse(&text(path)?)
}

/// The text of such a file. A link to it is followed.
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

/// The error of a file that others may have read or written, or that can't be read.
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

    /// The entry as lines of TOML.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Adds an entry to a file of hashed tokens, which is made if it isn't there.
///
/// # Errors
/// A file that a server would not read, or that has an entry of this name.
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

/// Replaces a file by one with the token that only its owner can read.
pub fn write(path: &Path, secret: &Secret) -> Result<(), HttpError> {
    let line = zeroize::Zeroizing::new(format!("{}\n", secret.expose()));
    replace(path, line.as_bytes())
}

/// Locks the file against other additions until it is dropped.
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

#[cfg(test)]
mod adding_tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::super::{generate, read};
    use super::*;

    fn entry(name: &str, hash: TokenHash) -> Entry {
        Entry::new(name, hash, &["open.*".to_owned()], false).unwrap()
    }

    /// A directory with nothing in it, and a path in it.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens.toml");
        (directory, path)
    }

    #[test]
    fn a_written_token_is_readable_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        // What was there, and where it led, stays as it was.
        let elsewhere = directory.path().join("elsewhere");
        std::fs::write(&elsewhere, "mine").unwrap();
        symlink(&elsewhere, &path).unwrap();

        let (secret, _) = generate().unwrap();
        write(&path, &secret).unwrap();
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().trim_end(),
            secret.expose()
        );
        assert_eq!(std::fs::symlink_metadata(&path).unwrap().mode(), 0o100_600);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_a_killed_process_left_behind_is_in_nobodys_way() {
        let (directory, path) = place();
        for left in [
            format!(".tokens.toml.{}", std::process::id()),
            ".tokens.toml.1".to_owned(),
        ] {
            std::fs::write(directory.path().join(left), "").unwrap();
        }
        let (secret, _) = generate().unwrap();
        write(&path, &secret).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written.trim_end(), secret.expose());
    }

    #[test]
    fn an_entry_that_is_added_is_read_and_what_was_there_stays() {
        let (directory, path) = place();
        let (first, hash) = generate().unwrap();
        add(&path, &entry("first", hash)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode(), 0o100_600);
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.insert_str(0, "# Mine.\n");
        text.truncate(text.trim_end().len());
        std::fs::write(&path, &text).unwrap();

        let (second, hash) = generate().unwrap();
        let more = Entry::new("second", hash, &["*".to_owned()], true).unwrap();
        add(&path, &more).unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        assert_eq!(written, format!("{text}\n\n{}", more.text()));
        let (tokens, now) = (read(&path).unwrap(), SystemTime::now());
        let first = tokens.find(Some(first.expose()), now).unwrap().principal;
        assert_eq!(&*first.name, "first");
        assert!(first.tools.include("open.door", 1) && !first.tools.include("shut.door", 1));
        assert!(!first.may_approve);
        let second = tokens.find(Some(second.expose()), now).unwrap().principal;
        assert!(second.tools.include("shut.door", 1) && second.may_approve);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_entry_without_tools_reaches_nothing() {
        let (_directory, path) = place();
        let (secret, hash) = generate().unwrap();
        add(&path, &Entry::new("bare", hash, &[], false).unwrap()).unwrap();
        let found = read(&path)
            .unwrap()
            .find(Some(secret.expose()), SystemTime::now());
        assert!(!found.unwrap().principal.tools.include("open.door", 1));
    }

    #[test]
    fn nothing_is_added_to_a_file_that_is_unfit_or_knows_the_name() {
        let (directory, path) = place();
        let (_, hash) = generate().unwrap();
        add(&path, &entry("one", hash)).unwrap();
        let refused = |code: &str, more: &Entry| {
            let before = std::fs::read(&path).unwrap();
            assert_eq!(add(&path, more).unwrap_err().code(), code);
            assert_eq!(std::fs::read(&path).unwrap(), before);
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        };
        let (_, other) = generate().unwrap();
        refused("token-known", &entry("one", other));
        refused("token-file-invalid", &entry("two", hash));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        refused("token-file-unsafe", &entry("two", other));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let held = alone(&path).unwrap();
        refused("token-file-unusable", &entry("two", other));
        drop(held);
        std::fs::write(&path, "token = 1").unwrap();
        refused("token-file-invalid", &entry("two", other));
    }

    #[test]
    fn through_a_link_the_file_behind_it_is_added_to() {
        let (directory, path) = place();
        let link = directory.path().join("link");
        let (_, hash) = generate().unwrap();
        add(&path, &entry("one", hash)).unwrap();
        symlink(&path, &link).unwrap();
        let (_, hash) = generate().unwrap();
        add(&link, &entry("two", hash)).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_link_to_nothing_stays_as_it_is() {
        let (directory, path) = place();
        symlink(directory.path().join("gone"), &path).unwrap();
        let (_, hash) = generate().unwrap();
        let refused = add(&path, &entry("one", hash)).unwrap_err();
        assert_eq!(refused.code(), "token-file-unusable");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_added_that_makes_a_file_larger_than_is_read() {
        let (_directory, path) = place();
        let (_, hash) = generate().unwrap();
        add(&path, &entry("one", hash)).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str(&"#".repeat(1024 * 1024 - text.len()));
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
        let (_, hash) = generate().unwrap();
        let refused = add(&path, &entry("two", hash)).unwrap_err();
        assert_eq!(refused.code(), "token-file-invalid");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn what_the_file_can_not_have_is_no_entry() {
        let (_, hash) = generate().unwrap();
        for (name, tool) in [
            ("Alice", "a.b"),
            ("local", "a.b"),
            ("", "a.b"),
            ("a\"\nb", "a.b"),
            ("alice", "a\"b"),
            ("alice", "a*"),
            ("alice", ""),
        ] {
            let refused = Entry::new(name, hash, &[tool.to_owned()], false).unwrap_err();
            assert_eq!(refused.code(), "token-invalid", "{name:?} {tool:?}");
        }
    }
}
