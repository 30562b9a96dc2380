//! Problems of a TOML table in a policy's words, and what policies read more than once.

use toolward_support::fields::{Content, FieldProblem, Kind, Node, Span, nearest};

use crate::error::{self, PolicyError, quoted};

/// Entries of a list.
const MAX_ENTRIES: usize = 1024;

pub(super) type Field<'t> = toolward_support::fields::Field<'t, Span>;
pub(super) type Fields<'t> = toolward_support::fields::Fields<'t, Span>;

impl From<FieldProblem<'_, Span>> for PolicyError {
    fn from(problem: FieldProblem<'_, Span>) -> Self {
        match problem {
            FieldProblem::Missing { name, within, at } => PolicyError::new(
                &error::MISSING_KEY,
                format!("expected `{name}` in {within}, found none"),
            )
            .at(at),
            FieldProblem::Unknown {
                key,
                within,
                at,
                known,
                ..
            } => {
                let message = format!("expected a key of {within}, found {}", quoted(key));
                let error = PolicyError::new(&error::UNKNOWN_KEY, message).at(at);
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
                PolicyError::new(&error::WRONG_VALUE, message).at(found.at.clone())
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

/// One table for each `[[key]]`.
pub(super) fn tables<'t>(
    fields: &mut Fields<'t>,
    key: &'static str,
    what: &str,
    most: usize,
) -> Result<Vec<Fields<'t>>, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(Vec::new());
    };
    let items = field.items().map_err(|_| {
        wrong_type(key, "a list of tables", field.node)
            .hinted(format!("write `[[{key}]]`, with two brackets"))
    })?;
    if items.len() > most {
        let found = items.len();
        let message = format!("expected at most {most} tables `{key}`, found {found}");
        return Err(PolicyError::new(&error::TOO_LARGE, message).at(field.at.clone()));
    }
    items.into_iter().map(|item| table(item, what)).collect()
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
        return Err(PolicyError::new(&error::TOO_LARGE, message).at(field.at.clone()));
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
    PolicyError::new(&error::WRONG_TYPE, message).at(found.at.clone())
}
