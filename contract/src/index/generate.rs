//! Writes tools.json from contracts and drivers. Reads no file.

use serde_json::{Map, Value, json};

use super::{Index, IndexEntry, Transport, VERSION, family::family};
use crate::capability::{CapabilitySet, Class};
use crate::diagnostic::Position;
use crate::driver::Driver;
use crate::tool::{Approval, Tool, ToolId};

pub(super) fn index(tools: &[(&Tool, &[&Driver])]) -> Index {
    let mut entries: Vec<IndexEntry> = tools
        .iter()
        .filter_map(|(tool, drivers)| entry(tool, drivers))
        .collect();
    entries.sort_by(|a, b| a.id.cmp(&b.id).then(a.major.cmp(&b.major)));
    let alone: Vec<bool> = entries
        .iter()
        .map(|entry| entries.iter().filter(|other| other.id == entry.id).count() == 1)
        .collect();
    for (entry, alone) in entries.iter_mut().zip(alone) {
        entry.major = entry.major.filter(|_| !alone);
    }
    Index {
        version: VERSION,
        tools: entries,
    }
}

/// The entry of a contract, if one of the drivers serves it.
fn entry(tool: &Tool, drivers: &[&Driver]) -> Option<IndexEntry> {
    let driver = chosen(tool, drivers)?.clone();
    Some(IndexEntry {
        transport: Transport::Component { driver },
        ..without_transport(tool)
    })
}

/// The default driver if it is among those that serve the contract, else the one with the lowest id.
fn chosen<'d>(tool: &Tool, drivers: &[&'d Driver]) -> Option<&'d ToolId> {
    let serving = || {
        drivers.iter().filter(|driver| {
            let permitted = tool.driver_constraints.permits(driver.kind.as_str());
            let implements = driver.implements_tool(tool.id.as_str(), &tool.version);
            permitted && implements.is_some()
        })
    };
    let ids = || serving().map(|driver| &driver.id);
    let default = tool.default_implementation.as_deref();
    ids()
        .find(|id| Some(id.as_str()) == default)
        .or_else(|| ids().min())
}

/// All that an entry repeats of its contract; the transport is a stand-in.
pub(super) fn without_transport(tool: &Tool) -> IndexEntry {
    let read = tool
        .requires
        .capabilities
        .iter()
        .filter(|capability| *capability.class() != Class::Secret);
    let capabilities: CapabilitySet = read.chain(tool.mutates.iter()).cloned().collect();
    let runloop = |key: &str| match tool
        .metadata
        .get("runloop")
        .and_then(|runloop| runloop.get(key))
    {
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    IndexEntry {
        id: tool.id.clone(),
        major: Some(tool.version.major),
        description: tool.description.clone(),
        transport: Transport::Component {
            driver: tool.id.clone(),
        },
        input_schema: tool.inputs.clone(),
        result_schema: tool.outputs.clone(),
        schema_refs: runloop("schema_refs"),
        capabilities,
        ungrantable: Vec::new(),
        secrets: tool.requires.secrets().collect(),
        budget: runloop("budget"),
        requires_confirmation: tool.approval != Approval::Auto,
        tags: tool.tags.clone(),
        at: Position::START,
    }
}

pub(super) fn bytes(index: &Index) -> Vec<u8> {
    let tools: Vec<Value> = index.tools.iter().map(value).collect();
    let document = json!({ "version": index.version, "tools": tools });
    // A Value has text keys only: writing it can't fail.
    let mut bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Optional fields are written only where they say something.
fn value(entry: &IndexEntry) -> Value {
    let transport = match &entry.transport {
        Transport::Exec { command, args } => {
            json!({ "kind": "exec", "command": command, "args": args })
        }
        Transport::Http {
            method,
            url,
            headers,
        } => {
            let headers: Map<String, Value> = headers
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect();
            json!({ "kind": "http", "method": method, "url": url, "headers": headers })
        }
        Transport::Component { driver } => {
            json!({ "kind": "component", "driver": driver.as_str() })
        }
    };
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| {
        members.insert(key.to_owned(), value);
    };
    put("id", entry.id.as_str().into());
    if let Some(major) = entry.major {
        put("major", major.into());
    }
    put("description", entry.description.as_str().into());
    put("transport", transport);
    put("input_schema", entry.input_schema.value().clone());
    put("result_schema", entry.result_schema.value().clone());
    if !entry.schema_refs.is_empty() {
        put("schema_refs", Value::Object(entry.schema_refs.clone()));
    }
    if !entry.capabilities.is_empty() {
        put(
            "capabilities",
            entry.capabilities.iter().map(family).collect(),
        );
    }
    if !entry.secrets.is_empty() {
        put("secrets", entry.secrets.as_slice().into());
    }
    if !entry.budget.is_empty() {
        put("budget", Value::Object(entry.budget.clone()));
    }
    if entry.requires_confirmation {
        put("requires_confirmation", true.into());
    }
    if !entry.tags.is_empty() {
        put("observability", json!({ "tags": entry.tags }));
    }
    Value::Object(members)
}
