//! The fields of a bundle's documents that make up its surface.

use serde_json::{Map, Value, json};
use toolward_contract::action::{Action, Implementation, ReferenceForm};
use toolward_contract::capability::{Capability, CapabilitySet};
use toolward_contract::driver::{CostOverride, Driver, DriverKind, Implements, Transform};
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_signing::Digest;
use toolward_signing::manifest::FileRole;

use super::Version;
use crate::content::Content;
use crate::documents::role_of;

/// The surface as one JSON document.
pub(super) fn value(content: &Content, version: Version) -> Value {
    let tools = content.tools.iter();
    let tools = tools.map(|entry| (entry.tool.major_id(), tool(&entry.tool, version)));
    let drivers = content.drivers.iter();
    let driver = match version {
        Version::V1 => driver_v1,
        Version::V2 | Version::V3 => driver,
    };
    let key = |driver: &Driver| match version {
        Version::V1 | Version::V2 => driver.id.to_string(),
        Version::V3 => driver.major_id(),
    };
    let drivers = drivers.map(|entry| (key(&entry.driver), driver(&entry.driver, version)));
    let files = |role: FileRole| -> Map<String, Value> {
        let files = content.files.iter();
        let files = files.filter(|(path, _)| role_of(path) == role);
        files
            .map(|(path, bytes)| (path.clone(), json!({ "blake3": Digest::of(bytes) })))
            .collect()
    };
    let actions = content.files.iter();
    let actions = actions.filter(|(path, _)| role_of(path) == FileRole::Action);
    let actions = actions.map(|(path, bytes)| action(path, bytes, version));
    json!({
        "publisher": content.origin.publisher(),
        "tools": tools.collect::<Map<_, _>>(),
        "drivers": drivers.collect::<Map<_, _>>(),
        "actions": actions.collect::<Map<_, _>>(),
        "prompts": files(FileRole::Prompt),
        "resources": files(FileRole::Resource),
    })
}

fn tool(tool: &Tool, version: Version) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputs": tool.inputs.closed(),
        "outputs": tool.outputs.closed(),
        "context": tool.context_schema.as_ref().map(Schema::closed),
        "idempotent": tool.idempotent,
        "mutates": names(&tool.mutates, version),
        "requires": names(&tool.requires.capabilities, version),
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

/// The action that a contract implements. For an action of the same bundle, its id or path is
/// enough, since the surface contains the action. An action of another bundle is recorded with its
/// library.
fn implements(implementation: &Implementation) -> Value {
    let (reference, action) = (&implementation.reference, &implementation.action);
    match (&implementation.library, implementation.form) {
        (None, ReferenceForm::Id | ReferenceForm::Path) => json!(reference),
        (None, ReferenceForm::Inline) => json!({ "inline": reference }),
        (None, ReferenceForm::Registry) => json!({ "reference": reference, "action": action.id }),
        (Some(library), _) => json!({
            "reference": reference,
            "action": action.id,
            "library": library,
            "category": action.category,
            "target_kind": action.effective_target_kind(),
        }),
    }
}

/// How many rows of the driver's limits a surface has as null if the driver does not set them. Rows
/// that were added later are left out, so that a new row changes no surface.
const NULL_LIMITS: usize = 12;

/// The fields of DRIVER.md that a host uses, except the component, timeouts and retries.
fn driver(driver: &Driver, version: Version) -> Value {
    let key = |entry: &Implements| format!("{} {}", entry.named(), entry.version_text);
    let platform = &driver.platform;
    // The timeout of a request is not part of the surface.
    let limits = driver.limits.iter().enumerate();
    let limits = limits.filter(|(row, (name, value))| {
        *name != "http_timeout_ms" && (*row < NULL_LIMITS || value.is_some())
    });
    let limits = limits.map(|(_, (name, value))| (name.to_owned(), json!(value)));
    let mut entries = Map::new();
    for (index, one) in driver.implements.iter().enumerate() {
        let key = match entries.contains_key(&key(one)) {
            true => format!("{} #{index}", key(one)),
            false => key(one),
        };
        entries.insert(key, entry(one));
    }
    json!({
        "name": driver.name,
        "description": driver.description,
        "kind": driver.kind.as_str(),
        // In order, since the first entry that serves a version is used.
        "implements": driver.implements.iter().map(key).collect::<Vec<_>>(),
        "entries": entries,
        "egress": names(&driver.egress, version),
        "requires": names(&driver.requires.capabilities, version),
        "platform": {
            "os": platform.os,
            "arch": platform.arch,
            "min_memory_mb": platform.min_memory_mb,
            "min_disk_mb": platform.min_disk_mb,
        },
        "limits": limits.collect::<Map<_, _>>(),
        "region": driver.region,
        "policy_tags": driver.policy_tags,
        "auth": driver.auth,
        "health_check": driver.health_check,
        "cost": costs(driver),
        "defaults": driver.request_defaults,
        "fields": driver.kind_fields,
        "metadata": driver.metadata,
    })
}

