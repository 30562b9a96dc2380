//! Reads the fields of a tools.json. The host decides whether it runs a transport of version 1.

use serde_json::{Map, Value, json};
use toolward_support::fields::without_mark_bytes;

use super::{Index, IndexEntry, parse_family};
use crate::capability::{Capability, CapabilityError, CapabilitySet, Class, HostPattern};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::driver::{Method, is_absolute as is_absolute_path};
use crate::id::{IdError, ToolId};
use crate::json;
use crate::schema::Schema;
use crate::shared;
use crate::source::{Content, FieldReader, MappingReader, located};
use crate::{SchemaScope, Scope};

impl Index {
    /// Reads a tools.json. `file` names it in diagnostics; `scope` has the bundle's `schema:`
    /// documents.
    pub fn parse(file: &str, source: &[u8], scope: &dyn Scope) -> Parsed<Index> {
        let report = FileReport::new(file);
        let source = without_mark_bytes(source);
        if let Err(error) = json::parse(source, &json::Limits::default()) {
            report.push(error.diagnostic(file, source));
            return report.finish(None);
        }
        let Some(node) = std::str::from_utf8(source).ok().and_then(located) else {
            let code = &toolward_schema::codes::JSON_SYNTAX;
            let message = "expected JSON in UTF-8, found something else";
            report.add(code, Position::START, message);
            return report.finish(None);
        };
        let index = index(&FieldReader::new("", &node, &report), scope);
        report.finish(index)
    }
}

fn index(root: &FieldReader<'_>, scope: &dyn Scope) -> Option<Index> {
    let mut fields = root.foreign()?;
    let field = fields.required("version")?;
    let version = match &field.content {
        Content::Number(number) => number.as_u64(),
        _ => None,
    };
    let Some(version @ 1..=2) = version else {
        let message = format!(
            "expected `version` to be 1 or 2, found {}",
            field.to_value()
        );
        let hint = "update the host, or pack the bundle with an older toolward".to_owned();
        field.note_with_hint(&codes::INDEX_VERSION_UNSUPPORTED, message, hint);
        return None;
    };
    let version = u32::try_from(version).ok()?;
    let items = fields.items("tools");
    fields.unknown();
    let mut tools: Vec<IndexEntry> = Vec::new();
    for item in items {
        let Some(entry) = entry(&item, version, scope) else {
            continue;
        };
        let mut known = tools.iter();
        if known.any(|other| other.id == entry.id && other.major == entry.major) {
            let message = format!("expected {} once, found it again", entry.id);
            item.note(&codes::INDEX_DUPLICATE_ID, message);
        }
        tools.push(entry);
    }
    Some(Index { version, tools })
}

fn entry(item: &FieldReader<'_>, version: u32, scope: &dyn Scope) -> Option<IndexEntry> {
    item.foreign()?
        .whole(|fields| read_entry(fields, item.at, version, scope))
}

fn read_entry(
    fields: &mut MappingReader<'_>,
    at: Position,
    version: u32,
    scope: &dyn Scope,
) -> Option<IndexEntry> {
    let id = fields.require("id", |field| {
        let found = field.text()?;
        let read = match version {
            1 => ToolId::relaxed(found),
            _ => ToolId::parse(found),
        };
        let refuse = |error: IdError| field.note(&codes::ID_INVALID, error.to_string());
        read.map_err(refuse).ok()
    });
    let major = (version > 1).then(|| fields.integer("major", 0..=json::MAX_SAFE_INTEGER));
    let description = shared::description(fields);
    let transport = fields.require("transport", |field| read_transport(field, version));
    let schema_refs = schema_refs(fields, version, scope);
    let named = NamedSchemas {
        scope,
        refs: &schema_refs,
    };
    let mut schema = |key| crate::tool::schema_of(&fields.required(key)?, &named);
    let input_schema = schema("input_schema");
    let result_schema = schema("result_schema");
    let mut capabilities = CapabilitySet::new();
    let mut ungrantable = Vec::new();
    each(fields, "capabilities", |found| {
        match parse_family(found) {
            Ok(capability) => capabilities.insert(capability),
            Err(_) if version == 1 => ungrantable.push(found.to_owned()),
            // The contract that the entry repeats may have a capability without a valid scope.
            Err(error) => capabilities.insert(Capability::of_no_scope(found).ok_or(error)?),
        }
        Ok(())
    });
    let mut secrets = Vec::new();
    each(fields, "secrets", |found| {
        Capability::of(Class::Secret, found).map(|_| secrets.push(found.to_owned()))
    });
    Some(IndexEntry {
        budget: fields.or_default("budget", budget),
        requires_confirmation: fields.boolean("requires_confirmation").unwrap_or(false),
        tags: fields.or_default("observability", tags),
        id: id?,
        major: major.flatten(),
        description: description?,
        transport: transport?,
        input_schema: input_schema?,
        result_schema: result_schema?,
        schema_refs,
        capabilities,
        ungrantable,
        secrets,
        at,
    })
}

