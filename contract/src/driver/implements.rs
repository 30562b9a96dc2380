//! The entries of `implements`: which contract, which versions, with what narrowed. Not checked against the contract here.

use super::mapping::Mapping;
use super::{CostOverride, DriverKind, HttpCall, Implements};
use crate::codes;
use crate::diagnostic::Report;
use crate::id::ToolId;
use crate::shared;
use crate::source::{Fields, Node, list, number, text, texts};

pub(super) fn read(
    node: &Node,
    kind: Option<&DriverKind>,
    report: &mut Report<'_>,
) -> Vec<Implements> {
    let Some(items) = list(node, "implements", report) else {
        return Vec::new();
    };
    if items.is_empty() {
        report.add(
            &codes::IMPLEMENTS_EMPTY,
            node.at,
            "expected at least one entry in `implements`, found none",
        );
    }
    let mut entries: Vec<Implements> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(entry) = entry(item, &format!("implements[{index}]"), kind, report) else {
            continue;
        };
        let same =
            |other: &&Implements| other.tool_id == entry.tool_id && other.version == entry.version;
        if let Some(first) = entries.iter().find(same) {
            let message = format!(
                "expected `{}` {} once, found it again (first on line {})",
                entry.tool_id, entry.version_text, first.at.line
            );
            report.add(&codes::IMPLEMENTS_DUPLICATE, item.at, message);
        }
        entries.push(entry);
    }
    entries
}

fn entry(
    node: &Node,
    path: &str,
    kind: Option<&DriverKind>,
    report: &mut Report<'_>,
) -> Option<Implements> {
    let mut fields = Fields::of(node, path, report)?;
    let tool = fields.required("tool", report).and_then(|node| {
        let found = text(node, &fields.name("tool"), report)?;
        let id = tool_id(found);
        if id.is_none() {
            let message = format!(
                "expected `{}` to be a contract id or a path ending in TOOL.md, found {found:?}",
                fields.name("tool")
            );
            report.add(&codes::TOOL_REFERENCE_INVALID, node.at, message);
        }
        Some((found.to_owned(), id?))
    });
    let version = fields.required("version", report).and_then(|node| {
        let found = text(node, &fields.name("version"), report)?;
        let range = nodejs_semver::Range::parse(found)
            .ok()
            .filter(|_| !found.trim().is_empty());
        if range.is_none() {
            let message = format!(
                "expected `{}` to be a version range such as ^1.0.0, found {found:?}",
                fields.name("version")
            );
            report.add(&codes::VERSION_RANGE_INVALID, node.at, message);
        }
        Some((range?, found.to_owned()))
    });
    let (drop_inputs, drop_outputs) = narrowing(&mut fields, report);
    let mapping = match fields.take("mapping") {
        Some(node) => Mapping::read(node, &fields.name("mapping"), report),
        None => Mapping::default(),
    };
    let cost_override = cost(&mut fields, report);
    let timeout =
        shared::milliseconds(&mut fields, "timeout_override_ms", report).map(|given| given.value);
    let retry = shared::retry(&mut fields, "retry_override", report);
    let request = node
        .get("metadata")
        .and_then(|metadata| metadata.get("http"));
    let label = format!("{}.http", fields.name("metadata"));
    let metadata = super::plain::mapping(&mut fields, "metadata", report).unwrap_or_default();
    let http = match (kind, request) {
        (Some(DriverKind::Http), Some(request)) => HttpCall::read(request, &label, report),
        (Some(DriverKind::Http), None) => {
            report.add(
                &codes::MISSING_FIELD,
                node.at,
                format!("expected the field `{label}` for `kind: http`, found none"),
            );
            None
        }
        _ => None,
    };
    fields.finish(report);
    let ((tool, tool_id), (version, version_text)) = (tool?, version?);
    Some(Implements {
        tool,
        tool_id,
        version,
        version_text,
        drop_inputs,
        drop_outputs,
        mapping,
        cost_override,
        timeout,
        retry,
        http,
        metadata,
        at: node.at,
    })
}

/// Whether a contract is named by the path of its TOOL.md.
pub(super) fn is_path(text: &str) -> bool {
    text.ends_with("/TOOL.md")
}

/// An id, or the folder's name in the path of a TOOL.md (AIP-14: the folder is named after the id).
fn tool_id(text: &str) -> Option<ToolId> {
    let Some(folders) = text.strip_suffix("/TOOL.md") else {
        return ToolId::relaxed(text).ok();
    };
    let mut parts = folders.split('/').peekable();
    let mut last = None;
    // Leading `.` and `..` only: the rest is folders of the bundle.
    while parts.next_if(|part| matches!(*part, "." | "..")).is_some() {}
    for part in parts {
        if part.is_empty() || matches!(part, "." | "..") || part.contains('\\') {
            return None;
        }
        last = Some(part);
    }
    ToolId::parse(last?).ok()
}

fn narrowing(fields: &mut Fields<'_>, report: &mut Report<'_>) -> (Vec<String>, Vec<String>) {
    let label = fields.name("schema_narrowing");
    let Some(mut inner) = fields
        .take("schema_narrowing")
        .and_then(|node| Fields::of(node, &label, report))
    else {
        return (Vec::new(), Vec::new());
    };
    let mut names = |key: &'static str| match inner.take(key) {
        Some(node) => texts(node, &inner.name(key), report)
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect(),
        None => Vec::new(),
    };
    let dropped = (names("drop_inputs"), names("drop_outputs"));
    inner.finish(report);
    dropped
}

fn cost(fields: &mut Fields<'_>, report: &mut Report<'_>) -> CostOverride {
    let label = fields.name("cost_override");
    let Some(mut inner) = fields
        .take("cost_override")
        .and_then(|node| Fields::of(node, &label, report))
    else {
        return CostOverride::default();
    };
    let units = inner.take("cost_units_per_call");
    let cost_units_per_call =
        units.and_then(|node| number(node, &inner.name("cost_units_per_call"), report));
    let cost_class = shared::cost_class(&mut inner, report);
    inner.finish(report);
    CostOverride {
        cost_units_per_call,
        cost_class,
    }
}
