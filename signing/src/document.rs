//! The common parts of publisher documents, revocation lists and channel indexes: an envelope, TOML
//! 1.0 inside, a version and a time. Each kind has a module for its contents.
//!
//! A reader first checks the rules of text, then parses TOML 1.0, then converts every value to its
//! type, which checks the value.

use std::cell::Cell;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::SystemTime;

use semver::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use toml::de::{DeTable, ValueDeserializer};

use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, REFUSED, Refusal, refuse};
use crate::id;
use crate::key::KeyId;
use crate::revocation::known::Revocations;
use crate::text::{first_newer, is_hidden, place, quoted, string, visible};
use crate::timestamp::{Mode, Timestamp};

/// The schema of all these documents.
const SCHEMA: i64 = 1;

/// A value that this crate has verified. Only this crate makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value; its type no longer shows that it was verified.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The terms for accepting a document, besides its bytes and the keys. They are fixed once per
/// operation.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The time against which `created` and `expires` are checked.
    pub now: SystemTime,
    /// Whether a wrong age is refused or gives a warning.
    pub mode: Mode,
    /// The known revocations: signatures by revoked keys do not count.
    pub revocations: &'a Revocations,
}

/// A document with the keys that signed it. Only this crate makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedDocument<T> {
    /// The document, parsed from the signed bytes.
    pub document: T,
    /// The digest of the signed bytes. Version and digest together identify the document.
    pub digest: Digest,
    /// The envelope, as it was read.
    pub envelope_bytes: Arc<[u8]>,
    /// The keys whose signatures counted: sorted, distinct.
    pub signers: Vec<KeyId>,
    /// Warnings for people, one sentence each.
    pub warnings: Vec<String>,
}

impl<T> SignedDocument<T> {
    /// The document in `envelope`, which was read from `bytes`.
    pub(crate) fn new(
        document: T,
        envelope: &Envelope,
        bytes: &[u8],
        signers: Vec<KeyId>,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            document,
            digest: Digest::of(envelope.payload()),
            envelope_bytes: bytes.into(),
            signers,
            warnings,
        }
    }
}

impl<T> Deref for SignedDocument<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.document
    }
}

/// One kind of document.
#[derive(Clone, Copy)]
pub(crate) struct DocumentKind {
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Its payload type: different for each kind, so that no kind can pass for another.
    pub(crate) payload_type: &'static str,
    /// How large it may be, in bytes.
    pub(crate) max_bytes: usize,
    /// How large its envelope may be, in bytes.
    pub(crate) max_envelope_bytes: usize,
}

impl DocumentKind {
    /// The format of its TOML.
    pub(crate) fn format(&self) -> Format {
        Format {
            name: self.name,
            max_bytes: self.max_bytes,
            text: ErrorKind::DocumentInvalid,
            syntax: ErrorKind::DocumentInvalid,
            schema: ErrorKind::DocumentSchema,
            field: ErrorKind::DocumentInvalid,
        }
    }

    /// Reads an envelope of this kind. Does not check its signatures.
    pub(crate) fn open(&self, bytes: &[u8]) -> Result<Envelope, Refusal> {
        let envelope = Envelope::parse_up_to(bytes, self.max_envelope_bytes)
            .map_err(|refusal| refusal.at(self.name))?;
        if envelope.payload_type() == self.payload_type {
            return Ok(envelope);
        }
        Err(Refusal::new(ErrorKind::PayloadType)
            .at(self.name)
            .expected(self.payload_type)
            .found(quoted(envelope.payload_type()))
            .hinted(format!("name the file of a {}", self.name)))
    }

    /// Checks the time of a document. Under [`Mode::Audit`], it returns refusals as warnings.
    pub(crate) fn check_age(
        &self,
        created: Timestamp,
        expires: Option<Timestamp>,
        terms: &Terms<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        let refuse = |refusal: Refusal| terms.mode.apply(refusal.at(self.name), &mut warnings);
        let early = created.not_yet(ErrorKind::DocumentNotYetValid, terms.now);
        let late = expires.and_then(|end| end.expired(ErrorKind::DocumentExpired, terms.now));
        early.into_iter().chain(late).try_for_each(refuse)?;
        Ok(warnings)
    }
}

/// A kind of TOML document: its name in messages, how large it may be, and the codes of its
/// refusals.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) max_bytes: usize,
    pub(crate) text: ErrorKind,
    pub(crate) syntax: ErrorKind,
    pub(crate) schema: ErrorKind,
    pub(crate) field: ErrorKind,
}

