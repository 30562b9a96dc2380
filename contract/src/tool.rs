//! Contracts: TOOL.md (AIP-14) and `define_tool`. What a tool does, not what carries it out.

mod parse;

use std::fmt::Display;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::capability::{CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::json;
use crate::schema::Schema;
use crate::shared::{RequiresParts, is_deceptive, plain_name, requires_parts, shown};
use crate::source::{Content, FieldReader, MappingReader, Node, Spelling, nearest};
use crate::{NoScope, Scope};

pub(crate) use parse::schema as schema_of;

pub use crate::action::Implementation;
pub use crate::id::{IdError, ToolId};
pub use crate::terms::{
    Approval, Backoff, CostClass, DriverConstraints, Requires, Retry, ToolExample,
};

/// AIP-14's default for `timeout_ms`: 30 seconds.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The member of a call's context that pins a driver (AIP-30). Hosts take it out: no driver sees it.
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
    /// Schema of the per-call context; `None`: no context.
    pub context_schema: Option<Schema>,
    /// Whether calling twice has the effect of calling once.
    pub idempotent: bool,
    /// What any driver of it may change. Changing implies reading.
    pub mutates: CapabilitySet,
    /// What it needs to read or call.
    pub requires: Requires,
    /// The approval class that holds: the declared one, or `on-mutate` where `auto` was declared
    /// (or nothing) and `mutates` is not empty. Use [`Approval::effective`] for decisions.
    pub approval: Approval,
    /// 0 read-only, 1 scoped writes, 2 external side effects, 3 irreversible.
    pub risk_level: u8,
    /// What a call costs, roughly.
    pub cost_class: CostClass,
    /// Ceiling on the wall-clock time of a call.
    pub timeout: Duration,
    /// Baseline retry policy; `None`: no retries.
    pub retry: Option<Retry>,
    /// The driver to use when nothing else decides.
    pub default_implementation: Option<String>,
    /// The action that it implements, resolved; its floor is merged into the fields above.
    pub implements: Option<Implementation>,
    /// Which kinds of driver it permits.
    pub driver_constraints: DriverConstraints,
    /// Discovery tags.
    pub tags: Vec<String>,
    /// Input and output pairs that every driver must satisfy.
    pub examples: Vec<ToolExample>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// `metadata.mcp.name`: the name that it asks to be shown by over MCP, as written.
    pub mcp_name: Option<String>,
    /// `metadata.mcp.result`: which half of a result a client of MCP is sent.
    pub mcp_result: McpResult,
    /// `metadata.mcp.schemas`: how its schemas are listed over MCP.
    pub mcp_schemas: McpSchemas,
    /// `metadata.toolward.aliases`: older names.
    pub aliases: Vec<String>,
    /// `metadata.toolward.namespace`: the collision boundary of the name.
    pub namespace: Option<String>,
    /// `metadata.toolward.search_hint`: words for discovery.
    pub search_hint: Option<String>,
    /// Events that it fires, its action's included.
    pub fires_events: Vec<String>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
}

impl Tool {
    /// `id@major`, the identity that caches, grants and the ledger use (AIP-14, "Stable identity").
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The collision boundary of its name: the one that it declares, else its id without the last part.
    pub fn effective_namespace(&self) -> &str {
        let id = self.id.as_str();
        let of_id = id.rsplit_once('.').map_or(id, |(namespace, _)| namespace);
        self.namespace.as_deref().unwrap_or(of_id)
    }

    /// The numbers of a version 1 entry's `budget` in tools.json, `tokens` and `usd`. Nothing counts them.
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

    /// What it asks for: `requires` and `mutates` together.
    pub fn declaration(&self) -> CapabilitySet {
        self.requires.capabilities.union(&self.mutates)
    }
}

/// Makes a contract of a definition object with the camel-case keys of AIP-14's `ToolDefinition`
/// (`id`, `description`, `inputSchema`, `outputSchema`, ...).
///
/// `name` defaults to the id, `version` to 1.0.0. An `execute` member is ignored with a migration
/// warning. Diagnostics name the file `<definition>` and point at 1:1.
pub fn define_tool(definition: &Value) -> Parsed<Tool> {
    define_tool_in(definition, &NoScope)
}

/// [`define_tool`] with a scope for `schema:` references and actions.
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

/// A text in the characters of a name that MCP clients accept. The protocol allows dots; clients refuse a tool, and
/// some the whole chat, for a name that does not match `^[a-zA-Z0-9_-]{1,64}$`: letters, digits, `-`, and `_` for everything else. `_` stands
/// alone, never first and never last: clients put `__` between their own prefix and a name. Empty if no character
/// is left.
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

/// Which half of a result MCP clients get, besides the value as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpResult {
    /// The value as structured content, and the blocks of content. Several clients then show a model the value alone.
    #[default]
    Structured,
    /// The blocks of content alone. The tool lists no `outputSchema`.
    Content,
}

/// How the schemas of a tool are listed over MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpSchemas {
    /// For clients and APIs of models that take only a part of JSON Schema: references inlined, and the input as one
    /// plain object.
    #[default]
    Plain,
    /// As written in the contract.
    Exact,
}