/// How one contract is implemented.
fn entry(entry: &Implements) -> Value {
    let mapping = entry.mapping.iter().map(|(name, source)| {
        let transform = source.transform.map(Transform::name);
        let transform = transform.or(source.unknown_transform.as_deref());
        json!({ "to": name, "from": source.from, "transform": transform })
    });
    json!({
        "drop_inputs": entry.drop_inputs,
        "drop_outputs": entry.drop_outputs,
        "mapping": mapping.collect::<Vec<_>>(),
        "program": entry.program,
        "fields": entry.kind_fields,
        "metadata": entry.metadata,
    })
}

/// The costs of calls, if the driver states them.
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
        Some(json!({ "tool": entry.named(), "version": entry.version_text, "cost": cost }))
    });
    let entries: Vec<Value> = entries.collect();
    let own = value(&driver.cost_override);
    let has_costs = own.is_some() || !entries.is_empty();
    has_costs.then(|| json!({ "driver": own, "entries": entries }))
}

/// An action by its id. A file that doesn't parse is recorded by its path and digest; a verified
/// bundle has no such file.
fn action(path: &str, bytes: &[u8], version: Version) -> (String, Value) {
    let text = String::from_utf8_lossy(bytes);
    match Action::parse(path, &text).value {
        None => (path.to_owned(), json!({ "blake3": Digest::of(bytes) })),
        Some(action) => (
            action.id.clone(),
            json!({
                "name": action.name,
                "description": action.description,
                "mutates": names(&action.mutates, version),
                "requires": names(&action.requires.capabilities, version),
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

/// The names of capabilities. Versions before [`Version::V3`] have hosts as written.
fn names(capabilities: &CapabilitySet, version: Version) -> Vec<String> {
    let name = match version {
        Version::V1 | Version::V2 => Capability::as_written,
        Version::V3 => Capability::to_string,
    };
    capabilities.iter().map(name).collect()
}

/// The fields of a driver in [`Version::V1`].
fn driver_v1(driver: &Driver, version: Version) -> Value {
    let implements = driver.implements.iter();
    let implements = implements.map(|entry| entry.named().to_owned());
    let means = match driver.kind {
        DriverKind::Http => Some(requests(driver)),
        DriverKind::Exec => Some(programs(driver)),
        // The fields of later kinds are in later versions only.
        _ => None,
    };
    let own = Some(&driver.kind_fields).filter(|own| !own.is_empty());
    let optional = [
        (driver.kind.as_str(), means),
        ("cost", costs(driver)),
        ("fields", own.cloned().map(Value::Object)),
    ];
    let mut fields = json!({
        "name": driver.name,
        "description": driver.description,
        "kind": driver.kind.as_str(),
        "implements": implements.collect::<Vec<_>>(),
        "egress": names(&driver.egress, version),
        "requires": names(&driver.requires.capabilities, version),
        "region": driver.region,
        "policy_tags": driver.policy_tags,
        "auth": driver.auth,
    });
    if let Some(fields) = fields.as_object_mut() {
        let present = |(key, value): (&str, Option<Value>)| Some((key.to_owned(), value?));
        fields.extend(optional.into_iter().filter_map(present));
    }
    fields
}

/// The requests and error messages of a declarative driver. Other drivers have code instead.
fn requests(driver: &Driver) -> Value {
    let entries = driver.implements.iter().map(|entry| {
        json!({
            "tool": entry.named(),
            "version": entry.version_text,
            "drop_inputs": entry.drop_inputs,
            "drop_outputs": entry.drop_outputs,
            "mapping": entry.mapping.iter().map(|(name, source)| (name, &source.from)).collect::<Vec<_>>(),
            "request": entry.metadata.get("http"),
        })
    });
    json!({ "defaults": driver.request_defaults, "entries": entries.collect::<Vec<_>>() })
}

/// The programs that a driver runs outside the sandbox.
fn programs(driver: &Driver) -> Value {
    let entries = driver.implements.iter().filter_map(|entry| {
        let program = entry.program.as_ref()?;
        Some(json!({
            "tool": entry.named(),
            "command": program.command,
            "args": program.args,
        }))
    });
    entries.collect()
}