impl Format {
    /// Writes a document and reads it back, so that every rule of the format is checked.
    pub(crate) fn write<T: Serialize + PartialEq>(
        &self,
        document: &T,
        parse: fn(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let mut text = format!("schema = {SCHEMA}\n");
        if let Ok(Value::Object(table)) = serde_json::to_value(document) {
            write_table(&mut text, "", &table);
        }
        let bytes = text.into_bytes();
        if parse(&bytes)? == *document {
            return Ok(bytes);
        }
        Err(self
            .invalid()
            .expected("values that read back as they were written"))
    }

    /// Reads a document. Each entry of `limits` bounds one list of tables: the list's key, the
    /// maximum number of tables, and what messages call the tables.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        bytes: &[u8],
        limits: &[(&str, usize, &str)],
    ) -> Result<T, Refusal> {
        let text = crate::text::plain(bytes, self.max_bytes, self.text, self.name)?;
        if let Some((offset, what)) = first_newer(text) {
            return Err(Refusal::new(self.syntax)
                .at(place(self.name, bytes, offset))
                .expected("TOML 1.0")
                .found(format!("{what}, which came with TOML 1.1")));
        }
        let at = |refusal: Refusal, span: Option<Range<usize>>| {
            refusal.at(place(self.name, bytes, span.map_or(0, |span| span.start)))
        };
        let failed = |refusal: Refusal, error: &toml::de::Error| {
            at(refusal, error.span()).found(visible(error.message()))
        };
        let mut table = DeTable::parse(text).map_err(|error| {
            let refusal = Refusal::new(self.syntax);
            failed(
                match self.syntax == self.field {
                    true => refusal,
                    false => refusal.expected("TOML 1.0"),
                },
                &error,
            )
        })?;
        // `schema` is checked first, to distinguish a document of a later schema from an invalid
        // document.
        let Some(schema) = table.get_mut().remove("schema") else {
            let refusal = Refusal::new(self.field).found("missing field `schema`");
            return Err(at(refusal, Some(table.span())));
        };
        let span = schema.span();
        let other = |found: String| {
            let refusal = Refusal::new(self.schema).expected("schema 1");
            Err(at(refusal.found(format!("schema {found}")), Some(span)))
        };
        let digits = schema.get_ref().as_integer().map(ToString::to_string);
        match (i64::deserialize(ValueDeserializer::from(schema)), digits) {
            (Ok(SCHEMA), _) => {}
            (Ok(found), _) => return other(found.to_string()),
            // A number beyond 64 bits.
            (Err(_), Some(digits)) => return other(digits),
            (Err(error), None) => return Err(failed(Refusal::new(self.field), &error)),
        }
        for (key, max, what) in limits {
            let tables = table.get_ref().get(*key);
            let tables = tables.and_then(|tables| tables.get_ref().as_array());
            self.at_most(tables.map_or(0, |tables| tables.len()), *max, what)?;
        }
        let _ = REFUSED.take();
        FIELD.set(self.field);
        T::deserialize(toml::de::Deserializer::from(table)).map_err(|error| match REFUSED.take() {
            Some(refusal) => at(refusal, error.span()),
            None => failed(Refusal::new(self.field), &error),
        })
    }

    /// A refusal of the document as a whole.
    pub(crate) fn invalid(&self) -> Refusal {
        Refusal::new(self.field).at(self.name)
    }

    /// Refuses more entries than a document may have.
    pub(crate) fn at_most(&self, found: usize, max: usize, what: &str) -> Result<(), Refusal> {
        if found <= max {
            return Ok(());
        }
        Err(self
            .invalid()
            .expected(format!("at most {max} {what}"))
            .found(found.to_string()))
    }

    /// Refuses a document that expires before or at its creation.
    pub(crate) fn check_times(
        &self,
        created: Timestamp,
        expires: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        match expires {
            Some(expires) if expires <= created => Err(self
                .invalid()
                .expected(format!("`expires` after `created`, {created}"))
                .found(expires.to_string())),
            _ => Ok(()),
        }
    }
}

thread_local! {
    /// The code for wrong values in the document that this thread reads. It is a thread-local
    /// because serde passes no state to the functions that read values.
    static FIELD: Cell<ErrorKind> = const { Cell::new(ErrorKind::DocumentInvalid) };
}

