//! tools.json field by field.

use serde_json::{Map, Value};

use super::{Index, IndexEntry, family::parse_family, transport};
use crate::Scope;
use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Parsed, Position, Report};
use crate::json;
use crate::source::{Content, Fields, Node, boolean, integer, list, located, number, text, texts};
use crate::tool::ToolId;
use crate::wording;

pub(super) fn document(file: &str, source: &[u8], scope: &dyn Scope) -> Parsed<Index> {
    let mut report = Report::new(file);
    let node = match json::parse(source, &json::Limits::default()) {
        Ok(_) => std::str::from_utf8(source).ok().and_then(located),
        Err(error) => {
            report.add(
                error.info(),
                Position {
                    line: error.line,
                    column: error.column,
                },
                error.message.clone(),
            );
            return report.finish(None);
        }
    };
    let Some(node) = node else {
        report.add(
            &codes::JSON_SYNTAX,
            Position::START,
            "expected JSON in UTF-8, found something else",
        );
        return report.finish(None);
    };
    let index = index(&node, scope, &mut report);
    report.finish(index)
}

fn index(node: &Node, scope: &dyn Scope, report: &mut Report<'_>) -> Option<Index> {
    let mut fields = Fields::of(node, "", report)?;
    let node = fields.required("version", report)?;
    let version = match &node.content {
        Content::Number(number) => number
            .as_u64()
            .and_then(|version| u32::try_from(version).ok()),
        _ => None,
    };
    let Some(version @ 1..=2) = version else {
        let message = format!("expected `version` to be 1 or 2, found {}", node.to_value());
        report.add_with_hint(
            &codes::INDEX_VERSION_UNSUPPORTED,
            node.at,
            message,
            "update the host, or pack the bundle with an older toolward",
        );
        return None;
    };
    let items = fields
        .take("tools")
        .and_then(|node| list(node, "tools", report))
        .unwrap_or_default();
    fields.finish(report);
    let mut tools: Vec<IndexEntry> = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let Some(entry) = entry(item, &format!("tools[{position}]"), version, scope, report) else {
            continue;
        };
        if tools.iter().any(|other| other.id == entry.id) {
            report.add(
                &codes::INDEX_DUPLICATE_ID,
                item.at,
                format!("expected {} once, found it again", entry.id),
            );
        }
        tools.push(entry);
    }
    Some(Index { version, tools })
}

fn entry(
    node: &Node,
    path: &str,
    version: u32,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<IndexEntry> {
    let mut fields = Fields::of(node, path, report)?;
    let id = fields.required("id", report).and_then(|node| {
        let found = text(node, &fields.name("id"), report)?;
        let read = if version == 1 {
            ToolId::relaxed(found)
        } else {
            ToolId::parse(found)
        };
        read.map_err(|error| report.add(&codes::ID_INVALID, node.at, error.to_string()))
            .ok()
    });
    let description = wording::description(&mut fields, report);
    let transport = fields.required("transport", report);
    let transport = transport
        .and_then(|node| transport::read(node, &fields.name("transport"), version, report));
    let mut schema = |key: &'static str, report: &mut Report<'_>| {
        let node = fields.required(key, report)?;
        crate::tool::schema_of(node, &fields.name(key), scope, report)
    };
    let input_schema = schema("input_schema", report);
    let result_schema = schema("result_schema", report);
    let schema_refs = schema_refs(&mut fields, report);
    let mut capabilities = CapabilitySet::new();
    if let Some(node) = fields.take("capabilities") {
        let label = fields.name("capabilities");
        for (found, at) in texts(node, &label, report) {
            match parse_family(found) {
                Ok(capability) => capabilities.insert(capability),
                Err(error) => report.add(
                    &codes::CAPABILITY_INVALID,
                    at,
                    format!("in `{label}`: {error}"),
                ),
            }
        }
    }
    let mut secrets = Vec::new();
    if let Some(node) = fields.take("secrets") {
        let label = fields.name("secrets");
        for (found, at) in texts(node, &label, report) {
            match Capability::of(Class::Secret, found) {
                Ok(_) => secrets.push(found.to_owned()),
                Err(error) => report.add(
                    &codes::CAPABILITY_INVALID,
                    at,
                    format!("in `{label}`: {error}"),
                ),
            }
        }
    }
    let budget = budget(&mut fields, report);
    let confirmation = fields.take("requires_confirmation");
    let confirmation =
        confirmation.and_then(|node| boolean(node, &fields.name("requires_confirmation"), report));
    let tags = tags(&mut fields, report);
    fields.finish(report);
    Some(IndexEntry {
        id: id?,
        description: description?,
        transport: transport?,
        input_schema: input_schema?,
        result_schema: result_schema?,
        schema_refs,
        capabilities,
        secrets,
        budget,
        requires_confirmation: confirmation.unwrap_or(false),
        tags,
        at: node.at,
    })
}

fn schema_refs(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Map<String, Value> {
    let label = fields.name("schema_refs");
    let Some(node) = fields.take("schema_refs") else {
        return Map::new();
    };
    let Content::Mapping(entries) = &node.content else {
        report.add(
            &codes::WRONG_TYPE,
            node.at,
            format!("expected `{label}` to be a mapping, found {}", node.kind()),
        );
        return Map::new();
    };
    let read = entries.iter().filter_map(|entry| {
        let id = text(&entry.value, &format!("{label}.{}", entry.key), report)?;
        Some((entry.key.clone(), Value::from(id)))
    });
    read.collect()
}

fn budget(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Map<String, Value> {
    let label = fields.name("budget");
    let Some(node) = fields.take("budget") else {
        return Map::new();
    };
    let Some(mut inner) = Fields::of(node, &label, report) else {
        return Map::new();
    };
    if let Some(node) = inner.take("tokens") {
        integer(
            node,
            &inner.name("tokens"),
            0..=json::MAX_SAFE_INTEGER,
            report,
        );
    }
    if let Some(node) = inner.take("usd") {
        number(node, &inner.name("usd"), report);
    }
    inner.finish(report);
    match node.to_value() {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn tags(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<String> {
    let label = fields.name("observability");
    let Some(mut inner) = fields
        .take("observability")
        .and_then(|node| Fields::of(node, &label, report))
    else {
        return Vec::new();
    };
    let tags = wording::labels(&mut inner, "tags", report);
    inner.finish(report);
    tags
}
