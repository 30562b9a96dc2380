//! The entries of `implements`: which contract, which versions, with what narrowed. Not checked against the contract here.

use serde_json::Map;

use super::http::HttpDefaults;
use super::mapping::InputMapping;
use super::requirements::read_cost;
use super::{DriverKind, HttpCall, Implements, PlaceholderPlaces, World};
use crate::codes;
use crate::id::ToolId;
use crate::path;
use crate::shared;
use crate::source::{Content, FieldReader, MappingReader};

pub(super) fn read(
    field: &FieldReader<'_>,
    kind: Option<&DriverKind>,
    defaults: &mut HttpDefaults,
) -> Vec<Implements> {
    let items = field.items();
    if matches!(&field.content, Content::List(items) if items.is_empty()) {
        let message = "expected at least one entry in `implements`, found none";
        field.note(&codes::IMPLEMENTS_EMPTY, message);
    }
    let mut entries: Vec<Implements> = Vec::new();
    for item in &items {
        let Some(entry) = entry(item, kind, defaults) else {
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
            item.note(&codes::IMPLEMENTS_DUPLICATE, message);
        }
        entries.push(entry);
    }
    entries
}

fn entry(
    item: &FieldReader<'_>,
    kind: Option<&DriverKind>,
    defaults: &mut HttpDefaults,
) -> Option<Implements> {
    let mut fields = item.fields()?;
    let tool = fields.require("tool", |field| {
        let expected = "a contract id, or the path of a TOOL.md or its folder";
        field.text_as(&codes::TOOL_REFERENCE_INVALID, expected, |found| {
            let id = ToolId::relaxed(found).ok();
            (id.is_some() || is_path(found)).then(|| (found.to_owned(), id))
        })
    });
    let version = fields.require("version", |field| {
        let expected = "a version range such as ^1.0.0";
        field.text_as(&codes::VERSION_RANGE_INVALID, expected, |found| {
            let range = nodejs_semver::Range::parse(found).ok();
            let range = range.filter(|_| !found.trim().is_empty())?;
            Some((range, found.to_owned()))
        })
    });
    let (drop_inputs, drop_outputs) = narrowing(&mut fields);
    let mapping = fields
        .take("mapping")
        .map(|field| InputMapping::read(&field));
    let cost_override = read_cost(&mut fields);
    let timeout = shared::milliseconds(&mut fields, "timeout_override_ms");
    let retry = shared::retry_override(&mut fields);
    let label = fields.name_of("metadata");
    let metadata = fields.take("metadata");
    let below = |name: &str| {
        let node = metadata.as_ref()?.get(name)?;
        Some(FieldReader::new(
            &format!("{label}.{name}"),
            node,
            item.report,
        ))
    };
    let (request, component) = (below("http"), below("component"));
    let places = request
        .as_ref()
        .map(|request| PlaceholderPlaces::of(request.node));
    let http = match (kind, request) {
        (Some(DriverKind::Http), Some(request)) => HttpCall::read(&request, defaults),
        (Some(DriverKind::Http), None) => {
            let message = format!("expected the field `{label}.http` for `kind: http`, found none");
            item.refuse(&codes::MISSING_FIELD, message)
        }
        _ => None,
    };
    let world = World::read(kind, component.as_ref());
    let kind_fields = match kind {
        Some(kind) if !kind.is_run() => fields.rest(),
        _ => {
            fields.unknown();
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
        mapping: mapping.unwrap_or_default(),
        cost_override,
        timeout: timeout.map(|given| given.value),
        retry,
        http,
        places: places.unwrap_or_default(),
        program: None,
        world: world?,
        kind_fields,
        metadata: metadata.map(|field| field.mapping()).unwrap_or_default(),
        at: item.at,
    })
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

fn narrowing(fields: &mut MappingReader<'_>) -> (Vec<String>, Vec<String>) {
    let Some(mut inner) = fields.take_fields("schema_narrowing") else {
        return (Vec::new(), Vec::new());
    };
    let inputs = inner.strings("drop_inputs");
    let outputs = inner.strings("drop_outputs");
    inner.unknown();
    (inputs, outputs)
}
