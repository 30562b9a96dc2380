//! The table of outcomes, with a line for each call and a column for each profile.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The variable with which the table is written again, for a person to review.
const WRITE: &str = "TOOLWARD_TEST_WRITE_CALLS";

/// The columns, in this order.
pub(super) const PROFILES: [&str; 6] = [
    "serving", "recorder", "worker", "broker", "program", "build",
];

/// The entry for a call that is not tried.
pub(super) const NOT_TRIED: &str = "-";

/// A call, and its outcome.
pub(super) type Outcome = (String, &'static str);

/// Formats the call of a line.
pub(super) fn call(number: u64, name: &str, what: &str) -> String {
    format!("{number:>3} {name:<24} {what:<40}")
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("confining/outcomes.txt")
}

/// Reads the table's lines: call and columns.
fn read() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(path()).unwrap();
    let lines = text.lines().skip(1);
    let split = lines.map(|line| {
        let (call, columns) = line.split_at(call(0, "", "").len());
        (
            call.to_owned(),
            columns.split_whitespace().map(str::to_owned).collect(),
        )
    });
    split.collect()
}

/// Asserts that a column equals the table's, and otherwise shows the lines that differ. If
/// [`WRITE`] is set, writes the column first.
#[track_caller]
pub(super) fn same(profile: &str, found: &[Outcome]) {
    let column = PROFILES.iter().position(|each| *each == profile).unwrap();
    if std::env::var_os(WRITE).is_some() {
        write(column, found);
    }
    let table = read();
    let expected: Vec<(&str, &str)> = table
        .iter()
        .map(|(call, columns)| (call.as_str(), columns[column].as_str()))
        .collect();
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(call, what)| (call.as_str(), *what))
        .collect();
    let new: Vec<_> = found
        .iter()
        .filter(|line| !expected.contains(line))
        .collect();
    let gone: Vec<_> = expected
        .iter()
        .filter(|line| !found.contains(line))
        .collect();
    assert!(
        found == expected,
        "{profile}, found: {new:#?}\nbut {} has: {gone:#?}\nset {WRITE} to write it anew, and review it",
        path().display()
    );
}

/// Writes a column to the table.
fn write(column: usize, found: &[Outcome]) {
    let before = read();
    let mut text = format!("{:<70}", "call");
    for profile in PROFILES {
        write!(text, "{profile:<9}").unwrap();
    }
    let mut text = text.trim_end().to_owned() + "\n";
    for (call, outcome) in found {
        let old = before.iter().find(|(old, _)| old == call);
        let mut columns = old.map_or_else(Vec::new, |(_, columns)| columns.clone());
        columns.resize(PROFILES.len(), NOT_TRIED.to_owned());
        columns[column] = (*outcome).to_owned();
        let columns: String = columns.iter().map(|each| format!("{each:<9}")).collect();
        writeln!(text, "{call} {}", columns.trim_end()).unwrap();
    }
    std::fs::write(path(), text).unwrap();
}
