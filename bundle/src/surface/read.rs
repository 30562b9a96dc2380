//! Which fields of a bundle's documents make up its surface.

use serde_json::{Map, Value, json};
use toolward_contract::action::{Action, Form, Implementation};
use toolward_contract::capability::CapabilitySet;
use toolward_contract::driver::{CostOverride, Driver, DriverKind};
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_signing::Digest;
use toolward_signing::manifest::FileRole;

use crate::content::Content;
use crate::documents::role_of;

/// The surface as one JSON document.
pub(super) fn value(content: &Content) -> Value {
    let tools = content.tools.iter();
    let tools = tools.map(|entry| (entry.tool.major_id(), tool(&entry.tool)));
    let drivers = content.drivers.iter();
    let drivers = drivers.map(|entry| (entry.driver.id.to_string(), driver(&entry.driver)));
    let files = |role: FileRole| -> Map<String, Value> {
        let files = content.files.iter();
        let files = files.filter(|(path, _)| role_of(path) == role);
        files
            .map(|(path, bytes)| (path.clone(), json!({ "blake3": Digest::of(bytes) })))
            .collect()
    };
    let actions = content.files.iter();
    let actions = actions.filter(|(path, _)| role_of(path) == FileRole::Action);
    let actions = actions.map(|(path, bytes)| action(path, bytes));
    json!({
        "publisher": content.origin.publisher(),
        "tools": tools.collect::<Map<_, _>>(),
        "drivers": drivers.collect::<Map<_, _>>(),
        "actions": actions.collect::<Map<_, _>>(),
        "prompts": files(FileRole::Prompt),
        "resources": files(FileRole::Resource),
    })
}

fn tool(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputs": tool.inputs.closed(),
        "outputs": tool.outputs.closed(),
        "context": tool.context_schema.as_ref().map(Schema::closed),
        "idempotent": tool.idempotent,
        "mutates": names(&tool.mutates),
        "requires": names(&tool.requires.capabilities),
        "approval": tool.approval,
        "risk_level": tool.risk_level,
        "cost_class": tool.cost_class,
        "default_implementation": tool.default_implementation,
        "implements": tool.implements.as_ref().map(implements),
        "driver_constraints": tool.driver_constraints,
        "tags": tool.tags,
        "mcp_name": tool.mcp_name,
        "aliases": tool.aliases,
        "namespace": tool.namespace,
        "search_hint": tool.search_hint,
        "fires_events": tool.fires_events,
        "metadata": tool.metadata,
    })
}

/// What a contract implements. An action that is known by its id is named by it, and one at a path by that, since it
/// is a part of the surface itself; of any other it has to show which one it is, and whose.
fn implements(implementation: &Implementation) -> Value {
    let (reference, action) = (&implementation.reference, &implementation.action);
    match (&implementation.library, implementation.form) {
        (None, Form::Id | Form::Path) => json!(reference),
        (None, Form::Inline) => json!({ "inline": reference }),
        (None, Form::Registry) => json!({ "reference": reference, "action": action.id }),
        (Some(library), _) => json!({
            "reference": reference,
            "action": action.id,
            "library": library,
            "category": action.category,
            "target_kind": action.effective_target_kind(),
        }),
    }
}

fn driver(driver: &Driver) -> Value {
    let implements = driver.implements.iter();
    let implements = implements.map(|entry| entry.tool_id.to_string());
    let means = match driver.kind {
        DriverKind::Http => Some(("http".to_owned(), requests(driver))),
        DriverKind::Exec => Some(("exec".to_owned(), programs(driver))),
        DriverKind::Component | DriverKind::Form | DriverKind::Other(_) => None,
    };
    let fields = json!({
        "name": driver.name,
        "description": driver.description,
        "kind": driver.kind.as_str(),
        "implements": implements.collect::<Vec<_>>(),
        "egress": names(&driver.egress),
        "requires": names(&driver.requires.capabilities),
        "region": driver.region,
        "policy_tags": driver.policy_tags,
        "auth": driver.auth,
    });
    let fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let cost = costs(driver).map(|cost| ("cost".to_owned(), cost));
    let own = !driver.kind_fields.is_empty();
    let own = own.then(|| {
        (
            "fields".to_owned(),
            Value::Object(driver.kind_fields.clone()),
        )
    });
    let more = means.into_iter().chain(cost).chain(own);
    Value::Object(fields.into_iter().chain(more).collect())
}

/// What calls cost, where the driver says so.
fn costs(driver: &Driver) -> Option<Value> {
    let value = |cost: &CostOverride| {
        (*cost != CostOverride::default()).then(|| {
            json!({
                "units_per_call": cost.cost_units_per_call,
                "currency": cost.currency,
                "class": cost.cost_class,
            })
        })
    };
    let entries = driver.implements.iter().filter_map(|entry| {
        let cost = value(&entry.cost_override)?;
        Some(json!({ "tool": entry.tool_id, "version": entry.version_text, "cost": cost }))
    });
    let entries: Vec<Value> = entries.collect();
    let own = value(&driver.cost_override);
    let says = own.is_some() || !entries.is_empty();
    says.then(|| json!({ "driver": own, "entries": entries }))
}

/// What a declarative driver sends where, and what its errors say. Other drivers have code instead.
fn requests(driver: &Driver) -> Value {
    let entries = driver.implements.iter().map(|entry| {
        json!({
            "tool": entry.tool_id,
            "version": entry.version_text,
            "drop_inputs": entry.drop_inputs,
            "drop_outputs": entry.drop_outputs,
            "mapping": entry.mapping.iter().map(|(name, source)| (name, &source.from)).collect::<Vec<_>>(),
            "request": entry.metadata.get("http"),
        })
    });
    json!({ "defaults": driver.request_defaults, "entries": entries.collect::<Vec<_>>() })
}

/// What a driver has run outside the sandbox.
fn programs(driver: &Driver) -> Value {
    let entries = driver.implements.iter().filter_map(|entry| {
        let program = entry.program.as_ref()?;
        Some(json!({
            "tool": entry.tool_id,
            "command": program.command,
            "args": program.args,
        }))
    });
    entries.collect()
}

/// A verified bundle's actions parse; one that doesn't counts by its bytes.
fn action(path: &str, bytes: &[u8]) -> (String, Value) {
    let text = String::from_utf8_lossy(bytes);
    match Action::parse(path, &text).value {
        None => (path.to_owned(), json!({ "blake3": Digest::of(bytes) })),
        Some(action) => (
            action.id.clone(),
            json!({
                "name": action.name,
                "description": action.description,
                "mutates": names(&action.mutates),
                "requires": names(&action.requires.capabilities),
                "approval": action.approval,
                "risk_level": action.risk_level,
                "category": action.category,
                "target_kind": action.target_kind,
                "fires_events": action.fires_events,
                "metadata": action.metadata,
            }),
        ),
    }
}

fn names(capabilities: &CapabilitySet) -> Vec<String> {
    capabilities.iter().map(ToString::to_string).collect()
}
