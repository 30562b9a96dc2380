//! `csv.summary`: what is in a table, column by column and group by group.

mod column;
mod number;
mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolward_guest::{Call, Error, driver};

use column::{Column, Summary};
use number::Figures;
use table::Table;

#[derive(Deserialize)]
struct Input {
    csv: String,
    #[serde(default)]
    delimiter: Delimiter,
    #[serde(default = "yes")]
    header: bool,
    #[serde(default)]
    group_by: Vec<String>,
    #[serde(default)]
    columns: Option<Vec<String>>,
    #[serde(default = "default_top")]
    top: usize,
    #[serde(default = "default_groups")]
    max_groups: usize,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Delimiter {
    #[default]
    Auto,
    Comma,
    Semicolon,
    Tab,
    Pipe,
}

fn yes() -> bool {
    true
}

fn default_top() -> usize {
    3
}

fn default_groups() -> usize {
    100
}

#[derive(Serialize)]
struct Output {
    rows: usize,
    delimiter: &'static str,
    columns: Vec<Summary>,
    groups: Vec<Group>,
    groups_total: usize,
}

#[derive(Serialize)]
struct Group {
    key: BTreeMap<String, String>,
    rows: usize,
    figures: BTreeMap<String, Figures>,
}

fn summary(call: Call<Input>) -> Result<Output, Error> {
    let input = call.input;
    let delimiter = input.delimiter.resolve(&input.csv);
    let table = Table::read(&input.csv, delimiter.byte(), input.header)?;

    let shown = match &input.columns {
        Some(names) => table.find_all(names)?,
        None => (0..table.width()).collect(),
    };
    let columns: Vec<Column> = shown
        .iter()
        .map(|&index| Column::new(&table, index))
        .collect();
    let (groups, groups_total) = groups(&table, &input, &columns)?;
    Ok(Output {
        rows: table.len(),
        delimiter: delimiter.name(),
        columns: columns
            .iter()
            .map(|column| column.summary(&table, input.top))
            .collect::<Result<_, _>>()?,
        groups,
        groups_total,
    })
}

/// The largest groups first, then by key; and how many there are in all.
fn groups(table: &Table, input: &Input, columns: &[Column]) -> Result<(Vec<Group>, usize), Error> {
    if input.group_by.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let keys = table.find_all(&input.group_by)?;
    let mut rows: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for row in 0..table.len() {
        let key = keys.iter().map(|&column| table.cell(row, column)).collect();
        rows.entry(key).or_default().push(row);
    }
    let total = rows.len();
    let mut ordered: Vec<(Vec<&str>, Vec<usize>)> = rows.into_iter().collect();
    // Stable: equal sizes stay in the order of their keys.
    ordered.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    ordered.truncate(input.max_groups);

    let mut groups = Vec::with_capacity(ordered.len());
    for (key, rows) in ordered {
        let mut figures = BTreeMap::new();
        let others = columns
            .iter()
            .filter(|column| !keys.contains(&column.index()));
        for column in others.filter(|column| column.is_numeric()) {
            let values = rows.iter().map(|&row| table.cell(row, column.index()));
            if let Some(of_column) = Figures::of(values)? {
                figures.insert(table.name(column.index()).to_owned(), of_column);
            }
        }
        groups.push(Group {
            key: input
                .group_by
                .iter()
                .cloned()
                .zip(key.into_iter().map(str::to_owned))
                .collect(),
            rows: rows.len(),
            figures,
        });
    }
    Ok((groups, total))
}

impl Delimiter {
    /// For `Auto`, the one that the first line has most of.
    fn resolve(self, csv: &str) -> Self {
        if !matches!(self, Delimiter::Auto) {
            return self;
        }
        let first = csv.lines().next().unwrap_or_default();
        let count = |delimiter: Delimiter| {
            first
                .bytes()
                .filter(|byte| *byte == delimiter.byte())
                .count()
        };
        let mut best = Delimiter::Comma;
        for candidate in [Delimiter::Semicolon, Delimiter::Tab, Delimiter::Pipe] {
            if count(candidate) > count(best) {
                best = candidate;
            }
        }
        best
    }

    fn byte(self) -> u8 {
        match self {
            Delimiter::Auto | Delimiter::Comma => b',',
            Delimiter::Semicolon => b';',
            Delimiter::Tab => b'\t',
            Delimiter::Pipe => b'|',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Delimiter::Auto | Delimiter::Comma => "comma",
            Delimiter::Semicolon => "semicolon",
            Delimiter::Tab => "tab",
            Delimiter::Pipe => "pipe",
        }
    }
}

driver! { "csv.summary" => summary }
