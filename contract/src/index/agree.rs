//! Whether tools.json says what contracts and drivers say (see the book, "Index: tools.json"). Compares values, not bytes.

use serde_json::{Value, json};

use super::{Index, IndexEntry, Transport, family::family, generate};
use crate::codes;
use crate::diagnostic::{Diagnostic, Position, Report};
use crate::driver::Driver;
use crate::tool::Tool;

pub(super) fn check(
    index: &Index,
    file: &str,
    tools: &[(&Tool, &[&Driver])],
) -> Result<(), Vec<Diagnostic>> {
    let mut report = Report::new(file);
    if index.version == 1 {
        // Transports of version 1 are no drivers: what a contract says is all there is to compare.
        for (tool, _) in tools {
            if let Some(entry) = find(index, tool.id.as_str(), None) {
                compare(
                    entry,
                    &generate::without_transport(tool),
                    false,
                    &mut report,
                );
            }
        }
    } else {
        let expected = generate::index(tools);
        for wanted in &expected.tools {
            match find(index, wanted.id.as_str(), wanted.major) {
                Some(entry) => compare(entry, wanted, true, &mut report),
                None => {
                    let message = format!(
                        "expected an entry for {}, which has a driver in this bundle, found none",
                        wanted.id
                    );
                    report.add(&codes::INDEX_ENTRY_MISSING, Position::START, message);
                }
            }
        }
        for entry in index
            .tools
            .iter()
            .filter(|entry| find(&expected, entry.id.as_str(), entry.major).is_none())
        {
            let message = format!(
                "expected only contracts with a driver in this bundle, found an entry for {}",
                entry.id
            );
            report.add(&codes::INDEX_ENTRY_EXTRA, entry.at, message);
        }
    }
    let refused = report.has_errors();
    let parsed = report.finish(Some(()));
    if refused {
        Err(parsed.diagnostics)
    } else {
        Ok(())
    }
}

fn find<'i>(index: &'i Index, id: &str, major: Option<u64>) -> Option<&'i IndexEntry> {
    let mut entries = index.tools.iter();
    entries.find(|entry| entry.id == id && entry.major == major)
}

fn compare(entry: &IndexEntry, wanted: &IndexEntry, transport: bool, report: &mut Report<'_>) {
    let mut fields = vec![
        (
            "description",
            json!(entry.description),
            json!(wanted.description),
        ),
        (
            "input_schema",
            entry.input_schema.value().clone(),
            wanted.input_schema.value().clone(),
        ),
        (
            "result_schema",
            entry.result_schema.value().clone(),
            wanted.result_schema.value().clone(),
        ),
        ("capabilities", families(entry), families(wanted)),
        ("secrets", sorted(&entry.secrets), sorted(&wanted.secrets)),
        (
            "requires_confirmation",
            json!(entry.requires_confirmation),
            json!(wanted.requires_confirmation),
        ),
        ("budget", json!(entry.budget), json!(wanted.budget)),
        (
            "schema_refs",
            json!(entry.schema_refs),
            json!(wanted.schema_refs),
        ),
        (
            "observability.tags",
            sorted(&entry.tags),
            sorted(&wanted.tags),
        ),
    ];
    if transport {
        fields.push(("transport", json!(driver(entry)), json!(driver(wanted))));
    }
    for (field, found, expected) in fields {
        if found != expected {
            let (expected, found) = contrast(&expected.to_string(), &found.to_string());
            let message = format!(
                "expected `{field}` of {} to be {expected}, as contract and drivers say, found {found}",
                entry.id,
            );
            report.add(&codes::INDEX_DISAGREES, entry.at, message);
        }
    }
}

fn driver(entry: &IndexEntry) -> String {
    match &entry.transport {
        Transport::Component { driver } => format!("component {driver}"),
        Transport::Exec { command, .. } => format!("exec {command}"),
        Transport::Http { method, url, .. } => format!("http {method} {url}"),
    }
}

fn families(entry: &IndexEntry) -> Value {
    let mut names: Vec<String> = entry.capabilities.iter().map(family).collect();
    names.sort();
    json!(names)
}

fn sorted(names: &[String]) -> Value {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    names.dedup();
    json!(names)
}

/// Both texts, cut to the part where they begin to differ.
fn contrast(expected: &str, found: &str) -> (String, String) {
    const BEFORE: usize = 20;
    let pairs = expected.chars().zip(found.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let skipped = common.saturating_sub(BEFORE);
    (excerpt(expected, skipped), excerpt(found, skipped))
}

fn excerpt(text: &str, skipped: usize) -> String {
    const LENGTH: usize = 120;
    let length = text.chars().count();
    if length <= LENGTH {
        return text.to_owned();
    }
    let before = if skipped > 0 { "..." } else { "" };
    let after = if length > skipped + LENGTH { "..." } else { "" };
    let shown = text.chars().skip(skipped).take(LENGTH);
    before.chars().chain(shown).chain(after.chars()).collect()
}
