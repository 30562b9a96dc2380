//! What people know a rule by.

use std::fmt;

use serde::Serialize;

/// Whether a rule gives or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// `[[grant]]`
    Grant,
    /// `[[deny]]`
    Deny,
}

/// Names a rule to people, so that the rule that decided can be shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct RuleId {
    /// Whether it gives or denies.
    pub kind: RuleKind,
    /// Its place among the rules of its kind in its source, from 1.
    pub number: usize,
    /// Where it comes from, a file's name for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The line where its table stands, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What it is about, in a few words.
    pub description: String,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RuleKind::Grant => "grant",
            RuleKind::Deny => "deny",
        };
        let table = format!("[[{kind}]] {}", self.number);
        let place = written_at(&table, self.source.as_deref(), self.line);
        write!(f, "{place}: {}", self.description)
    }
}

/// A table with its source and line.
pub(crate) fn written_at(table: &str, source: Option<&str>, line: Option<usize>) -> String {
    match (source, line) {
        (Some(source), Some(line)) => format!("{table} ({source}:{line})"),
        (Some(source), None) => format!("{table} ({source})"),
        (None, Some(line)) => format!("{table} (line {line})"),
        (None, None) => table.to_owned(),
    }
}

/// A rule and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) id: RuleId,
    pub(crate) rule: T,
}
