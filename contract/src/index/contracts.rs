//! Contracts out of a version 1 document, for bundles without TOOL.md. Careful where the document is silent.

use serde_json::{Map, Value, json};

use super::{IndexEntry, Transport};
use crate::capability::{Capability, CapabilitySet, Class};
use crate::tool::{
    Approval, CostClass, DEFAULT_TIMEOUT, DriverConstraints, McpResult, McpSchemas, Requires, Tool,
};

pub(super) fn contract(entry: &IndexEntry) -> Tool {
    let only_reads = match &entry.transport {
        Transport::Http { method, .. } => matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"),
        _ => false,
    };
    let secrets = entry
        .secrets
        .iter()
        .filter_map(|id| Capability::of(Class::Secret, id).ok());
    // Secrets that are used have a field of their own.
    let readable = |class: &Class| class.can_be_required() && *class != Class::Secret;
    let read = entry
        .capabilities
        .iter()
        .filter(|capability| readable(capability.class()))
        .cloned();
    // What can't be required is a change, whatever the method: a declaration that
    // this host can't read has to block the tool, not to be left out.
    let mutates: CapabilitySet = entry
        .capabilities
        .iter()
        .filter(|capability| !only_reads || !readable(capability.class()))
        .cloned()
        .collect();
    // What a program does is in no declaration, and what can't be granted may be a change.
    let undeclared = !entry.ungrantable.is_empty();
    let changes =
        undeclared || !mutates.is_empty() || matches!(entry.transport, Transport::Exec { .. });
    let approval = match (entry.requires_confirmation, changes) {
        (true, _) => Approval::Always,
        (false, true) => Approval::OnMutate,
        (false, false) => Approval::Auto,
    };
    let mut runloop = Map::new();
    for (key, members) in [
        ("budget", &entry.budget),
        ("schema_refs", &entry.schema_refs),
    ] {
        if !members.is_empty() {
            runloop.insert(key.to_owned(), Value::Object(members.clone()));
        }
    }
    let metadata = match json!({ "runloop": runloop }) {
        Value::Object(metadata) if !runloop.is_empty() => metadata,
        _ => Map::new(),
    };
    Tool {
        id: entry.id.clone(),
        name: entry.id.to_string(),
        description: entry.description.clone(),
        version: semver::Version::new(1, 0, 0),
        inputs: entry.input_schema.clone(),
        outputs: entry.result_schema.clone(),
        context_schema: None,
        idempotent: false,
        risk_level: if changes { 2 } else { 0 },
        mutates,
        requires: Requires {
            capabilities: secrets.chain(read).collect(),
        },
        approval,
        cost_class: CostClass::Trivial,
        timeout: DEFAULT_TIMEOUT,
        retry: None,
        default_implementation: None,
        implements: None,
        driver_constraints: DriverConstraints::default(),
        tags: entry.tags.clone(),
        examples: Vec::new(),
        metadata,
        mcp_name: None,
        mcp_result: McpResult::default(),
        mcp_schemas: McpSchemas::default(),
        aliases: Vec::new(),
        namespace: None,
        search_hint: None,
        fires_events: Vec::new(),
        body: String::new(),
    }
}
