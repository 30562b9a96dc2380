//! Reading: text rules first, then TOML 1.0, then every value into its own type.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::{Kind, SCHEMA};
use crate::error::{ErrorKind, Refusal};
use crate::text::{is_hidden, place, quoted, visible};
use crate::timestamp::Timestamp;
use crate::toml10;

/// Only the schema, so that a document of a later schema is told apart from a broken one.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: Option<toml::Value>,
}

/// The text of a document, for the places of what is wrong in it.
pub(crate) struct Source<'a> {
    kind: &'a Kind,
    bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Reads a document into a type that mirrors its TOML.
    pub(crate) fn read<T: DeserializeOwned>(
        kind: &'a Kind,
        bytes: &'a [u8],
    ) -> Result<(Self, T), Refusal> {
        let source = Self { kind, bytes };
        let invalid = || Refusal::new(ErrorKind::DocumentInvalid);
        let text =
            crate::text::plain(bytes, kind.max_bytes, ErrorKind::DocumentInvalid, kind.name)?;
        if let Some(newer) = toml10::first_newer(text) {
            return Err(invalid()
                .at(source.place(newer.offset))
                .expected("TOML 1.0")
                .found(format!("{}, which came with TOML 1.1", newer.what)));
        }
        let raw = toml::from_str(text).map_err(|error| {
            let schema = toml::from_str(text)
                .ok()
                .and_then(|SchemaOnly { schema }| schema?.as_integer());
            match schema {
                Some(schema) if u64::try_from(schema) != Ok(SCHEMA) => other_schema(kind, schema),
                _ => invalid()
                    .at(source.place(error.span().map_or(0, |span| span.start)))
                    .found(visible(error.message())),
            }
        })?;
        Ok((source, raw))
    }

    /// Checks the schema of a document that has all keys of this one.
    pub(crate) fn schema(&self, schema: u64) -> Result<(), Refusal> {
        if schema == SCHEMA {
            Ok(())
        } else {
            Err(other_schema(self.kind, schema))
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

    /// [`Source::value`] where the value may be left out.
    pub(crate) fn optional<T, U>(
        &self,
        value: Option<&Spanned<T>>,
        read: impl FnOnce(&T) -> Result<U, Refusal>,
    ) -> Result<Option<U>, Refusal> {
        value.map(|value| self.value(value, read)).transpose()
    }

    /// A refusal of the document as a whole.
    pub(crate) fn invalid(&self) -> Refusal {
        Refusal::new(ErrorKind::DocumentInvalid).at(self.kind.name)
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
        place(self.kind.name, self.bytes, offset)
    }
}

fn other_schema(kind: &Kind, schema: impl std::fmt::Display) -> Refusal {
    Refusal::new(ErrorKind::DocumentSchema)
        .at(kind.name)
        .expected("schema 1")
        .found(visible(&format!("schema {schema}")))
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
