//! Contracts: TOOL.md (AIP-14) and `define_tool`. A contract states what a tool does; drivers
//! implement the tool. This module also reads the keys of `metadata` that the host uses; all other
//! keys belong to the author.

mod parse;

use std::time::Duration;

use serde_json::{Map, Value};

use crate::capability::CapabilitySet;
use crate::codes;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::json;
use crate::schema::Schema;
use crate::shared::{self, is_deceptive, plain_name};
use crate::source::{Content, FieldReader, Node, Spelling, nearest};
use crate::{NoScope, Scope};

pub(crate) use parse::schema as schema_of;

pub use crate::action::Implementation;
pub use crate::id::{IdError, ToolId, is_word};
pub use crate::terms::{
    Approval, Backoff, CostClass, DriverConstraints, Requires, Retry, ToolExample,
};

/// AIP-14's default for `timeout_ms`: 30 seconds.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The member of a call's context that pins a driver (AIP-30). Hosts remove it, so drivers do not
/// see it.
pub const CONTEXT_PIN: &str = "pinnedProvider";

/// A validated contract.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// Machine identifier, unique in a registry.
    pub id: ToolId,
    /// Display name, 1 to 80 characters.
    pub name: String,
    /// Purpose, written for the calling model; at most 2000 characters.
    pub description: String,
    /// Version of the contract. Another major version is another tool.
    pub version: semver::Version,
    /// Schema of the input.
    pub inputs: Schema,
    /// Schema of a successful output.
    pub outputs: Schema,
    /// Schema of the per-call context; `None` means no context.
    pub context_schema: Option<Schema>,
    /// Whether two equal calls have the same effect as one.
    pub idempotent: bool,
    /// The changes that its drivers may make. Changing implies reading.
    pub mutates: CapabilitySet,
    /// The capabilities that it needs to read or call.
    pub requires: Requires,
    /// The approval class that applies: the declared class, merged with the action's, and
    /// `on-mutate` instead of `auto` if `mutates` is not empty. Use [`Approval::effective`] for
    /// decisions.
    pub approval: Approval,
    /// 0 read-only, 1 scoped writes, 2 external side effects, 3 irreversible.
    pub risk_level: u8,
    /// The rough cost of a call.
    pub cost_class: CostClass,
    /// Ceiling on the wall-clock time of a call.
    pub timeout: Duration,
    /// Baseline retry policy; `None` means no retries.
    pub retry: Option<Retry>,
    /// The driver to use if no other rule decides.
    pub default_implementation: Option<String>,
    /// The resolved action that it implements. The action's minimum is merged into the fields
    /// above.
    pub implements: Option<Implementation>,
    /// The kinds of driver that it permits.
    pub driver_constraints: DriverConstraints,
    /// Discovery tags.
    pub tags: Vec<String>,
    /// Input and output pairs that every driver must satisfy.
    pub examples: Vec<ToolExample>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// `metadata.mcp.name`: the name over MCP that it requests, as written.
    pub mcp_name: Option<String>,
    /// `metadata.mcp.result`: the parts of a result that MCP clients get.
    pub mcp_result: McpResult,
    /// `metadata.mcp.schemas`: how its schemas are listed over MCP.
    pub mcp_schemas: McpSchemas,
    /// `metadata.toolward.aliases`: former names.
    pub aliases: Vec<String>,
    /// `metadata.toolward.namespace`: the group of tools within which names can collide.
    pub namespace: Option<String>,
    /// `metadata.toolward.search_hint`: words for discovery.
    pub search_hint: Option<String>,
    /// Events that it fires, including its action's.
    pub fires_events: Vec<String>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
}

impl Tool {
    /// `id@major`, the identity that caches, grants and the ledger use (AIP-14, "Stable identity").
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The namespace that applies: the declared one, or otherwise the id without its last part.
    pub fn effective_namespace(&self) -> &str {
        let id = self.id.as_str();
        let of_id = id.rsplit_once('.').map_or(id, |(namespace, _)| namespace);
        self.namespace.as_deref().unwrap_or(of_id)
    }

