//! `bundle.toml`, the author's description of a bundle. From it, `pack` makes the manifest, which
//! the publisher signs.

mod build_entry;

use serde::Deserialize;
use toml::Spanned;
use toolward_contract::diagnostic::{Diagnostic, Parsed, Position};
use toolward_signing::id::Id;
use toolward_signing::timestamp::Timestamp;
use toolward_support::fields::{nearest, without_mark};
use toolward_support::report::Code;

use self::build_entry::RawBuild;
pub use self::build_entry::{BuildEntry, BuildKind, World};
use crate::codes;
use crate::files::MAX_BUNDLE_TOML;
use crate::locate::text_of;

/// The name of the file in a bundle's authoring directory.
pub const FILE: &str = "bundle.toml";

/// How large `bundle.toml` may be, in bytes: the same limit as for the manifest made from it.
pub const MAX_SIZE: usize = MAX_BUNDLE_TOML;

/// A valid `bundle.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleToml {
    /// The bundle's id: lower-case ASCII, within the publisher's prefixes.
    pub id: String,
    /// The bundle's version.
    pub version: semver::Version,
    /// Rises with every release of the id.
    pub sequence: u64,
    /// The publisher that will sign. Keys decide about trust, not this name.
    pub publisher: String,
    /// When the bundle was made: RFC 3339 in UTC, as text or as a TOML date. If it is missing,
    /// `pack` uses the time in [`PackOptions`](super::PackOptions).
    pub created: Option<Timestamp>,
    /// When the bundle stops being valid, in the same forms as `created`.
    pub expires: Option<Timestamp>,
    /// The oldest host that can run the bundle.
    pub min_host: Option<semver::Version>,
    /// How the components are made.
    pub builds: Vec<BuildEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    id: Spanned<String>,
    version: Spanned<String>,
    sequence: Spanned<u64>,
    publisher: Spanned<String>,
    created: Option<Spanned<toml::Value>>,
    expires: Option<Spanned<toml::Value>>,
    min_host: Option<Spanned<String>>,
    #[serde(default, rename = "build")]
    builds: Vec<RawBuild>,
}

impl BundleToml {
    /// Reads `source`; `file` is its name in diagnostics.
    pub fn parse(file: &str, source: &str) -> Parsed<Self> {
        let mut reader = Reader {
            file,
            source: without_mark(source),
            diagnostics: Vec::new(),
        };
        let value = reader.read();
        Parsed {
            value: value.filter(|_| reader.diagnostics.is_empty()),
            diagnostics: reader.diagnostics,
        }
    }
}

/// Finds the intended key from the parser's message: "unknown field `x`, expected one of `a`, `b`".
fn near_key(message: &str) -> Option<&str> {
    let mut words = message.split('`').skip(1).step_by(2);
    nearest(words.next()?, words)
}

/// Checks the encoding of a `bundle.toml` and reads it.
pub fn parse_bytes(file: &str, bytes: &[u8]) -> Parsed<BundleToml> {
    match text_of(file, &codes::BUNDLE_TOML_SYNTAX, bytes) {
        Ok(source) => BundleToml::parse(file, source),
        Err(found) => Parsed {
            value: None,
            diagnostics: vec![found],
        },
    }
}

struct Reader<'a> {
    file: &'a str,
    source: &'a str,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn read(&mut self) -> Option<BundleToml> {
        let source = self.source;
        if source.len() > MAX_SIZE {
            let message = format!(
                "the file has {} bytes, the limit is {MAX_SIZE}",
                source.len()
            );
            self.error(0, &codes::BUNDLE_TOML_SYNTAX, message, None);
            return None;
        }
        if let Some((at, character)) = source
            .char_indices()
            .find(|(_, c)| *c != '\n' && *c != '\t' && crate::text::is_hidden(*c))
        {
            let message = format!(
                "the character {} is not allowed here",
                character.escape_unicode()
            );
            let hint = if character == '\r' {
                "save the file with LF line ends"
            } else {
                "remove it; control and invisible characters are refused in what gets signed"
            };
            self.error(at, &codes::BUNDLE_TOML_SYNTAX, message, Some(hint));
            return None;
        }
        let raw: Raw = match toml::from_str(source) {
            Ok(raw) => raw,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let message = error.message().to_owned();
                let code = if message.contains("unknown field") {
                    &codes::BUNDLE_TOML_UNKNOWN_KEY
                } else if message.contains("missing field") {
                    &codes::BUNDLE_TOML_MISSING_KEY
                } else {
                    &codes::BUNDLE_TOML_SYNTAX
                };
                let near = Some(&message).filter(|_| *code == codes::BUNDLE_TOML_UNKNOWN_KEY);
                let near = near.and_then(|message| near_key(message));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                self.error(at, code, message, hint.as_deref());
                return None;
            }
        };
        let id = self.id("id", &raw.id);
        let version = self.version("version", &raw.version);
        let publisher = self.id("publisher", &raw.publisher);
        let created = self.time("created", raw.created.as_ref());
        let expires = self.time("expires", raw.expires.as_ref());
        let min_host = raw
            .min_host
            .as_ref()
            .and_then(|value| self.version("min_host", value));
        let builds = self.builds(&raw.builds);
        Some(BundleToml {
            id,
            version: version?,
            sequence: *raw.sequence.get_ref(),
            publisher,
            created,
            expires,
            min_host,
            builds,
        })
    }

    fn id(&mut self, key: &str, id: &Spanned<String>) -> String {
        let read = Id::parse(id.get_ref()).map_err(|refusal| format!("`{key}`: {refusal}"));
        let hint = "write 2 to 80 lower-case ASCII letters, digits, dashes and dots";
        self.checked(id, read, hint);
        id.get_ref().clone()
    }

    fn version(&mut self, key: &str, value: &Spanned<String>) -> Option<semver::Version> {
        let read = semver::Version::parse(value.get_ref());
        let read = read.map_err(|error| format!("`{key}` is not a version: {error}"));
        let hint = "versions have three numbers, as in \"1.2.3\"";
        self.checked(value, read, hint)
    }

    /// Reads a time from text or from a TOML date. A date without a time means the start of that
    /// day in UTC.
    fn time(&mut self, key: &str, value: Option<&Spanned<toml::Value>>) -> Option<Timestamp> {
        let value = value?;
        let text = match value.get_ref() {
            toml::Value::String(text) => text.clone(),
            toml::Value::Datetime(date) if date.time.is_none() => format!("{date}T00:00:00Z"),
            other => other.to_string(),
        };
        let read = Timestamp::parse(&text).map_err(|refusal| format!("`{key}`: {refusal}"));
        let hint = "write it in UTC, as in \"2026-11-21T08:00:00Z\"";
        self.checked(value, read, hint)
    }

    fn checked<T, U>(&mut self, at: &Spanned<T>, read: Result<U, String>, hint: &str) -> Option<U> {
        read.map_err(|message| self.wrong(at, &message, hint)).ok()
    }

    /// Reports an invalid value.
    fn wrong<T>(&mut self, at: &Spanned<T>, message: &str, hint: &str) {
        let (at, code) = (at.span().start, &codes::BUNDLE_TOML_VALUE);
        self.error(at, code, message.to_owned(), Some(hint));
    }

    fn error(&mut self, at: usize, code: &Code, message: String, hint: Option<&str>) {
        let at = Position::of_offset(self.source, at);
        self.diagnostics.push(Diagnostic {
            hint: hint.map(str::to_owned),
            ..Diagnostic::new(code, self.file, at, message)
        });
    }
}
