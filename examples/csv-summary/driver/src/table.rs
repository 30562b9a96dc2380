//! A CSV text as a table whose rows all have the same width.

use csv::{ReaderBuilder, StringRecord};
use toolward_guest::Error;

pub struct Table {
    names: Vec<String>,
    rows: Vec<StringRecord>,
}

impl Table {
    pub fn read(csv: &str, delimiter: u8, header: bool) -> Result<Self, Error> {
        let csv = csv.strip_prefix('\u{feff}').unwrap_or(csv);
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(header)
            .from_reader(csv.as_bytes());
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(|error| explain(&error))?);
        }
        let mut names: Vec<String> = if header {
            let headers = reader.headers().map_err(|error| explain(&error))?;
            headers.iter().map(|name| name.trim().to_owned()).collect()
        } else {
            let width = rows.first().map_or(0, StringRecord::len);
            vec![String::new(); width]
        };
        for (index, name) in names.iter_mut().enumerate() {
            if name.is_empty() {
                *name = format!("column_{}", index + 1);
            }
        }
        for (index, name) in names.iter().enumerate() {
            if names.iter().take(index).any(|other| other == name) {
                return Err(Error::new(
                    "csv:duplicate_column",
                    format!("two columns are called {name}"),
                ));
            }
        }
        Ok(Table { names, rows })
    }

    /// Rows without the header.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn width(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    pub fn cell(&self, row: usize, column: usize) -> &str {
        self.rows
            .get(row)
            .and_then(|row| row.get(column))
            .unwrap_or("")
            .trim()
    }

    /// The positions of the columns with these names.
    pub fn find_all(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        names
            .iter()
            .map(|name| {
                self.names
                    .iter()
                    .position(|known| known == name)
                    .ok_or_else(|| {
                        Error::new(
                            "csv:unknown_column",
                            format!(
                                "no column is called {name}; there are {}",
                                self.names.join(", ")
                            ),
                        )
                    })
            })
            .collect()
    }
}

fn explain(error: &csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => Error::new(
            "csv:ragged",
            format!(
                "line {} has {len} fields where the lines before have {expected_len}; \
                 is the delimiter right, and is text with delimiters quoted?",
                pos.as_ref().map_or(0, csv::Position::line),
            ),
        ),
        _ => Error::new("csv:invalid", error.to_string()),
    }
}