    /// The numbers of a version 1 entry's `budget` in tools.json, `tokens` and `usd`. No call is
    /// counted against them.
    pub fn budget(&self) -> Map<String, Value> {
        let runloop = self.metadata.get("runloop");
        let budget = runloop.and_then(|runloop| runloop.get("budget")?.as_object());
        let numbers = budget
            .into_iter()
            .flatten()
            .filter(|(name, value)| matches!(name.as_str(), "tokens" | "usd") && value.is_number());
        numbers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The capabilities that it declares: `requires` and `mutates` together.
    pub fn declaration(&self) -> CapabilitySet {
        self.requires.capabilities.union(&self.mutates)
    }
}

/// Makes a contract from a definition object with the camel-case keys of AIP-14's `ToolDefinition`
/// (`id`, `description`, `inputSchema`, `outputSchema`, ...).
///
/// `name` defaults to the id, `version` to 1.0.0. An `execute` member is ignored with a migration
/// warning. Diagnostics name the file `<definition>` and point at 1:1.
pub fn define_tool(definition: &Value) -> Parsed<Tool> {
    define_tool_in(definition, &NoScope)
}

/// As [`define_tool`], with a scope for `schema:` references and actions.
pub fn define_tool_in(definition: &Value, scope: &dyn Scope) -> Parsed<Tool> {
    let report = FileReport::new("<definition>");
    if let Err(error) = json::check(definition, &json::Limits::default()) {
        report.add(error.info(), Position::START, error.message.clone());
        return report.finish(None);
    }
    let node = Node::from_value(definition);
    let root = FieldReader::new("", &node, &report);
    let tool = parse::contract(&root, Spelling::Camel, "", scope);
    report.finish(tool)
}

/// Maps a text to the characters of a name that MCP clients accept: letters, digits and `-` stay,
/// everything else becomes `_`. The protocol allows dots, but clients refuse a tool whose name does
/// not match `^[a-zA-Z0-9_-]{1,64}$`, and some then refuse the whole chat. `_` is never first, last
/// or repeated, since clients put `__` between their own prefix and a name. The length is not
/// limited. The name is empty if no character is left.
pub fn mapped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => name.push(character),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    if name.ends_with('_') {
        name.pop();
    }
    name
}

/// The parts of a result that MCP clients get, in addition to the value as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpResult {
    /// The value as structured content, and the blocks of content. Several clients then show a
    /// model only the value.
    #[default]
    Structured,
    /// Only the blocks of content. The tool lists no `outputSchema`.
    Content,
}

/// How the schemas of a tool are listed over MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpSchemas {
    /// References inlined, and the input as one plain object, for clients and model APIs that
    /// support only a part of JSON Schema.
    #[default]
    Plain,
    /// As written in the contract.
    Exact,
}

const OURS: &[&str] = &["aliases", "namespace", "search_hint", "requires"];

/// Warns of keys below `metadata.toolward` that the host does not read.
fn check_keys(field: &FieldReader<'_>) {
    let Content::Mapping(entries) = &field.content else {
        return refuse(field, "a mapping");
    };
    for entry in entries {
        let key = entry.key.as_str();
        if !OURS.contains(&key) {
            let message = format!(
                "expected a key that the host reads, found `{}.{key}`",
                field.name
            );
            let near = nearest(key, OURS.iter().copied());
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            let (code, report) = (&codes::METADATA_UNKNOWN_KEY, field.report);
            report.add_with_hint(code, entry.key_at, message, hint);
        }
    }
}

fn names(field: &FieldReader<'_>) -> Vec<String> {
    let Content::List(items) = &field.content else {
        refuse(field, "a list");
        return Vec::new();
    };
    let item = |item| plain_name(&FieldReader::new(&field.name, item, field.report));
    items.iter().filter_map(item).collect()
}

fn search_hint(field: &FieldReader<'_>) -> Option<String> {
    shared::metadata(field, "to be one line of at most 200 characters", |text| {
        let fits = (1..=200).contains(&text.chars().count());
        (fits && !text.chars().any(is_deceptive)).then(|| text.to_owned())
    })
}

fn refuse(field: &FieldReader<'_>, expected: &str) {
    let (name, kind) = (&field.name, field.kind());
    let message = format!("expected `{name}` to be {expected}, found {kind}");
    field.note(&codes::METADATA_INVALID, message);
}

/// Reads one of two words. Another value is reported, and the default is returned.
fn word<T: Copy + Default>(field: Option<FieldReader<'_>>, words: &[(&str, T); 2]) -> T {
    let [(one, _), (other, _)] = words;
    let known = |text: &str| {
        let known = words.iter().find(|(word, _)| *word == text);
        known.map(|(_, value)| *value)
    };
    let expected = format!("to be `{one}` or `{other}`");
    let word = field.and_then(|field| shared::metadata(&field, &expected, known));
    word.unwrap_or_default()
}

/// Reads the name for MCP, as written. Warns if clients see another name.
fn mcp_name(field: &FieldReader<'_>) -> Option<String> {
    let name = plain_name(field)?;
    let shown = mapped(&name);
    if shown != name {
        let message = format!(
            "expected `metadata.mcp.name` in letters, digits, `-` and single `_`, found {name:?}, \
             which is shown as {shown:?}"
        );
        field.note(&codes::MCP_NAME_MAPPED, message);
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_letters_digits_dashes_and_single_underscores() {
        for (text, name) in [
            ("text.stats", "text_stats"),
            ("Count-Words", "Count-Words"),
            ("a__b._c", "a_b_c"),
            ("_x_", "x"),
            ("dev:/home/ada", "dev_home_ada"),
            ("naïve", "na_ve"),
            ("...", ""),
        ] {
            assert_eq!(mapped(text), name, "{text}");
            assert_eq!(mapped(name), name);
        }
    }
}
