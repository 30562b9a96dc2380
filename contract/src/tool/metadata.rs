//! What the host reads below `metadata`. Everything else belongs to the author.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::mapped;
use crate::capability::Class;
use crate::codes;
use crate::diagnostic::FileReport;
use crate::shared::{RequiresParts, is_deceptive, plain_name, requires_parts, shown};
use crate::source::{Content, FieldReader, MappingReader, Node, nearest};

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
pub(super) struct ToolMetadata<'n> {
    pub(super) all: Map<String, Value>,
    pub(super) context_schema: Option<&'n Node>,
    pub(super) mcp_name: Option<String>,
    pub(super) mcp_result: McpResult,
    pub(super) mcp_schemas: McpSchemas,
    pub(super) aliases: Vec<String>,
    pub(super) namespace: Option<String>,
    pub(super) search_hint: Option<String>,
    pub(super) requires: RequiresParts,
}

const OURS: &[&str] = &["aliases", "namespace", "search_hint", "requires"];

impl<'n> ToolMetadata<'n> {
    pub(super) fn take(fields: &mut MappingReader<'n>) -> Self {
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
