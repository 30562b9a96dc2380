//! The entries of `implements`: which contract, which versions, with what narrowed. Not checked against the contract here.

use serde_json::{Map, Value};

use super::http::HttpDefaults;
use super::mapping::Mapping;
use super::{DriverKind, HttpCall, Implements, Places, World, cost};
use crate::codes;
use crate::diagnostic::Report;
use crate::id::ToolId;
use crate::path;
use crate::shared;
use crate::source::{Field, Fields};

pub(super) fn read(
    field: &Field<'_>,
    kind: Option<&DriverKind>,
    defaults: &mut HttpDefaults,
    report: &mut Report<'_>,
) -> Vec<Implements> {
    let Some(items) = report.read(field.items()) else {
        return Vec::new();
    };
    if items.is_empty() {
        report.add(
            &codes::IMPLEMENTS_EMPTY,
            field.at,
            "expected at least one entry in `implements`, found none",
        );
    }
    let mut entries: Vec<Implements> = Vec::new();
    for item in &items {
        let Some(entry) = entry(item, kind, defaults, report) else {
            continue;
        };
        let name = claimed(&entry.tool);
        let same =
            |other: &&Implements| claimed(&other.tool) == name && other.version == entry.version;
        if let Some(first) = entries.iter().find(same) {
            let message = format!(
                "expected `{name}` {} once, found it again (first on line {})",
                entry.version_text, first.at.line
            );
            report.add(&codes::IMPLEMENTS_DUPLICATE, item.at, message);
        }
        entries.push(entry);
    }
    entries
}

fn entry(
    item: &Field<'_>,
    kind: Option<&DriverKind>,
    defaults: &mut HttpDefaults,
    report: &mut Report<'_>,
) -> Option<Implements> {
    let mut fields = report.read(Fields::of(item))?;
    let tool = report.read(fields.required("tool")).and_then(|field| {
        let found = report.read(field.text())?;
        let id = ToolId::relaxed(found).ok();
        if id.is_none() && !is_path(found) {
            let message = format!(
                "expected `{}` to be a contract id, or the path of a TOOL.md or its folder, found {found:?}",
                field.name
            );
            report.add(&codes::TOOL_REFERENCE_INVALID, field.at, message);
            return None;
        }
        Some((found.to_owned(), id))
    });
    let version = report.read(fields.required("version")).and_then(|field| {
        let found = report.read(field.text())?;
        let range = nodejs_semver::Range::parse(found)
            .ok()
            .filter(|_| !found.trim().is_empty());
        if range.is_none() {
            let message = format!(
                "expected `{}` to be a version range such as ^1.0.0, found {found:?}",
                field.name
            );
            report.add(&codes::VERSION_RANGE_INVALID, field.at, message);
        }
        Some((range?, found.to_owned()))
    });
    let (drop_inputs, drop_outputs) = narrowing(&mut fields, report);
    let mapping = match fields.take("mapping") {
        Some(field) => Mapping::read(&field, report),
        None => Mapping::default(),
    };
    let cost_override = cost::read(&mut fields, report);
    let timeout =
        shared::milliseconds(&mut fields, "timeout_override_ms", report).map(|given| given.value);
    let retry = shared::retry_override(&mut fields, report);
    let metadata = fields.take("metadata");
    let below = |name: &str| {
        let node = metadata.as_ref()?.get(name)?;
        Some(Field::new(
            format!("{}.{name}", fields.name_of("metadata")),
            node,
        ))
    };
    let (request, component) = (below("http"), below("component"));
    let places = request
        .as_ref()
        .map(|request| Places::of(request.node))
        .unwrap_or_default();
    let label = format!("{}.http", fields.name_of("metadata"));
    let metadata = report.mapping(metadata.as_ref());
    let http = match (kind, request) {
        (Some(DriverKind::Http), Some(request)) => HttpCall::read(&request, defaults, report),
        (Some(DriverKind::Http), None) => {
            report.add(
                &codes::MISSING_FIELD,
                item.at,
                format!("expected the field `{label}` for `kind: http`, found none"),
            );
            None
        }
        _ => None,
    };
    let world = World::read(kind, component.as_ref(), report);
    let kind_fields = match kind {
        Some(kind) if !kind.is_run() => rest(fields),
        _ => {
            report.unknown(fields);
            Map::new()
        }
    };
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
        places,
        program: None,
        world: world?,
        kind_fields,
        metadata,
        at: item.at,
    })
}

/// The fields that were not taken, as written.
pub(super) fn rest(fields: Fields<'_>) -> Map<String, Value> {
    let rest = fields.rest();
    rest.map(|entry| (entry.key.clone(), entry.value.to_value()))
        .collect()
}

/// The id that a reference probably means: AIP-14 names the folder of a contract after its id.
fn claimed(tool: &str) -> &str {
    let folder = tool.strip_suffix("/TOOL.md").unwrap_or(tool);
    let folder = folder.trim_end_matches('/');
    folder.rsplit_once('/').map_or(folder, |(_, name)| name)
}

/// Whether a contract is named by the path of its TOOL.md, or of the folder that has it.
pub(super) fn is_path(text: &str) -> bool {
    let names_file = text == "TOOL.md" || text.ends_with("/TOOL.md");
    (names_file || path::is_relative(text)) && path::is_path(text)
}

fn narrowing(fields: &mut Fields<'_>, report: &mut Report<'_>) -> (Vec<String>, Vec<String>) {
    let Some(mut inner) = report.fields(fields.take("schema_narrowing")) else {
        return (Vec::new(), Vec::new());
    };
    let inputs = report.strings(inner.take("drop_inputs"));
    let outputs = report.strings(inner.take("drop_outputs"));
    report.unknown(inner);
    (inputs, outputs)
}
