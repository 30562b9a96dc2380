//! tools.json field by field.

use std::fmt::Display;

use serde_json::{Map, Value};
use toolward_fields::without_mark_bytes;

use super::{Index, IndexEntry, family::parse_family, refs, transport};
use crate::Scope;
use crate::capability::{Capability, CapabilityError, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Parsed, Position, Report};
use crate::json;
use crate::source::{Content, Field, Fields, located};
use crate::tool::ToolId;
use crate::wording;

pub(super) fn document(file: &str, source: &[u8], scope: &dyn Scope) -> Parsed<Index> {
    let mut report = Report::new(file);
    let source = without_mark_bytes(source);
    let node = match json::parse(source, &json::Limits::default()) {
        Ok(_) => std::str::from_utf8(source).ok().and_then(located),
        Err(error) => {
            report.push(error.diagnostic(file, source));
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
    let index = index(&Field::new("", &node), scope, &mut report);
    report.finish(index)
}

fn index(root: &Field<'_>, scope: &dyn Scope, report: &mut Report<'_>) -> Option<Index> {
    let mut fields = report.foreign(root)?;
    let field = report.read(fields.required("version"))?;
    let version = match &field.content {
        Content::Number(number) => number
            .as_u64()
            .and_then(|version| u32::try_from(version).ok()),
        _ => None,
    };
    let Some(version @ 1..=2) = version else {
        let message = format!(
            "expected `version` to be 1 or 2, found {}",
            field.to_value()
        );
        report.add_with_hint(
            &codes::INDEX_VERSION_UNSUPPORTED,
            field.at,
            message,
            "update the host, or pack the bundle with an older toolward",
        );
        return None;
    };
    let items = fields.take("tools");
    let items = items.and_then(|field| report.read(field.items()));
    report.unknown(fields);
    let mut tools: Vec<IndexEntry> = Vec::new();
    for item in items.unwrap_or_default() {
        let Some(entry) = entry(&item, version, scope, report) else {
            continue;
        };
        if tools
            .iter()
            .any(|other| other.id == entry.id && other.major == entry.major)
        {
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
    item: &Field<'_>,
    version: u32,
    scope: &dyn Scope,
    report: &mut Report<'_>,
) -> Option<IndexEntry> {
    let mut fields = report.foreign(item)?;
    let id = report.read(fields.required("id")).and_then(|field| {
        let found = report.read(field.text())?;
        let read = if version == 1 {
            ToolId::relaxed(found)
        } else {
            ToolId::parse(found)
        };
        read.map_err(|error| report.add(&codes::ID_INVALID, field.at, error.to_string()))
            .ok()
    });
    let major = (version > 1).then(|| fields.take("major")).flatten();
    let major = major.and_then(|field| report.read(field.integer(0..=json::MAX_SAFE_INTEGER)));
    let description = wording::description(&mut fields, report);
    let transport = report.read(fields.required("transport"));
    let transport = transport.and_then(|field| transport::read(&field, version, report));
    let schema_refs = refs::read(&mut fields, version, scope, report);
    let named = refs::Named {
        scope,
        refs: &schema_refs,
    };
    let mut schema = |key| {
        let field = report.read(fields.required(key))?;
        crate::tool::schema_of(&field, &named, report)
    };
    let input_schema = schema("input_schema");
    let result_schema = schema("result_schema");
    let mut capabilities = CapabilitySet::new();
    let mut ungrantable = Vec::new();
    each(&mut fields, "capabilities", report, |found| {
        match parse_family(found) {
            Ok(capability) => capabilities.insert(capability),
            Err(_) if version == 1 => ungrantable.push(found.to_owned()),
            // The contract that the entry repeats changes a word that is no scope.
            Err(error) => capabilities.insert(Capability::of_no_scope(found).ok_or(error)?),
        }
        Ok::<(), CapabilityError>(())
    });
    let mut secrets = Vec::new();
    each(&mut fields, "secrets", report, |found| {
        Capability::of(Class::Secret, found).map(|_| secrets.push(found.to_owned()))
    });
    let budget = budget(&mut fields, report);
    let confirmation = fields.take("requires_confirmation");
    let confirmation = confirmation.and_then(|field| report.read(field.boolean()));
    let tags = tags(&mut fields, report);
    report.unknown(fields);
    Some(IndexEntry {
        id: id?,
        major,
        description: description?,
        transport: transport?,
        input_schema: input_schema?,
        result_schema: result_schema?,
        schema_refs,
        capabilities,
        ungrantable,
        secrets,
        budget,
        requires_confirmation: confirmation.unwrap_or(false),
        tags,
        at: item.at,
    })
}

/// Reads each text of a list of capabilities or scopes.
fn each<E: Display>(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
    mut read: impl FnMut(&str) -> Result<(), E>,
) {
    let Some(field) = fields.take(key) else {
        return;
    };
    for (found, at) in report.texts(&field) {
        if let Err(error) = read(found) {
            let message = format!("in `{}`: {error}", field.name);
            report.add(&codes::CAPABILITY_INVALID, at, message);
        }
    }
}

fn budget(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Map<String, Value> {
    let field = fields.take("budget");
    let inner = field.as_ref().map(Fields::of);
    if let Some(inner) = inner.and_then(Result::ok) {
        let mut inner = inner.null_is_absent();
        if let Some(field) = inner.take("tokens") {
            report.read(field.integer(0..=json::MAX_SAFE_INTEGER));
        }
        if let Some(field) = inner.take("usd") {
            report.amount(&field);
        }
        report.unknown(inner);
    }
    let mut budget = report.mapping(field.as_ref());
    budget.retain(|_, hint| !hint.is_null());
    budget
}

fn tags(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Vec<String> {
    let inner = fields.take("observability");
    let Some(mut inner) = inner.and_then(|field| report.foreign(&field)) else {
        return Vec::new();
    };
    let tags = wording::labels(&mut inner, "tags", report);
    report.unknown(inner);
    tags
}
