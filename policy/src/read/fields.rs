//! A TOML table that is read key by key: keys that were not taken are errors, and
//! every value has its place.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{self, PolicyError, quoted};

/// Entries of a list.
const MAX_ENTRIES: usize = 1024;

/// One value with its place.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// Texts with their places.
pub(super) type Texts<'t> = Vec<(&'t str, Range<usize>)>;

pub(super) struct Fields<'t, 'i> {
    table: &'t DeTable<'i>,
    pub(super) span: Range<usize>,
    /// What people call the table.
    what: &'static str,
    known: Vec<&'static str>,
}

impl<'t, 'i> Fields<'t, 'i> {
    pub(super) fn new(table: &'t DeTable<'i>, span: Range<usize>, what: &'static str) -> Self {
        Self {
            table,
            span,
            what,
            known: Vec::new(),
        }
    }

    pub(super) fn of(value: &'t Value<'i>, what: &'static str) -> Result<Self, PolicyError> {
        Ok(Self::new(table(value, what)?, value.span(), what))
    }

    /// The value of a key.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'t Value<'i>> {
        self.known.push(key);
        self.table
            .iter()
            .find(|(name, _)| name.get_ref() == key)
            .map(|(_, value)| value)
    }

    /// The value of a key that has to be there.
    pub(super) fn need(&mut self, key: &'static str) -> Result<&'t Value<'i>, PolicyError> {
        self.take(key).ok_or_else(|| {
            PolicyError::new(
                &error::MISSING_KEY,
                format!("expected `{key}` in {}, found none", self.what),
            )
            .at(self.span.clone())
        })
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<&'t str>, PolicyError> {
        self.take(key).map(|value| text(value, key)).transpose()
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, PolicyError> {
        match self.take(key) {
            None => Ok(false),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => Ok(*flag),
                _ => Err(wrong_type(value, key, "true or false")),
            },
        }
    }

    pub(super) fn number(&mut self, key: &'static str) -> Result<Option<u64>, PolicyError> {
        self.take(key).map(|value| number(value, key)).transpose()
    }

    /// Texts with their places; `None` where the key is not there.
    pub(super) fn texts(&mut self, key: &'static str) -> Result<Option<Texts<'t>>, PolicyError> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        list(value, key)?
            .map(|item| Ok((text(item, key)?, item.span())))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// One table for each `[[key]]`.
    pub(super) fn tables(
        &mut self,
        key: &'static str,
        what: &'static str,
        most: usize,
    ) -> Result<Vec<Fields<'t, 'i>>, PolicyError> {
        let Some(value) = self.take(key) else {
            return Ok(Vec::new());
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(wrong_type(value, key, "a list of tables")
                .hinted(format!("write `[[{key}]]`, with two brackets")));
        };
        if items.len() > most {
            return Err(PolicyError::new(
                &error::TOO_LARGE,
                format!(
                    "expected at most {most} tables `{key}`, found {}",
                    items.len()
                ),
            )
            .at(value.span()));
        }
        items.iter().map(|item| Fields::of(item, what)).collect()
    }

    /// Refuses every key that was not taken.
    pub(super) fn finish(self) -> Result<(), PolicyError> {
        let unknown = self
            .table
            .keys()
            .find(|key| !self.known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else {
            return Ok(());
        };
        let found = key.get_ref();
        let error = PolicyError::new(
            &error::UNKNOWN_KEY,
            format!("expected a key of {}, found {}", self.what, quoted(found)),
        )
        .at(key.span());
        Err(match nearest(found, &self.known) {
            Some(near) => error.hinted(format!("did you mean `{near}`?")),
            None => error.hinted(format!("the keys are: {}", self.known.join(", "))),
        })
    }
}

pub(super) fn table<'t, 'i>(
    value: &'t Value<'i>,
    what: &str,
) -> Result<&'t DeTable<'i>, PolicyError> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => Err(wrong_type(value, what, "a table")),
    }
}

pub(super) fn text<'t>(value: &'t Value<'_>, key: &str) -> Result<&'t str, PolicyError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(wrong_type(value, key, "a text")),
    }
}

pub(super) fn number(value: &Value<'_>, key: &str) -> Result<u64, PolicyError> {
    let DeValue::Integer(integer) = value.get_ref() else {
        return Err(wrong_type(value, key, "a whole number"));
    };
    // TOML's integers have 64 bits with a sign.
    let read = i64::from_str_radix(integer.as_str(), integer.radix());
    read.ok()
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| {
            PolicyError::new(
                &error::WRONG_VALUE,
                format!("expected `{key}` to be from 0 to 2^63 - 1, found {integer}"),
            )
            .at(value.span())
        })
}

fn list<'t, 'i>(
    value: &'t Value<'i>,
    key: &str,
) -> Result<impl Iterator<Item = &'t Value<'i>> + use<'t, 'i>, PolicyError> {
    let DeValue::Array(items) = value.get_ref() else {
        return Err(wrong_type(value, key, "a list of texts"));
    };
    if items.len() > MAX_ENTRIES {
        return Err(PolicyError::new(
            &error::TOO_LARGE,
            format!(
                "expected at most {MAX_ENTRIES} entries in `{key}`, found {}",
                items.len()
            ),
        )
        .at(value.span()));
    }
    Ok(items.iter())
}

fn wrong_type(value: &Value<'_>, key: &str, expected: &str) -> PolicyError {
    PolicyError::new(
        &error::WRONG_TYPE,
        format!(
            "expected `{key}` to be {expected}, found {}",
            match value.get_ref() {
                DeValue::String(_) => "a text",
                DeValue::Integer(_) => "a whole number",
                DeValue::Float(_) => "a number",
                DeValue::Boolean(_) => "true or false",
                DeValue::Datetime(_) => "a date or time",
                DeValue::Array(_) => "a list",
                DeValue::Table(_) => "a table",
            }
        ),
    )
    .at(value.span())
}

/// The known key that is at most two letters away.
pub(super) fn nearest<'k>(found: &str, known: &[&'k str]) -> Option<&'k str> {
    const MAX_KEY_BYTES: usize = 40;
    if found.len() > MAX_KEY_BYTES {
        return None;
    }
    let near = |key: &&&str| distance(found, key) <= 2.min(key.len() / 2);
    known
        .iter()
        .filter(near)
        .min_by_key(|key| distance(found, key))
        .copied()
}

/// Letters to insert, remove or replace.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (line, a) in from.chars().enumerate() {
        let mut corner = line;
        let mut left = line + 1;
        let mut next = vec![left];
        for (b, above) in to.chars().zip(row.iter().skip(1)) {
            left = (corner + usize::from(a != b)).min(left + 1).min(above + 1);
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_and_a_far_one_is_not() {
        let known = ["requires", "mutates", "tool"];
        assert_eq!(nearest("require", &known), Some("requires"));
        assert_eq!(nearest("mutate", &known), Some("mutates"));
        assert_eq!(nearest("tools", &known), Some("tool"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
