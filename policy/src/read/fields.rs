//! Problems of a TOML table in a policy's words, and what policies read more than once.

use toolward_support::fields::{Content, FieldProblem, Kind, Node, Span, nearest};

use crate::error::{self, PolicyError, Refuse as _, quoted};

/// Entries of a list.
const MAX_ENTRIES: usize = 1024;

pub(super) type Field<'t> = toolward_support::fields::Field<'t, Span>;
pub(super) type Fields<'t> = toolward_support::fields::Fields<'t, Span>;

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
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                error.hinted(did_you_mean(key, &known, "keys"))
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

/// The keys of a table that people call `what`.
pub(super) fn table<'t>(field: Field<'t>, what: &str) -> Result<Fields<'t>, PolicyError> {
    Ok(Fields::of(&field.named(what))?.by_key())
}

/// Refuses every key that was not taken.
pub(super) fn finish(fields: Fields<'_>) -> Result<(), PolicyError> {
    match fields.unknown().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

pub(super) fn text<'t>(
    fields: &mut Fields<'t>,
    key: &'static str,
) -> Result<Option<&'t str>, PolicyError> {
    let field = fields.take(key);
    Ok(field.map(|field| field.text()).transpose()?)
}

pub(super) fn flag(fields: &mut Fields<'_>, key: &'static str) -> Result<bool, PolicyError> {
    let field = fields.take(key);
    let read = field.map(|field| field.boolean()).transpose()?;
    Ok(read.unwrap_or_default())
}

pub(super) fn number(
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Result<Option<u64>, PolicyError> {
    fields.take(key).map(|field| integer(&field)).transpose()
}

pub(super) fn integer(field: &Field<'_>) -> Result<u64, PolicyError> {
    Ok(field.integer(0..=u64::MAX)?)
}

/// The texts of a list with their places.
pub(super) fn texts<'t>(field: &Field<'t>) -> Result<Vec<(&'t str, Span)>, PolicyError> {
    let items = field.items()?;
    if items.len() > MAX_ENTRIES {
        let (key, found) = (&field.name, items.len());
        let message = format!("expected at most {MAX_ENTRIES} entries in `{key}`, found {found}");
        return Err(error::TOO_LARGE.error(message).at(field.at.clone()));
    }
    let text = |item: Field<'t>| {
        let at = item.at.clone();
        Ok((item.named(&field.name).text()?, at))
    };
    items.into_iter().map(text).collect()
}

/// A hint for a word that is not among the known ones.
pub(super) fn did_you_mean(found: &str, known: &[&str], what: &str) -> String {
    let near = nearest(found, known.iter().copied());
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what} are: {}", known.join(", ")),
    }
}

pub(super) fn wrong_type(name: &str, expected: &str, found: &Node<Span>) -> PolicyError {
    let message = format!(
        "expected `{name}` to be {expected}, found {}",
        found.kind().in_toml()
    );
    error::WRONG_TYPE.error(message).at(found.at.clone())
}

pub(super) fn required<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    value(&fields.required(key)?, read)
}

pub(super) fn optional<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    match fields.take(key) {
        Some(field) => value(&field, read).map(Some),
        None => Ok(None),
    }
}

fn value<'t, T>(
    field: &Field<'t>,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    read(field.text()?).map_err(|error| error.at(field.at.clone()))
}

/// A text, or a list of them.
pub(super) fn one_or_each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(None);
    };
    match field.kind() {
        Kind::Text => value(&field, read).map(|one| Some(vec![one])),
        Kind::List => list(&field, read).map(Some),
        _ => Err(wrong_type(key, "a text or a list of texts", field.node)),
    }
}

pub(super) fn each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| list(&field, read)).transpose()
}

fn list<'t, T>(
    field: &Field<'t>,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    let read = |(text, at): (&'t str, Span)| read(text).map_err(|error| error.at(at));
    texts(field)?.into_iter().map(read).collect()
}

/// A key whose value is one of a few words; `words` as the message names them.
pub(super) fn word<T: Copy>(
    fields: &mut Fields<'_>,
    key: &'static str,
    words: &str,
    known: &[(&str, T)],
) -> Result<Option<T>, PolicyError> {
    optional(fields, key, |text| {
        let found = known.iter().find(|(word, _)| *word == text);
        let expected = format_args!("`{key}` to be {words}");
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| error::WRONG_VALUE.expected(expected, text))
    })
}
