//! The content of a valid tool definition of AML, for imports.

use serde_json::Value;
use toolward_contract::diagnostic::{Diagnostic, Parsed};
use toolward_contract::front_matter;
use toolward_support::fields::Content;

use super::fields::{Node, find, meaning};
use super::rules::{Behaviour, Lifecycle};

/// A definition without errors. Its texts are trimmed, but may have hidden characters.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) spec_version: String,
    pub(crate) tool_id: String,
    pub(crate) version: String,
    pub(crate) status: Lifecycle,
    pub(crate) behaviour: Behaviour,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) owner: String,
    pub(crate) last_updated: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) input: Value,
    pub(crate) output: Value,
    pub(crate) use_when: Vec<String>,
    pub(crate) avoid_when: Vec<String>,
    pub(crate) side_effects: Vec<String>,
    pub(crate) transport: Option<Transport>,
    pub(crate) error_codes: Vec<StatusMeaning>,
}

/// An entry of `error_codes`: the meaning of an HTTP status. The key is not checked, and may be
/// something other than a status.
#[derive(Debug, Clone)]
pub(crate) struct StatusMeaning {
    pub(crate) key: String,
    pub(crate) meaning: Option<String>,
    pub(crate) agent_action: Option<String>,
}

/// How a tool is called.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    /// The protocol.
    pub(crate) kind: String,
    /// The whole block, as written.
    pub(crate) block: Value,
    pub(crate) base_url: String,
    pub(crate) endpoint: String,
    /// As written, valid or not.
    pub(crate) timeout_ms: Option<Value>,
    /// As written, valid or not.
    pub(crate) max_attempts: Option<Value>,
    /// Statuses that trigger a retry; `None` if the field is missing or null.
    pub(crate) on_status: Option<Vec<String>>,
    pub(crate) credentials: Credentials,
}

/// The `credentials` of a transport.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    pub(crate) scheme: String,
    /// The secret's name at its source.
    pub(crate) name: Option<String>,
    /// The header for the secret, if the definition names one.
    pub(crate) header: Option<String>,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// All findings about the definition, if at least one of them is an error.
    pub(crate) fn read(file: &str, source: &str) -> Result<Self, Vec<Diagnostic>> {
        let found = super::check(file, source);
        if found.iter().any(Diagnostic::is_error) {
            return Err(found);
        }
        let Parsed { value, diagnostics } = front_matter::read(file, source);
        // Doesn't fail: `check` above reports a source that can't be read.
        let node = value.as_ref().ok_or(diagnostics)?;
        Self::of(node).ok_or(found)
    }

    fn of(node: &Node) -> Option<Self> {
        let text = |way: &str| text(node, way);
        let all = |way: &str| find(node, way).map(texts).unwrap_or_default();
        Some(Self {
            spec_version: text("spec_version")?,
            tool_id: text("tool_id")?,
            version: text("version")?,
            status: meaning(Lifecycle::ALL, Lifecycle::as_str, &text("status")?)?,
            behaviour: meaning(Behaviour::ALL, Behaviour::as_str, &text("type")?)?,
            name: text("meta.name")?,
            description: text("meta.description")?,
            owner: text("meta.owner")?,
            last_updated: text("meta.last_updated"),
            tags: all("meta.tags"),
            input: find(node, "interface.input")?.to_value(),
            output: find(node, "interface.output")?.to_value(),
            use_when: all("use_guidance.use_when"),
            avoid_when: all("use_guidance.avoid_when"),
            side_effects: all("use_guidance.side_effects"),
            transport: node.get("transport").and_then(Transport::of),
            error_codes: node.get("error_codes").map(error_codes).unwrap_or_default(),
        })
    }
}

impl Transport {
    fn of(node: &Node) -> Option<Self> {
        let text = |way: &str| text(node, way);
        let given = |way: &str| find(node, way).filter(|found| !found.is_null());
        Some(Self {
            kind: text("type")?,
            block: node.to_value(),
            base_url: text("base_url").unwrap_or_default(),
            endpoint: text("endpoint").unwrap_or_default(),
            timeout_ms: given("timeout_ms").map(Node::to_value),
            max_attempts: given("retry_policy.max_attempts").map(Node::to_value),
            on_status: given("retry_policy.on_status").map(texts),
            credentials: Credentials {
                scheme: text("credentials.scheme")?,
                name: text("credentials.name").or_else(|| text("credentials.secret_id")),
                header: text("credentials.header").or_else(|| text("credentials.header_name")),
            },
        })
    }
}

fn error_codes(node: &Node) -> Vec<StatusMeaning> {
    let Content::Mapping(entries) = &node.content else {
        return Vec::new();
    };
    let meanings = entries.iter().map(|entry| StatusMeaning {
        key: entry.key.clone(),
        meaning: text(&entry.value, "meaning"),
        agent_action: text(&entry.value, "agent_action"),
    });
    meanings.collect()
}

/// Returns the trimmed text at a path, if it is not empty.
fn text(node: &Node, way: &str) -> Option<String> {
    match &find(node, way)?.content {
        Content::Text(text) | Content::Other(_, text) if !text.trim().is_empty() => {
            Some(text.trim().to_owned())
        }
        _ => None,
    }
}

/// Returns the texts of a list. A single text counts as a list of one, and a number as the text of
/// its digits.
fn texts(node: &Node) -> Vec<String> {
    let one = |node: &Node| match &node.content {
        Content::Text(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Content::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match &node.content {
        Content::List(items) => items.iter().filter_map(one).collect(),
        _ => one(node).into_iter().collect(),
    }
}
