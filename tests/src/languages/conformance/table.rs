//! The book's table with the answers of each guest library.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::PAGE;
use crate::support::root;

/// The rows, in the page's order.
const ROWS: &[&str] = &[
    "greeting, log, progress",
    "an error code that the tool defines",
    "an uncaught exception or panic",
    "randomness",
    "a key-value bucket",
    "a secret's placeholder",
    "calling another tool",
    "questions to a person, and continuing afterwards",
    "files of a workspace",
    "HTTP requests",
    "allocating 100 MiB at once",
    "an endless loop",
    "endless recursion",
    "an output with 65 levels of JSON",
    "an output with 100,001 levels of JSON",
];

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_matches('|');
    inner
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

/// Asserts that the page shows a library's answers. With `BLESS=1` it writes them.
pub(super) fn holds(library: &str, found: &BTreeMap<&'static str, String>) {
    static PAGE_IN_USE: Mutex<()> = Mutex::new(());
    let _in_use = PAGE_IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let rows: Vec<&str> = found.keys().copied().collect();
    let mut known = ROWS.to_vec();
    known.sort_unstable();
    assert_eq!(rows, known);

    let path = root().join(PAGE);
    let page = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let header = lines
        .iter()
        .position(|line| line.starts_with("| what |"))
        .unwrap();
    let column = cells(&lines[header])
        .iter()
        .position(|cell| cell == library);
    let column = column.unwrap_or_else(|| panic!("{PAGE} has no column {library}"));
    for (index, row) in ROWS.iter().enumerate() {
        let line = &mut lines[header + 2 + index];
        let mut cells = cells(line);
        assert_eq!(cells[0], *row, "{PAGE}");
        if std::env::var_os("BLESS").is_some() {
            cells[column].clone_from(&found[row]);
            *line = format!("| {} |", cells.join(" | "));
        } else {
            assert_eq!(cells[column], found[row], "{PAGE}: {library}, {row}");
        }
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
}