/// Reads each text of a list of capabilities or scopes.
fn each(
    fields: &mut MappingReader<'_>,
    key: &'static str,
    mut read: impl FnMut(&str) -> Result<(), CapabilityError>,
) {
    let Some(field) = fields.take(key) else {
        return;
    };
    for (found, item) in field.texts() {
        if let Err(error) = read(found) {
            let message = format!("in `{}`: {error}", field.name);
            item.note(&codes::CAPABILITY_INVALID, message);
        }
    }
}

fn budget(field: &FieldReader<'_>) -> Map<String, Value> {
    let Some(inner) = field.foreign() else {
        return Map::new();
    };
    inner.whole(|inner| {
        inner.integer("tokens", 0..=json::MAX_SAFE_INTEGER);
        inner.take("usd").map(|field| field.amount())
    });
    let mut budget = field.mapping();
    budget.retain(|_, hint| !hint.is_null());
    budget
}

fn tags(field: &FieldReader<'_>) -> Vec<String> {
    let tags = field.foreign();
    let tags = tags.map(|inner| inner.whole(|inner| shared::labels(inner, "tags")));
    tags.unwrap_or_default()
}

/// How many names `schema_refs` of an entry may have in version 1. Each is looked up and compiled.
const MAX_REFS: usize = 16;

/// Reads `schema_refs`: names that an entry gives to schemas of its bundle. In version 1, each name
/// must lead to a schema of the bundle. In version 2, the field repeats a contract's metadata.
fn schema_refs(
    fields: &mut MappingReader<'_>,
    version: u32,
    scope: &dyn Scope,
) -> Map<String, Value> {
    let members = fields.read("schema_refs", |field| field.members());
    let members = members.into_iter().flatten();
    let mut refs = Map::new();
    for (index, (key, member)) in members.filter(|(_, member)| !member.is_null()).enumerate() {
        if version == 1 && index == MAX_REFS {
            let message = format!("expected at most {MAX_REFS} names in `schema_refs`");
            member.note_at_key(&codes::SCHEMA_REFS_UNRESOLVED, message);
            break;
        }
        let Some(id) = member.text() else {
            continue;
        };
        let reference = json!({ "$ref": format!("schema:{}", bare(id)) });
        if version == 1
            && let Err(problem) = Schema::compile(&reference, scope)
        {
            let message = format!(
                "expected `{}` to lead to a schema of the bundle, found {id:?}: {}",
                member.name, problem.message
            );
            member.note(&codes::SCHEMA_REFS_UNRESOLVED, message);
        }
        refs.insert(key.to_owned(), id.into());
    }
    refs
}

/// An id without its `schema:`, if it has one.
fn bare(id: &str) -> &str {
    id.strip_prefix("schema:").unwrap_or(id)
}

/// The schemas of a scope, with the names of an entry as further ids. A schema's own id takes
/// precedence over a name.
struct NamedSchemas<'a> {
    scope: &'a dyn Scope,
    refs: &'a Map<String, Value>,
}

impl NamedSchemas<'_> {
    fn target(&self, name: &str) -> Option<&str> {
        self.refs.get(name)?.as_str().map(bare)
    }
}