#[derive(Default)]
struct ToolMetadata<'n> {
    all: Map<String, Value>,
    context_schema: Option<&'n Node>,
    mcp_name: Option<String>,
    mcp_result: McpResult,
    mcp_schemas: McpSchemas,
    aliases: Vec<String>,
    namespace: Option<String>,
    search_hint: Option<String>,
    requires: RequiresParts,
}

const OURS: &[&str] = &["aliases", "namespace", "search_hint", "requires"];

impl<'n> ToolMetadata<'n> {
    fn take(fields: &mut MappingReader<'n>) -> Self {
        let Some(field) = fields.take("metadata") else {
            return Self::default();
        };
        let (node, report) = (field.node, field.report);
        let mcp = |key: &str| node.get("mcp")?.get(key);
        let mut metadata = Self {
            all: field.mapping(),
            context_schema: node.get("contextSchema"),
            mcp_name: mcp("name").and_then(|node| mcp_name(node, report)),
            ..Self::default()
        };
        if let Some(result) = mcp("result") {
            let words = [
                ("structured", McpResult::Structured),
                ("content", McpResult::Content),
            ];
            metadata.mcp_result = word(result, "metadata.mcp.result", &words, report);
        }
        if let Some(schemas) = mcp("schemas") {
            let words = [("plain", McpSchemas::Plain), ("exact", McpSchemas::Exact)];
            metadata.mcp_schemas = word(schemas, "metadata.mcp.schemas", &words, report);
        }
        if let Some(ours) = node.get("toolward") {
            metadata.read_ours(ours, report);
        }
        metadata
    }

    fn read_ours(&mut self, node: &'n Node, report: &'n FileReport<'n>) {
        let Content::Mapping(entries) = &node.content else {
            return refuse(node, "metadata.toolward", "a mapping", node.kind(), report);
        };
        for entry in entries {
            let key = entry.key.as_str();
            if !OURS.contains(&key) {
                let message =
                    format!("expected a key that the host reads, found `metadata.toolward.{key}`");
                let near = nearest(key, OURS.iter().copied());
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                report.add_with_hint(&codes::METADATA_UNKNOWN_KEY, entry.key_at, message, hint);
            }
        }
        if let Some(aliases) = node.get("aliases") {
            let label = "metadata.toolward.aliases";
            match &aliases.content {
                Content::List(items) => {
                    let names = items
                        .iter()
                        .filter_map(|item| plain_name(item, label, report));
                    self.aliases = names.collect();
                }
                _ => refuse(aliases, label, "a list", aliases.kind(), report),
            }
        }
        let namespace = node.get("namespace");
        self.namespace =
            namespace.and_then(|node| plain_name(node, "metadata.toolward.namespace", report));
        self.search_hint = node
            .get("search_hint")
            .and_then(|node| search_hint(node, report));
        if let Some(requires) = node.get("requires") {
            let field = FieldReader::new("metadata.toolward.requires", requires, report);
            let read =
                |inner: &mut MappingReader<'n>| requires_parts(inner, Class::required_ours());
            self.requires = field.whole(|inner| Some(read(inner))).unwrap_or_default();
        }
    }
}

fn refuse(node: &Node, label: &str, expected: &str, found: impl Display, report: &FileReport<'_>) {
    let message = format!("expected `{label}` to be {expected}, found {found}");
    report.add(&codes::METADATA_INVALID, node.at, message);
}

/// One of two words; the default of another value, which is reported.
fn word<T: Copy + Default>(
    node: &Node,
    label: &str,
    words: &[(&str, T); 2],
    report: &FileReport<'_>,
) -> T {
    let known = words.iter().find(|(word, _)| match &node.content {
        Content::Text(text) => text == word,
        _ => false,
    });
    if known.is_none() {
        let [(one, _), (other, _)] = words;
        refuse(
            node,
            label,
            &format!("`{one}` or `{other}`"),
            shown(node),
            report,
        );
    }
    known.map(|(_, value)| *value).unwrap_or_default()
}

/// The name for MCP as written. Warns if clients see another one.
fn mcp_name(node: &Node, report: &FileReport<'_>) -> Option<String> {
    let name = plain_name(node, "metadata.mcp.name", report)?;
    let shown = mapped(&name);
    if shown != name {
        let message = format!(
            "expected `metadata.mcp.name` in letters, digits, `-` and single `_`, found {name:?}, \
             which is shown as {shown:?}"
        );
        report.add(&codes::MCP_NAME_MAPPED, node.at, message);
    }
    Some(name)
}

fn search_hint(node: &Node, report: &FileReport<'_>) -> Option<String> {
    match &node.content {
        Content::Text(text)
            if (1..=200).contains(&text.chars().count()) && !text.chars().any(is_deceptive) =>
        {
            Some(text.clone())
        }
        _ => {
            let expected = "one line of at most 200 characters";
            let label = "metadata.toolward.search_hint";
            refuse(node, label, expected, shown(node), report);
            None
        }
    }
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
