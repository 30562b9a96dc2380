//! The content of a valid definition, for imports.

use serde_json::Value;
use toolward_contract::diagnostic::{Diagnostic, Parsed};
use toolward_contract::front_matter;
use toolward_support::fields::Content;

use super::fields::{Node, meaning};
use super::rules::{BEHAVIOURS, Behaviour, Lifecycle, STATES};

/// A definition that breaks no hard rule. Its texts are as the author wrote them.
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
    /// Each key and what it means. A key need not be an HTTP status.
    pub(crate) error_codes: Vec<(String, StatusMeaning)>,
}

/// What a status means.
#[derive(Debug, Clone)]
pub(crate) struct StatusMeaning {
    pub(crate) meaning: Option<String>,
    pub(crate) agent_action: Option<String>,
}

/// How a tool is called.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    /// The protocol.
    pub(crate) kind: String,
    /// All of it, as written.
    pub(crate) block: Value,
    pub(crate) base_url: String,
    pub(crate) endpoint: String,
    /// As written, valid or not.
    pub(crate) timeout_ms: Option<Value>,
    /// As written, valid or not.
    pub(crate) max_attempts: Option<Value>,
    /// Statuses that trigger a retry; `None` if it lists none.
    pub(crate) on_status: Option<Vec<String>>,
    pub(crate) credentials: Credentials,
}

/// How a caller proves who it is.
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
        let (meta, interface) = (node.get("meta")?, node.get("interface")?);
        let guidance = node.get("use_guidance")?;
        let schema = |key: &str| interface.get(key).map(Node::to_value);
        let guided = |key: &str| guidance.get(key).map(texts).unwrap_or_default();
        Some(Self {
            spec_version: text(node, "spec_version")?,
            tool_id: text(node, "tool_id")?,
            version: text(node, "version")?,
            status: meaning(&STATES, &text(node, "status")?)?,
            behaviour: meaning(&BEHAVIOURS, &text(node, "type")?)?,
            name: text(meta, "name")?,
            description: text(meta, "description")?,
            owner: text(meta, "owner")?,
            last_updated: text(meta, "last_updated"),
            tags: meta.get("tags").map(texts).unwrap_or_default(),
            input: schema("input")?,
            output: schema("output")?,
            use_when: guided("use_when"),
            avoid_when: guided("avoid_when"),
            side_effects: guided("side_effects"),
            transport: node.get("transport").and_then(Transport::of),
            error_codes: node.get("error_codes").map(error_codes).unwrap_or_default(),
        })
    }
}

impl Transport {
    fn of(node: &Node) -> Option<Self> {
        let retries = node.get("retry_policy");
        let retry = |key: &str| retries.and_then(|retries| given(retries, key));
        let credentials = node.get("credentials")?;
        let one_of = |keys: &[&str]| keys.iter().find_map(|key| text(credentials, key));
        Some(Self {
            kind: text(node, "type")?,
            block: node.to_value(),
            base_url: text(node, "base_url").unwrap_or_default(),
            endpoint: text(node, "endpoint").unwrap_or_default(),
            timeout_ms: given(node, "timeout_ms").map(Node::to_value),
            max_attempts: retry("max_attempts").map(Node::to_value),
            on_status: retry("on_status").map(texts),
            credentials: Credentials {
                scheme: text(credentials, "scheme")?,
                name: one_of(&["name", "secret_id"]),
                header: one_of(&["header", "header_name"]),
            },
        })
    }
}

fn error_codes(node: &Node) -> Vec<(String, StatusMeaning)> {
    let Content::Mapping(entries) = &node.content else {
        return Vec::new();
    };
    let one = |entry: &toolward_support::fields::MappingEntry<_>| {
        let code = StatusMeaning {
            meaning: text(&entry.value, "meaning"),
            agent_action: text(&entry.value, "agent_action"),
        };
        (entry.key.clone(), code)
    };
    entries.iter().map(one).collect()
}

/// A value that is not null.
fn given<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|found| !found.is_null())
}

/// A text that is not empty.
fn text(node: &Node, key: &str) -> Option<String> {
    match &node.get(key)?.content {
        Content::Text(text) | Content::Other(_, text) if !text.trim().is_empty() => {
            Some(text.trim().to_owned())
        }
        _ => None,
    }
}

/// One text or a list of texts; a number becomes its digits.
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
