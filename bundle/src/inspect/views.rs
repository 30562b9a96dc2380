//! Summaries of contracts, actions and drivers.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use toolward_contract::action::Action;
use toolward_contract::capability::CapabilitySet;
use toolward_contract::driver::{Driver, Implements};
use toolward_contract::schema::Schema;
use toolward_contract::tool::{CostClass, Tool};
use toolward_signing::digest::Digest;

use crate::component::Component;
use crate::declared::DeclarationDifference;

/// A summary of a contract.
#[derive(Debug, Clone, Serialize)]
pub struct ToolView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The inputs that its schema names, by name.
    pub inputs: Vec<InputView>,
    /// The outputs that its schema names, by name.
    pub outputs: Vec<InputView>,
    /// The capabilities that it declares.
    pub declares: Vec<String>,
    /// Its approval class.
    pub approval: String,
    /// Its risk level, 0 to 3.
    pub risk_level: u8,
    /// Its time limit in milliseconds.
    pub timeout_ms: u64,
    /// The events that it declares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fires_events: Vec<String>,
    /// Its cost class: `trivial`, `metered` or `expensive`.
    pub cost_class: CostClass,
    /// The budget that a version 1 tools.json gives the tool: `tokens`, `usd`. Calls are not
    /// counted against the budget.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub budget: Map<String, Value>,
}

/// A summary of a property of a contract's input or output.
#[derive(Debug, Clone, Serialize)]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// Its type, if the schema has one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Whether it is required.
    pub required: bool,
}

impl ToolView {
    /// The view of a contract.
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

/// A summary of an action, which sets a minimum for the contracts that implement it.
#[derive(Debug, Clone, Serialize)]
pub struct ActionView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its description; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The changes that a contract must declare at least if it implements the action.
    pub mutates: Vec<String>,
    /// The weakest approval class that such a contract may claim.
    pub approval: String,
    /// The lowest risk level that such a contract may claim, 0 to 3.
    pub risk_level: u8,
    /// The events that it names. This host fires none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fires_events: Vec<String>,
    /// The implementations that its author lists, by kind and reference. The references are never
    /// followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub implementations: Vec<(String, String)>,
}

impl ActionView {
    /// The view of an action.
    pub fn of(action: &Action) -> Self {
        let hints = action.implementations.iter();
        Self {
            id: action.id.clone(),
            version: action.version.to_string(),
            description: action.description.clone().unwrap_or_default(),
            mutates: names(&action.mutates),
            approval: action.approval.to_string(),
            risk_level: action.risk_level,
            fires_events: action.fires_events.clone(),
            implementations: hints
                .map(|hint| (hint.kind.to_string(), hint.reference.clone()))
                .collect(),
        }
    }
}

/// A summary of a driver.
#[derive(Debug, Clone, Serialize)]
pub struct DriverView {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// The contracts that it implements by its declaration, with version ranges.
    pub implements: Vec<String>,
    /// The hosts that it declares.
    pub egress: Vec<String>,
    /// The capabilities that it requires in addition to its contracts' capabilities.
    pub requires: Vec<String>,
    /// The address of the description of its secrets (`auth.ref`), for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_ref: Option<String>,
    /// For a declarative driver, what the host does: the method and URL of a request, with
    /// placeholders, or the program that the host runs outside the sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// The regions that it claims to serve; empty means `global`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub region: Vec<String>,
    /// The policy labels that it claims.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_tags: Vec<String>,
    /// `streaming`, `rate_limit` and `health_check`, as written: no call depends on them.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub unused: Map<String, Value>,
    /// The declared costs of its calls, by contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<CostView>,
    /// The fields that are specific to its kind, if no host runs the kind. The fields of an entry
    /// of `implements` are below the key `implements CONTRACT`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Its component, if it can be read. [`Inspection::problems`](super::Inspection::problems)
    /// shows whether a host accepts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<ComponentView>,
}

/// A driver's cost for the calls of a contract.
#[derive(Debug, Clone, Serialize)]
pub struct CostView {
    /// The contract, as the driver names it.
    pub tool: String,
    /// The cost of a call, if the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units_per_call: Option<f64>,
    /// The currency, if the driver states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The cost class, if the driver replaces the contract's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<CostClass>,
}

impl fmt::Display for CostView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tool)?;
        if let Some(units) = self.units_per_call {
            write!(f, " {units}")?;
        }
        if let Some(currency) = &self.currency {
            write!(f, " {currency}")?;
        }
        match self.class {
            Some(class) => write!(f, ", {class}"),
            None => Ok(()),
        }
    }
}

