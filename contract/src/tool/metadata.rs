//! What the host reads below `metadata`. Everything else there is the author's.

use serde_json::{Map, Value};

use super::mapped;
use crate::capability::Class;
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::{GivenRequires, requires_parts};
use crate::source::{Content, Field, Fields, Node, nearest};
use crate::wording::{is_deceptive, plain_name, shown};

/// Which half of a result a client of MCP is sent, besides the value as text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpResult {
    /// The value as structured content, and the blocks of content. Several clients then show a model the value alone.
    #[default]
    Structured,
    /// The blocks of content alone. The tool lists no `outputSchema`.
    Content,
}

impl McpResult {
    fn of(node: &Node) -> Option<Self> {
        match &node.content {
            Content::Text(text) if text == "structured" => Some(Self::Structured),
            Content::Text(text) if text == "content" => Some(Self::Content),
            _ => None,
        }
    }
}

/// How the schemas of a tool are listed over MCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum McpSchemas {
    /// For clients and APIs of models that take only a part of JSON Schema: references inlined, and the input as one
    /// plain object.
    #[default]
    Plain,
    /// As the contract has them.
    Exact,
}

impl McpSchemas {
    fn of(node: &Node) -> Option<Self> {
        match &node.content {
            Content::Text(text) if text == "plain" => Some(Self::Plain),
            Content::Text(text) if text == "exact" => Some(Self::Exact),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Metadata<'n> {
    pub(super) all: Map<String, Value>,
    pub(super) context_schema: Option<&'n Node>,
    pub(super) mcp_name: Option<String>,
    pub(super) mcp_result: McpResult,
    pub(super) mcp_schemas: McpSchemas,
    pub(super) aliases: Vec<String>,
    pub(super) namespace: Option<String>,
    pub(super) search_hint: Option<String>,
    pub(super) requires: GivenRequires,
}

const OURS: &[&str] = &["aliases", "namespace", "search_hint", "requires"];

impl<'n> Metadata<'n> {
    pub(super) fn take(fields: &mut Fields<'n>, report: &mut Report<'_>) -> Metadata<'n> {
        let Some(field) = fields.take("metadata") else {
            return Metadata::default();
        };
        let node = field.node;
        let mut metadata = Metadata {
            all: report.mapping(Some(&field)),
            context_schema: node.get("contextSchema"),
            ..Metadata::default()
        };
        if let Some(name) = node.get("mcp").and_then(|mcp| mcp.get("name")) {
            metadata.mcp_name = plain_name(name, "metadata.mcp.name", report);
            if let Some(text) = &metadata.mcp_name {
                check_shown(name, text, report);
            }
        }
        if let Some(result) = node.get("mcp").and_then(|mcp| mcp.get("result")) {
            match McpResult::of(result) {
                Some(result) => metadata.mcp_result = result,
                None => {
                    let message = format!(
                        "expected `metadata.mcp.result` to be `structured` or `content`, found {}",
                        shown(result)
                    );
                    report.add(&codes::METADATA_INVALID, result.at, message);
                }
            }
        }
        if let Some(schemas) = node.get("mcp").and_then(|mcp| mcp.get("schemas")) {
            match McpSchemas::of(schemas) {
                Some(schemas) => metadata.mcp_schemas = schemas,
                None => {
                    let message = format!(
                        "expected `metadata.mcp.schemas` to be `plain` or `exact`, found {}",
                        shown(schemas)
                    );
                    report.add(&codes::METADATA_INVALID, schemas.at, message);
                }
            }
        }
        if let Some(ours) = node.get("toolward") {
            metadata.read_ours(ours, report);
        }
        metadata
    }

    fn read_ours(&mut self, node: &'n Node, report: &mut Report<'_>) {
        let Content::Mapping(entries) = &node.content else {
            let message = format!(
                "expected `metadata.toolward` to be a mapping, found {}",
                node.kind()
            );
            report.add(&codes::METADATA_INVALID, node.at, message);
            return;
        };
        for entry in entries
            .iter()
            .filter(|entry| !OURS.contains(&entry.key.as_str()))
        {
            let message = format!(
                "expected a key that the host reads, found `metadata.toolward.{}`",
                entry.key
            );
            let near = nearest(&entry.key, OURS.iter().copied());
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            report.add_hinted(&codes::METADATA_UNKNOWN_KEY, entry.key_at, message, hint);
        }
        if let Some(aliases) = node.get("aliases") {
            match &aliases.content {
                Content::List(items) => {
                    let read = items
                        .iter()
                        .filter_map(|item| plain_name(item, "metadata.toolward.aliases", report));
                    self.aliases = read.collect();
                }
                _ => {
                    let message = format!(
                        "expected `metadata.toolward.aliases` to be a list, found {}",
                        aliases.kind()
                    );
                    report.add(&codes::METADATA_INVALID, aliases.at, message);
                }
            }
        }
        self.namespace = node
            .get("namespace")
            .and_then(|node| plain_name(node, "metadata.toolward.namespace", report));
        self.search_hint = node.get("search_hint").and_then(|node| hint(node, report));
        if let Some(requires) = node.get("requires")
            && let field = Field::new("metadata.toolward.requires", requires)
            && let Some(mut inner) = report.read(Fields::of(&field))
        {
            self.requires = requires_parts(&mut inner, Class::required_ours(), report);
            report.unknown(inner);
        }
    }
}

/// Warns of a name that clients are shown otherwise.
fn check_shown(node: &Node, name: &str, report: &mut Report<'_>) {
    let shown = mapped(name);
    if shown != name {
        let message = format!(
            "expected `metadata.mcp.name` in letters, digits, `-` and single `_`, found {name:?}, \
             which is shown as {shown:?}"
        );
        report.add(&codes::MCP_NAME_MAPPED, node.at, message);
    }
}

fn hint(node: &Node, report: &mut Report<'_>) -> Option<String> {
    match &node.content {
        Content::Text(text)
            if (1..=200).contains(&text.chars().count()) && !text.chars().any(is_deceptive) =>
        {
            Some(text.clone())
        }
        _ => {
            let message = format!(
                "expected `metadata.toolward.search_hint` to be one line of at most 200 characters, found {}",
                shown(node)
            );
            report.add(&codes::METADATA_INVALID, node.at, message);
            None
        }
    }
}
