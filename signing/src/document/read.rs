//! Reading: text rules first, then TOML 1.0, then every value into its own type.

use std::str::FromStr;

use semver::Version;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::SCHEMA;
use crate::error::{ErrorKind, Refusal};
use crate::id;
use crate::text::{is_hidden, place, quoted, visible};
use crate::timestamp::Timestamp;
use crate::toml10;

/// What a document of TOML is called in messages, how large it may be, and what it is refused with.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) max_bytes: usize,
    pub(crate) text: ErrorKind,
    pub(crate) syntax: ErrorKind,
    pub(crate) schema: ErrorKind,
    pub(crate) field: ErrorKind,
}

/// Only the schema, so that a document of a later schema is told apart from a broken one.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

/// The text of a document, for the places of what is wrong in it.
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
        if let Some(newer) = toml10::first_newer(text) {
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
        // Valid TOML means that a field is wrong, not the syntax.
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
    pub(crate) fn other_schema(&self, schema: impl std::fmt::Display) -> Refusal {
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

    /// One value, checked; what is wrong with it is said with its place.
    pub(crate) fn value<T, U>(
        &self,
        value: &Spanned<T>,
        read: impl FnOnce(&T) -> Result<U, Refusal>,
    ) -> Result<U, Refusal> {
        read(value.get_ref()).map_err(|refusal| refusal.at(self.place(value.span().start)))
    }

    /// [`DocumentText::value`] where the value may be left out.
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

    /// A refusal of the document as a whole.
    pub(crate) fn invalid(&self) -> Refusal {
        Refusal::new(self.format.field).at(self.format.name)
    }

    /// Refuses a document that ends before it begins.
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

/// A number from 1 to 2^63 - 1: TOML promises 64-bit signed integers; what the `toml` crate reads beyond
/// them, other readers may not.
pub(crate) fn number(number: &u64) -> Result<u64, Refusal> {
    if *number > 0 && i64::try_from(*number).is_ok() {
        Ok(*number)
    } else {
        Err(Refusal::new(ErrorKind::DocumentInvalid)
            .expected("an integer from 1 to 2^63 - 1")
            .found(number.to_string()))
    }
}

/// [`number`], or 0: a bundle's sequence.
pub(crate) fn number_or_zero(number: &u64) -> Result<u64, Refusal> {
    if *number == 0 {
        Ok(0)
    } else {
        self::number(number)
    }
}

/// Text for people: one line, not empty, at most `max` characters, none of them hidden. An escape could
/// bring in what the rules of text keep out.
pub(crate) fn free_text(text: &str, max: usize) -> Result<String, Refusal> {
    let count = text.chars().count();
    if text.trim().is_empty() || count > max || text.chars().any(is_hidden) {
        return Err(Refusal::new(ErrorKind::DocumentInvalid)
            .expected(format!(
                "one line of at most {max} characters, none of them hidden"
            ))
            .found(quoted(text)));
    }
    Ok(text.to_owned())
}
