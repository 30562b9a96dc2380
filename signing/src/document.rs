//! What publisher documents, revocation lists and channel indexes have in common: one envelope, TOML 1.0
//! inside, a version and a time. Each kind has a module for its contents.
//!
//! Reading applies the rules of text first, then TOML 1.0, then turns every value into its type.

use std::fmt::{self, Write as _};
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

use semver::Version;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::id;
use crate::key::KeyId;
use crate::revocation::known::Revocations;
use crate::text::{first_newer, is_hidden, place, quoted, string, visible};
use crate::timestamp::{Mode, Timestamp};

/// The schema of all these documents.
pub(crate) const SCHEMA: u64 = 1;

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

/// What the acceptance of a document depends on, besides its bytes and the keys: fixed once per operation.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The time against which `created` and `expires` are checked.
    pub now: SystemTime,
    /// Whether age refuses or warns.
    pub mode: Mode,
    /// The known revocations: signatures by revoked keys do not count.
    pub revocations: &'a Revocations,
}

/// A document with what is known of its signatures. Only this crate makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignedDocument<T> {
    /// The document, parsed from the signed bytes.
    pub document: T,
    /// The digest of the signed bytes: with the version, the document's identity.
    pub digest: Digest,
    /// The envelope, as it was read.
    pub envelope_bytes: Arc<[u8]>,
    /// The keys whose signatures counted: sorted, distinct.
    pub signers: Vec<KeyId>,
    /// What a person should know, one sentence each.
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
    /// Its payload type: one for each kind, so that none can pass for another.
    pub(crate) payload_type: &'static str,
    /// How large it may be, in bytes.
    pub(crate) max_bytes: usize,
    /// How large its envelope may be, in bytes.
    pub(crate) max_envelope_bytes: usize,
}

impl DocumentKind {
    /// Its TOML.
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

    /// Reads an envelope of this kind, without its signatures.
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

    /// Checks the time of a document: what [`Mode::Audit`] relaxes comes back as warnings.
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

/// A kind of TOML document: its name in messages, how large it may be, and the codes of its refusals.
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
    /// Writes a document and reads it back, which applies every rule of the format to what was built in memory.
    pub(crate) fn write<T: PartialEq>(
        &self,
        document: &T,
        write_tables: impl FnOnce(&mut String) -> fmt::Result,
        parse: fn(&[u8]) -> Result<T, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let mut text = String::new();
        // Writing to a String can't fail.
        let _ = write_tables(&mut text);
        let bytes = text.into_bytes();
        if parse(&bytes)? == *document {
            return Ok(bytes);
        }
        Err(Refusal::new(self.field)
            .at(self.name)
            .expected("values that read back as they were written"))
    }
}

/// Only the schema, to tell a document of a later schema from a broken one.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

/// The text of a document, which gives each refusal its place.
pub(crate) struct DocumentText<'a> {
    format: Format,
    bytes: &'a [u8],
}

impl<'a> DocumentText<'a> {
    /// Reads a document into a type that mirrors its TOML.
    pub(crate) fn read<T: DeserializeOwned>(
        format: Format,
        bytes: &'a [u8],
    ) -> Result<(Self, T), Refusal> {
        let source = Self { format, bytes };
        let text = crate::text::plain(bytes, format.max_bytes, format.text, format.name)?;
        if let Some(newer) = first_newer(text) {
            return Err(Refusal::new(format.syntax)
                .at(source.place(newer.offset))
                .expected("TOML 1.0")
                .found(format!("{}, which came with TOML 1.1", newer.what)));
        }
        match toml::from_str(text) {
            Ok(raw) => Ok((source, raw)),
            Err(error) => Err(source.refused(text, &error)),
        }
    }

    fn refused(&self, text: &str, error: &toml::de::Error) -> Refusal {
        // If the TOML is valid, a field is wrong, not the syntax.
        let refusal = match toml::from_str(text) {
            Ok(SchemaOnly { schema }) => {
                let schema = schema.and_then(|schema| schema.as_integer());
                match schema.filter(|schema| u64::try_from(*schema) != Ok(SCHEMA)) {
                    Some(schema) => return self.other_schema(schema).at(self.format.name),
                    None => Refusal::new(self.format.field),
                }
            }
            Err(_) if self.format.syntax == self.format.field => Refusal::new(self.format.field),
            Err(_) => Refusal::new(self.format.syntax).expected("TOML 1.0"),
        };
        refusal
            .at(self.place(error.span().map_or(0, |span| span.start)))
            .found(visible(error.message()))
    }