/// A summary of a component.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentView {
    /// Its file.
    pub path: String,
    /// BLAKE3 of its bytes.
    pub digest: Digest,
    /// Its length in bytes.
    pub size: u64,
    /// Its imports.
    pub imports: Vec<String>,
    /// Its exports.
    pub exports: Vec<String>,
    /// How the imports differ from the declarations.
    pub difference: DeclarationDifference,
}

pub(super) fn driver_view<'t>(
    driver: &Driver,
    component: Option<&Component>,
    tools: impl Iterator<Item = &'t Tool> + Clone,
) -> DriverView {
    let requests = driver.implements.iter();
    let requests = requests.filter_map(|entry| request(driver, entry));
    let auth_ref = driver.auth.as_ref().and_then(|auth| auth.get("ref"));
    DriverView {
        id: driver.id.to_string(),
        version: driver.version.to_string(),
        kind: driver.kind.to_string(),
        implements: driver
            .implements
            .iter()
            .map(|entry| format!("{} {}", entry.named(), entry.version))
            .collect(),
        egress: names(&driver.egress),
        requires: names(&driver.requires.capabilities),
        auth_ref: auth_ref.and_then(Value::as_str).map(str::to_owned),
        requests: requests.collect(),
        region: driver.region.clone(),
        policy_tags: driver.policy_tags.clone(),
        unused: unused(driver),
        costs: costs(driver),
        fields: kind_fields(driver),
        component: component.map(|component| ComponentView {
            path: component.path.clone(),
            digest: component.digest,
            size: component.surface.size,
            imports: component.surface.imports.clone(),
            exports: component
                .surface
                .exports
                .iter()
                .map(|export| export.name.clone())
                .collect(),
            difference: DeclarationDifference::of(&component.surface, driver, tools),
        }),
    }
}

/// The program or the request of an entry as written, without encoding; `None` if it has neither.
fn request(driver: &Driver, entry: &Implements) -> Option<String> {
    if let Some(program) = &entry.program {
        let words = std::iter::once(&program.command).chain(&program.args);
        let words: Vec<&str> = words.map(String::as_str).collect();
        return Some(format!("RUN {}", words.join(" ")));
    }
    let method = entry.http.as_ref()?.method.as_str();
    let origin = driver.origin()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    // A transport of tools.json has one URL.
    if let Some(url) = text(driver.request_defaults.get("url")) {
        return Some(format!("{method} {url}"));
    }
    let written = entry.metadata.get("http");
    let base = text(driver.request_defaults.get("base_url"));
    let base = base.unwrap_or_else(|| format!("https://{origin}"));
    let endpoint = text(written.and_then(|http| http.get("endpoint"))).unwrap_or_default();
    let mut url = format!("{}{endpoint}", base.trim_end_matches('/'));
    let query = written.and_then(|http| http.get("query_template")?.as_object());
    for (name, value) in query.into_iter().flatten() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend([name, "=", value.as_str().unwrap_or_default()]);
    }
    Some(format!("{method} {url}"))
}

/// The fields `streaming`, `rate_limit` and `health_check`, on which no call depends.
fn unused(driver: &Driver) -> Map<String, Value> {
    let health = driver.health_check.clone().map(Value::Object);
    let health = health.map(|health| ("health_check".to_owned(), health));
    driver.hints.clone().into_iter().chain(health).collect()
}

fn kind_fields(driver: &Driver) -> Map<String, Value> {
    let own = driver.kind_fields.clone();
    let entries = driver.implements.iter();
    let entries = entries.filter(|entry| !entry.kind_fields.is_empty());
    let entries = entries.map(|entry| {
        let key = format!("implements {}", entry.named());
        (key, Value::Object(entry.kind_fields.clone()))
    });
    own.into_iter().chain(entries).collect()
}

fn costs(driver: &Driver) -> Vec<CostView> {
    let own = &driver.cost_override;
    let view = |entry: &Implements| {
        let cost = &entry.cost_override;
        let currency = cost.currency.as_ref().or(own.currency.as_ref());
        let view = CostView {
            tool: entry.named().to_owned(),
            units_per_call: cost.cost_units_per_call.or(own.cost_units_per_call),
            currency: currency.cloned(),
            class: cost.cost_class.or(own.cost_class),
        };
        let has_cost = view.units_per_call.is_some() || view.class.is_some();
        has_cost.then_some(view)
    };
    driver.implements.iter().filter_map(view).collect()
}

fn names(capabilities: &CapabilitySet) -> Vec<String> {
    capabilities.iter().map(ToString::to_string).collect()
}
