//! One column: what kind of values it has, and what they are like.

use std::collections::HashMap;

use serde::Serialize;
use toolward_guest::Error;

use crate::number::{self, Figures};
use crate::table::Table;

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Empty,
    Integer,
    Number,
    Boolean,
    Date,
    Text,
}

pub struct Column {
    index: usize,
    kind: Kind,
}

#[derive(Serialize)]
pub struct Summary {
    name: String,
    kind: Kind,
    filled: usize,
    empty: usize,
    distinct: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<Figures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<String>,
    most_frequent: Vec<Frequency>,
}

#[derive(Serialize)]
struct Frequency {
    value: String,
    count: usize,
}

impl Column {
    pub fn new(table: &Table, index: usize) -> Self {
        let mut kinds = cells(table, index).map(kind_of);
        let kind = match kinds.next() {
            None => Kind::Empty,
            Some(first) => kinds.fold(first, |so_far, next| match (so_far, next) {
                (a, b) if a == b => a,
                (Kind::Integer | Kind::Number, Kind::Integer | Kind::Number) => Kind::Number,
                _ => Kind::Text,
            }),
        };
        Column { index, kind }
    }

    pub fn index(&self) -> usize {
        self.index
    }

    pub fn is_numeric(&self) -> bool {
        matches!(self.kind, Kind::Integer | Kind::Number)
    }

    pub fn summary(&self, table: &Table, top: usize) -> Result<Summary, Error> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for cell in cells(table, self.index) {
            *counts.entry(cell).or_default() += 1;
        }
        let filled = counts.values().sum();
        let distinct = counts.len();
        let mut frequent: Vec<(&str, usize)> = counts.into_iter().collect();
        // The value decides between equal counts, so that the order is always the same.
        frequent.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let ends = (self.kind == Kind::Date || self.kind == Kind::Text).then(|| {
            (
                frequent.iter().map(|(value, _)| *value).min(),
                frequent.iter().map(|(value, _)| *value).max(),
            )
        });
        let (first, last) = ends.unwrap_or_default();
        Ok(Summary {
            name: table.name(self.index).to_owned(),
            kind: self.kind,
            filled,
            empty: table.len() - filled,
            distinct,
            figures: match self.is_numeric() {
                true => Figures::of(cells(table, self.index))?,
                false => None,
            },
            first: first.map(str::to_owned),
            last: last.map(str::to_owned),
            most_frequent: frequent
                .into_iter()
                .take(top)
                .map(|(value, count)| Frequency {
                    value: value.to_owned(),
                    count,
                })
                .collect(),
        })
    }
}

/// The cells that are not empty.
fn cells(table: &Table, column: usize) -> impl Iterator<Item = &str> {
    (0..table.len())
        .map(move |row| table.cell(row, column))
        .filter(|cell| !cell.is_empty())
}

fn kind_of(cell: &str) -> Kind {
    if number::parse(cell).is_some() {
        if cell.parse::<i64>().is_ok() {
            Kind::Integer
        } else {
            Kind::Number
        }
    } else if ["true", "false", "yes", "no"]
        .iter()
        .any(|word| cell.eq_ignore_ascii_case(word))
    {
        Kind::Boolean
    } else if is_date(cell) {
        Kind::Date
    } else {
        Kind::Text
    }
}

/// Whether it starts as ISO 8601 dates do, `YYYY-MM-DD`, alone or with a time.
fn is_date(cell: &str) -> bool {
    let pattern = b"dddd-dd-dd";
    let matches = cell.len() >= pattern.len()
        && cell
            .bytes()
            .zip(pattern)
            .all(|(byte, pattern)| match pattern {
                b'd' => byte.is_ascii_digit(),
                other => byte == *other,
            });
    matches
        && cell
            .as_bytes()
            .get(pattern.len())
            .is_none_or(|next| b"T ".contains(next))
}
