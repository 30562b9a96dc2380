//! Reads the keys of a policy's tables: TOML values by type. Each key may occur once, and all
//! unknown keys are refused. This module knows no specific table.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::Error as WordError;
use toolward_support::fields::{Content, FieldProblem, Kind, Node, Span, did_you_mean};
use toolward_support::report::Code;

use crate::error::{self, PolicyError, Refuse as _, quoted};

/// The most entries of a list.
const MAX_ENTRIES: usize = 1024;

pub(crate) type Field<'t> = toolward_support::fields::Field<'t, Span>;
pub(crate) type Fields<'t> = toolward_support::fields::Fields<'t, Span>;

impl From<FieldProblem<'_, Span>> for PolicyError {
    fn from(problem: FieldProblem<'_, Span>) -> Self {
        match problem {
            FieldProblem::Missing { name, within, at } => error::MISSING_KEY
                .error(format!("expected `{name}` in {within}, found none"))
                .at(at),
            FieldProblem::Unknown {
                key,
                within,
                at,
                known,
                ..
            } => {
                let message = format!("expected a key of {within}, found {}", quoted(key));
                let error = error::UNKNOWN_KEY.error(message).at(at);
                let known = known.iter().map(String::as_str);
                error.hinted(did_you_mean(key, known, "keys"))
            }
            FieldProblem::Type {
                name,
                expected,
                found,
            } => {
                let expected = match expected {
                    Kind::List => "a list of texts",
                    other => other.in_toml(),
                };
                wrong_type(&name, expected, found)
            }
            // TOML's integers have 64 bits with a sign.
            FieldProblem::Integer { name, found, .. } if found.kind() == Kind::Integer => {
                let number = match &found.content {
                    Content::Other(_, number) => number.clone(),
                    _ => found.to_value().to_string(),
                };
                let message = format!("expected `{name}` to be from 0 to 2^63 - 1, found {number}");
                error::WRONG_VALUE.error(message).at(found.at.clone())
            }
            FieldProblem::Integer { name, found, .. } => {
                wrong_type(&name, Kind::Integer.in_toml(), found)
            }
        }
    }
}

/// Reads a table with `read`, and refuses all keys that `read` does not take. Messages call the
/// table `what`.
pub(crate) fn table<'t, T>(
    field: Field<'t>,
    what: &str,
    read: impl FnOnce(&mut Fields<'t>) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    let mut fields = Fields::of(&field.named(what))?.by_key();
    let value = read(&mut fields)?;
    finish(&fields)?;
    Ok(value)
}

/// Refuses every key that was not taken.
pub(crate) fn finish(fields: &Fields<'_>) -> Result<(), PolicyError> {
    match fields.unknown().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

pub(crate) fn flag(fields: &mut Fields<'_>, key: &'static str) -> Result<bool, PolicyError> {
    let field = fields.take(key);
    let read = field.map(|field| field.boolean()).transpose()?;
    Ok(read.unwrap_or_default())
}

pub(crate) fn number(
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Result<Option<u64>, PolicyError> {
    fields.take(key).map(|field| integer(&field)).transpose()
}

pub(crate) fn integer(field: &Field<'_>) -> Result<u64, PolicyError> {
    Ok(field.integer(0..=u64::MAX)?)
}

pub(crate) fn wrong_type(name: &str, expected: &str, found: &Node<Span>) -> PolicyError {
    let message = format!(
        "expected `{name}` to be {expected}, found {}",
        found.kind().in_toml()
    );
    error::WRONG_TYPE.error(message).at(found.at.clone())
}

/// A text that is used unchanged.
pub(crate) fn own(text: &str) -> Result<String, PolicyError> {
    Ok(text.to_owned())
}

pub(crate) fn required<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    value(&fields.required(key)?, read)
}

pub(crate) fn optional<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| value(&field, read)).transpose()
}

pub(crate) fn value<'t, T>(
    field: &Field<'t>,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    read(field.text()?).map_err(|error| error.at(field.at.clone()))
}

/// A text, or a list of texts.
pub(crate) fn one_or_each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(None);
    };
    match field.kind() {
        Kind::Text => value(&field, read).map(|one| Some(vec![one])),
        Kind::List => texts(&field, read).map(Some),
        _ => Err(wrong_type(key, "a text or a list of texts", field.node)),
    }
}

pub(crate) fn each<'t, T, C: FromIterator<T>>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<C>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| texts(&field, read)).transpose()
}

/// Like [`each`], but the list is empty if the key is missing.
pub(crate) fn list<'t, T, C: FromIterator<T> + Default>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<C, PolicyError> {
    Ok(each(fields, key, read)?.unwrap_or_default())
}

pub(crate) fn texts<'t, T, C: FromIterator<T>>(
    field: &Field<'t>,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<C, PolicyError> {
    let items = field.items()?;
    if items.len() > MAX_ENTRIES {
        let (key, found) = (&field.name, items.len());
        let message = format!("expected at most {MAX_ENTRIES} entries in `{key}`, found {found}");
        return Err(error::TOO_LARGE.error(message).at(field.at.clone()));
    }
    let items = items.into_iter();
    let text = |item: Field<'t>| value(&item.named(&field.name), &read);
    items.map(text).collect()
}

/// One of the words of `T`; `expected` names them in the message.
pub(crate) fn word<'t, T: Deserialize<'t>>(
    code: &Code,
    expected: &str,
) -> impl Fn(&'t str) -> Result<T, PolicyError> {
    move |text| {
        let read: Result<T, WordError> = T::deserialize(text.into_deserializer());
        read.map_err(|_| code.expected(expected, text))
    }
}

/// A table whose keys the operator chooses.
pub(crate) fn by_name<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<BTreeMap<String, T>, PolicyError> {
    let members = fields.take(key).map(|field| field.members()).transpose()?;
    let members = members.into_iter().flatten();
    let member = |(name, field): (&str, Field<'t>)| Ok((name.to_owned(), value(&field, &read)?));
    members.map(member).collect()
}
