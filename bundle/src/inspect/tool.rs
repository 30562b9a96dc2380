//! Contracts in short.

use serde::Serialize;
use serde_json::{Map, Value};
use toolward_contract::schema::Schema;
use toolward_contract::tool::{CostClass, Tool};

use super::names;

/// A contract in short.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub name: String,
    /// What it says of itself.
    pub description: String,
    /// The inputs that its schema names, by name.
    pub inputs: Vec<InputView>,
    /// What its output has, likewise.
    pub outputs: Vec<InputView>,
    /// The capabilities that it declares.
    pub declares: Vec<String>,
    /// Its approval class.
    pub approval: String,
    /// Its risk level, 0 to 3.
    pub risk_level: u8,
    /// Its time limit in milliseconds.
    pub timeout_ms: u64,
    /// The events that it says it fires.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fires_events: Vec<String>,
    /// Its cost class: `trivial`, `metered` or `expensive`.
    pub cost_class: CostClass,
    /// The budget that a version 1 tools.json gives it: `tokens`, `usd`. Nothing counts it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub budget: Map<String, Value>,
}

/// A property of a contract's input or output in short: what the schema says at first sight.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// Its type, where the schema gives one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether no value goes without it.
    pub required: bool,
}

impl ToolView {
    /// A contract in short.
    #[must_use]
    pub fn of(tool: &Tool) -> Self {
        Self {
            id: tool.id.to_string(),
            version: tool.version.to_string(),
            name: tool.name.clone(),
            description: tool.description.clone(),
            inputs: properties(&tool.inputs),
            outputs: properties(&tool.outputs),
            declares: names(&tool.declaration()),
            approval: tool.approval.to_string(),
            risk_level: tool.risk_level,
            timeout_ms: u64::try_from(tool.timeout.as_millis()).unwrap_or(u64::MAX),
            fires_events: tool.fires_events.clone(),
            cost_class: tool.cost_class,
            budget: tool.budget(),
        }
    }
}

fn properties(schema: &Schema) -> Vec<InputView> {
    let shape = schema.shape();
    let properties = schema.value().get("properties");
    let property = |name: &str| properties?.get(name)?.get("type");
    let kind = |name: &str| match property(name)? {
        Value::String(kind) => Some(kind.clone()),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            Some(kinds.join(" or "))
        }
        _ => None,
    };
    let view = |name: &String| InputView {
        name: name.clone(),
        kind: kind(name),
        required: shape.required.contains(name),
    };
    shape.names.iter().map(view).collect()
}