/// A refusal of a value.
fn wrong_value() -> Refusal {
    Refusal::new(FIELD.get())
}

/// The name of a publisher, a bundle or a channel.
pub(crate) fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    id::Id::deserialize(from).map(|id| id.as_str().to_owned())
}

pub(crate) fn optional_name<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    let id = Option::<id::Id>::deserialize(from)?;
    Ok(id.map(|id| id.as_str().to_owned()))
}

/// A semantic version.
struct Release(Version);

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Version::parse(&text).map(Self).map_err(|error| {
            refuse(
                wrong_value()
                    .expected("a semantic version such as 1.2.3")
                    .found(format!("{} ({error})", quoted(&text))),
            )
        })
    }
}

pub(crate) fn version<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
    Release::deserialize(from).map(|release| release.0)
}

pub(crate) fn optional_version<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Version>, D::Error> {
    Ok(Option::<Release>::deserialize(from)?.map(|release| release.0))
}

/// A number from `LEAST`, which is 0 or 1, to 2^63 - 1. TOML promises only 64-bit signed integers;
/// the `toml` crate reads larger numbers, but other readers may refuse them.
pub(crate) fn number<'de, const LEAST: u64, D: Deserializer<'de>>(
    from: D,
) -> Result<u64, D::Error> {
    let number = u64::deserialize(from)?;
    if number >= LEAST && i64::try_from(number).is_ok() {
        return Ok(number);
    }
    Err(refuse(
        wrong_value()
            .expected(match LEAST {
                0 => "an integer of at most 2^63 - 1",
                _ => "an integer from 1 to 2^63 - 1",
            })
            .found(number.to_string()),
    ))
}

/// Text for people: one line, not empty, at most `MAX` characters, none of them hidden. Otherwise,
/// a TOML escape could bring in characters that are forbidden in signed text.
struct Line<const MAX: usize>(String);

impl<'de, const MAX: usize> Deserialize<'de> for Line<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let is_too_long = text.chars().count() > MAX;
        if text.trim().is_empty() || is_too_long || text.chars().any(is_hidden) {
            let expected = format!("one line of at most {MAX} characters, none of them hidden");
            return Err(refuse(
                wrong_value().expected(expected).found(quoted(&text)),
            ));
        }
        Ok(Self(text))
    }
}

pub(crate) fn line<'de, const MAX: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<String, D::Error> {
    Line::<MAX>::deserialize(from).map(|line| line.0)
}

pub(crate) fn optional_line<'de, const MAX: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<String>, D::Error> {
    Ok(Option::<Line<MAX>>::deserialize(from)?.map(|line| line.0))
}

pub(crate) fn lines<'de, const MAX: usize, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<String>, D::Error> {
    let lines = Vec::<Line<MAX>>::deserialize(from)?;
    Ok(lines.into_iter().map(|line| line.0).collect())
}

/// Writes the values of a table, then the tables in it. Missing values, `false` and empty lists are
/// left out. Characters that are forbidden in signed text are written as escapes, which are refused
/// when the document is read back.
fn write_table(out: &mut String, path: &str, table: &Map<String, Value>) {
    for (key, value) in table {
        let written = match value {
            Value::Null | Value::Bool(false) | Value::Object(_) => continue,
            Value::Array(items) if items.iter().all(Value::is_object) => continue,
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(written).collect();
                format!("[{}]", items.join(", "))
            }
            value => written(value),
        };
        out.push_str(&format!("{key} = {written}\n"));
    }
    for (key, value) in table {
        let path = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        match value {
            Value::Object(table) => {
                // A table of tables needs no heading.
                if !table
                    .values()
                    .all(|value| value.is_object() || value.is_array())
                {
                    out.push_str(&format!("\n[{path}]\n"));
                }
                write_table(out, &path, table);
            }
            Value::Array(items) => {
                for table in items.iter().filter_map(Value::as_object) {
                    out.push_str(&format!("\n[[{path}]]\n"));
                    write_table(out, &path, table);
                }
            }
            _ => {}
        }
    }
}

/// A value of TOML. Text in several lines, such as a PEM key, stays readable.
fn written(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.contains('\n') && !text.contains(['"', '\\']) => {
            format!("\"\"\"\n{text}\"\"\"")
        }
        Some(text) => string(text),
        None => value.to_string(),
    }
}