    /// A refusal of a schema that is not this crate's.
    pub(crate) fn other_schema(&self, schema: impl fmt::Display) -> Refusal {
        Refusal::new(self.format.schema)
            .expected("schema 1")
            .found(visible(&format!("schema {schema}")))
    }

    /// Checks the schema of a document that has all keys of this one.
    pub(crate) fn schema(&self, schema: &Spanned<u64>) -> Result<(), Refusal> {
        match *schema.get_ref() {
            SCHEMA => Ok(()),
            other => Err(self.other_schema(other).at(self.format.name)),
        }
    }

    /// Checks one value; a refusal gets its place.
    pub(crate) fn value<T, U>(
        &self,
        value: &Spanned<T>,
        read: impl FnOnce(&T) -> Result<U, Refusal>,
    ) -> Result<U, Refusal> {
        read(value.get_ref()).map_err(|refusal| refusal.at(self.place(value.span().start)))
    }

    /// [`DocumentText::value`] for a value that may be left out.
    pub(crate) fn optional<T, U>(
        &self,
        value: Option<&Spanned<T>>,
        read: impl FnOnce(&T) -> Result<U, Refusal>,
    ) -> Result<Option<U>, Refusal> {
        value.map(|value| self.value(value, read)).transpose()
    }

    /// A text that its type reads.
    pub(crate) fn parsed<U: FromStr<Err = Refusal>>(
        &self,
        value: &Spanned<String>,
    ) -> Result<U, Refusal> {
        self.value(value, |text| text.parse())
    }

    /// The name of a publisher, a bundle or a channel.
    pub(crate) fn name(&self, value: &Spanned<String>) -> Result<String, Refusal> {
        self.value(value, |text| id::check(text).map(|()| text.clone()))
    }

    pub(crate) fn version(&self, value: &Spanned<String>) -> Result<Version, Refusal> {
        self.value(value, |text| {
            Version::parse(text).map_err(|error| {
                Refusal::new(self.format.field)
                    .expected("a semantic version such as 1.2.3")
                    .found(format!("{} ({error})", quoted(text)))
            })
        })
    }

    /// A number from `least`, which is 0 or 1, to 2^63 - 1: TOML promises 64-bit signed integers only, and other
    /// readers may refuse larger ones, which the `toml` crate reads.
    pub(crate) fn number(&self, value: &Spanned<u64>, least: u64) -> Result<u64, Refusal> {
        self.value(value, |number| {
            if *number >= least && i64::try_from(*number).is_ok() {
                return Ok(*number);
            }
            Err(Refusal::new(self.format.field)
                .expected(match least {
                    0 => "an integer of at most 2^63 - 1",
                    _ => "an integer from 1 to 2^63 - 1",
                })
                .found(number.to_string()))
        })
    }

    /// Text for people: one line, not empty, at most `max` characters, none of them hidden. An escape could
    /// bring in what the rules of text keep out.
    pub(crate) fn free_text(&self, value: &Spanned<String>, max: usize) -> Result<String, Refusal> {
        self.value(value, |text| {
            let is_too_long = text.chars().count() > max;
            if text.trim().is_empty() || is_too_long || text.chars().any(is_hidden) {
                return Err(Refusal::new(self.format.field)
                    .expected(format!(
                        "one line of at most {max} characters, none of them hidden"
                    ))
                    .found(quoted(text)));
            }
            Ok(text.clone())
        })
    }

    /// A refusal of the document as a whole.
    pub(crate) fn invalid(&self) -> Refusal {
        Refusal::new(self.format.field).at(self.format.name)
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

    /// Refuses a document that expires before it was created.
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

    fn place(&self, offset: usize) -> String {
        place(self.format.name, self.bytes, offset)
    }
}

/// Reads each entry of a list.
pub(crate) fn each<T, U>(
    entries: &[T],
    read: impl FnMut(&T) -> Result<U, Refusal>,
) -> Result<Vec<U>, Refusal> {
    entries.iter().map(read).collect()
}

/// Writes a key with a time, or nothing without one.
pub(crate) fn write_time(text: &mut String, key: &str, time: Option<Timestamp>) -> fmt::Result {
    time.map_or(Ok(()), |time| writeln!(text, "{key} = \"{time}\""))
}

/// Writes a key with a string, or nothing without one. Characters that signed text may not have become escapes,
/// which are refused when the document is read back.
pub(crate) fn write_string<'a>(
    text: &mut String,
    key: &str,
    value: impl Into<Option<&'a str>>,
) -> fmt::Result {
    let Some(value) = value.into() else {
        return Ok(());
    };
    writeln!(text, "{key} = {}", string(value))
}