impl SchemaScope for NamedSchemas<'_> {
    fn schema(&self, id: &str) -> Option<Value> {
        let own = self.scope.schema(id);
        own.or_else(|| self.scope.schema(self.target(id)?))
    }
}

impl Scope for NamedSchemas<'_> {
    fn is_schema_unread(&self, id: &str) -> bool {
        let ids = [Some(id), self.target(id)];
        ids.into_iter()
            .flatten()
            .any(|id| self.scope.is_schema_unread(id))
    }

    fn schemas(&self) -> Vec<String> {
        self.scope.schemas()
    }

    fn compiled(&self, schema: &Value) -> Option<Schema> {
        // With names, the same text may refer to other schemas, so a compiled schema is reused only
        // without names.
        self.scope.compiled(schema).filter(|_| self.refs.is_empty())
    }
}

/// The transport that carries out a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// A program of the host.
    Exec {
        /// Absolute path.
        command: String,
        /// Arguments appended after the path of the JSON input.
        args: Vec<String>,
    },
    /// An HTTP request.
    Http {
        /// The method, in upper case.
        method: String,
        /// Absolute URL; scheme and host are literal.
        url: String,
        /// Static headers; values may contain placeholders for secrets.
        headers: Vec<(String, String)>,
    },
    /// A driver of the same bundle (version 2).
    Component {
        /// The driver's id.
        driver: ToolId,
    },
}

fn read_transport(field: &FieldReader<'_>, version: u32) -> Option<Transport> {
    let mut fields = field.foreign()?;
    let field = fields.required("kind")?;
    let kind = field.text()?;
    let transport = match kind {
        "exec" => exec(&mut fields),
        "http" => http(&mut fields),
        "component" if version >= 2 => component(&mut fields),
        _ => {
            let known = match version {
                1 => "exec or http",
                _ => "exec, http or component",
            };
            let message = format!(
                "expected `{}` to be {known} in version {version}, found {kind:?}",
                field.name
            );
            return field.refuse(&codes::TRANSPORT_KIND_UNKNOWN, message);
        }
    };
    fields.unknown();
    transport
}

fn exec(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let command = fields.require("command", |field| {
        let found = field.text()?;
        if !is_absolute_path(found) {
            let name = &field.name;
            let message = format!("expected `{name}` to be an absolute path, found {found:?}");
            field.note(&codes::TRANSPORT_COMMAND_RELATIVE, message);
        }
        Some(found.to_owned())
    });
    let args = fields.strings("args");
    command.map(|command| Transport::Exec { command, args })
}

fn http(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let method = fields.require("method", |field| {
        field.word(Method::WORDS, &codes::WRONG_VALUE)
    });
    let url = fields.require("url", |field| {
        let found = field.text()?;
        if !is_absolute(found) {
            let message = format!(
                "expected `{}` to be an absolute http or https URL, found {found:?}",
                field.name
            );
            field.note(&codes::TRANSPORT_URL_INVALID, message);
        }
        Some(found.to_owned())
    });
    let headers = fields.read("headers", |field| field.members());
    let headers = headers.into_iter().flatten();
    let headers = headers.filter(|(_, member)| !member.is_null());
    let headers = headers
        .filter_map(|(key, member)| Some((key.to_owned(), member.text()?.to_owned())))
        .collect();
    Some(Transport::Http {
        method: method?.as_str().to_owned(),
        url: url?,
        headers,
    })
}

/// Whether the scheme and the host are literal. The rest may contain placeholders.
fn is_absolute(url: &str) -> bool {
    let rest = url.strip_prefix("https://");
    let Some(rest) = rest.or_else(|| url.strip_prefix("http://")) else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let literal = HostPattern::parse(authority).is_ok_and(|host| host.is_literal());
    literal && !url.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn component(fields: &mut MappingReader<'_>) -> Option<Transport> {
    let field = fields.required("driver")?;
    let refuse = |error: IdError| field.note(&codes::ID_INVALID, error.to_string());
    let driver = ToolId::parse(field.text()?).map_err(refuse).ok()?;
    Some(Transport::Component { driver })
}
