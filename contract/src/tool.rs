//! Contracts: TOOL.md (AIP-14) and `define_tool`. What a tool does, not what carries it out.

mod metadata;
mod parse;

use std::time::Duration;

use serde_json::{Map, Value};

use crate::capability::CapabilitySet;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::json;
use crate::schema::Schema;
use crate::source::{FieldReader, Node, Spelling};
use crate::{NoScope, Scope};

pub(crate) use parse::schema as schema_of;

pub use crate::action::Implementation;
pub use crate::id::{IdError, ToolId};
pub use crate::terms::{
    Approval, Backoff, CostClass, DriverConstraints, Requires, Retry, ToolExample,
};
pub use metadata::{McpResult, McpSchemas};

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
    #[must_use]
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The collision boundary of its name: the one that it declares, else its id without the last part.
    #[must_use]
    pub fn effective_namespace(&self) -> &str {
        let id = self.id.as_str();
        let of_id = id.rsplit_once('.').map_or(id, |(namespace, _)| namespace);
        self.namespace.as_deref().unwrap_or(of_id)
    }

    /// The numbers of a version 1 entry's `budget` in tools.json, `tokens` and `usd`. Nothing counts them.
    #[must_use]
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
    #[must_use]
    pub fn declaration(&self) -> CapabilitySet {
        self.requires.capabilities.union(&self.mutates)
    }
}

/// Makes a contract of a definition object with the camel-case keys of AIP-14's `ToolDefinition`
/// (`id`, `description`, `inputSchema`, `outputSchema`, ...).
///
/// `name` defaults to the id, `version` to 1.0.0. An `execute` member is ignored with a migration
/// warning. Diagnostics name the file `<definition>` and point at 1:1.
#[must_use]
pub fn define_tool(definition: &Value) -> Parsed<Tool> {
    define_tool_in(definition, &NoScope)
}

/// [`define_tool`] with a scope for `schema:` references and actions.
#[must_use]
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
#[must_use]
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
