//! The machine index of a bundle: tools.json, versions 1 and 2. It repeats the contracts, and the
//! contracts take precedence.

mod attachment;
mod parse;

pub use parse::Transport;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::capability::{Capability, CapabilityError, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Diagnostic, FileReport, Position};
use crate::driver::Driver;
use crate::schema::Schema;
use crate::tool::{
    Approval, CostClass, DEFAULT_TIMEOUT, DriverConstraints, McpResult, McpSchemas, Requires, Tool,
    ToolId,
};

/// The version that `pack` writes.
pub const VERSION: u32 = 2;

/// A validated tools.json.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Index {
    /// 1 or 2.
    pub version: u32,
    /// The entries in order.
    pub tools: Vec<IndexEntry>,
}

/// One tool in the index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexEntry {
    /// The contract's id; may contain `_` in version 1.
    pub id: ToolId,
    /// The contract's major version, if the document has entries for several major versions of the
    /// id. Only in version 2.
    pub major: Option<u64>,
    /// Summary.
    pub description: String,
    /// The transport that carries out the tool.
    pub transport: Transport,
    /// Schema of the input.
    pub input_schema: Schema,
    /// Schema of the result.
    pub result_schema: Schema,
    /// Names that the entry gives to schemas of its bundle, each with the schema's id.
    pub schema_refs: Map<String, Value>,
    /// The capabilities that it needs, spelled as families (`net:`, `fs:`, `db:`) in the document.
    pub capabilities: CapabilitySet,
    /// Families of version 1 that no policy can grant: without a scope (`exec`, `model`), or with a
    /// scope that the family does not have. If there are any, the transport is denied.
    pub ungrantable: Vec<String>,
    /// Ids of secrets that it needs.
    pub secrets: Vec<String>,
    /// Budget hints: `tokens`, `usd`.
    pub budget: Map<String, Value>,
    /// Whether a person confirms each call.
    pub requires_confirmation: bool,
    /// Tags for traces.
    pub tags: Vec<String>,
    /// The place of the entry.
    pub at: Position,
}

impl Index {
    /// The contracts of a version 1 document, for a bundle without TOOL.md; empty for version 2.
    /// Version 1 leaves points open, which are read in the stricter way: every capability counts as
    /// a mutation. The exception is a capability that contracts can require, if the transport is an
    /// HTTP request that only reads.
    pub fn contracts(&self) -> Vec<Tool> {
        if self.version == 1 {
            self.tools.iter().map(contract).collect()
        } else {
            Vec::new()
        }
    }

    /// Makes the version 2 index of contracts and their drivers, sorted by id. Contracts that no
    /// driver serves are left out.
    pub fn generate(tools: &[(&Tool, &[&Driver])]) -> Index {
        let mut entries: Vec<IndexEntry> = tools
            .iter()
            .filter_map(|(tool, drivers)| entry(tool, drivers))
            .collect();
        entries.sort_by(|a, b| a.id.cmp(&b.id).then(a.major.cmp(&b.major)));
        let ids: Vec<ToolId> = entries.iter().map(|entry| entry.id.clone()).collect();
        for entry in &mut entries {
            let is_alone = ids.iter().filter(|id| **id == entry.id).count() == 1;
            entry.major = entry.major.filter(|_| !is_alone);
        }
        Index {
            version: VERSION,
            tools: entries,
        }
    }

    /// Writes the document: indented JSON with a final line feed, the same bytes for the same
    /// index.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tools: Vec<Value> = self.tools.iter().map(entry_value).collect();
        let document = json!({ "version": self.version, "tools": tools });
        // Writing a `Value` can't fail, since all its keys are text.
        let mut bytes = serde_json::to_vec_pretty(&document).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Compares the index with contracts and drivers, by value and field by field. A version 1
    /// entry without a contract is not compared, and neither are transports of version 1.
    ///
    /// # Errors
    /// A diagnostic for each difference, with the field and both values.
    pub fn agrees(&self, file: &str, tools: &[(&Tool, &[&Driver])]) -> Result<(), Vec<Diagnostic>> {
        let report = FileReport::new(file);
        if self.version == 1 {
            // Transports of version 1 are not drivers, so only the contract can be compared.
            for (tool, _) in tools {
                if let Some(entry) = find(self, tool.id.as_str(), None) {
                    compare(entry, &without_transport(tool), false, &report);
                }
            }
        } else {
            let expected = Index::generate(tools);
            for wanted in &expected.tools {
                let id = &wanted.id;
                match find(self, id.as_str(), wanted.major) {
                    Some(entry) => compare(entry, wanted, true, &report),
                    None => {
                        let message = format!(
                            "expected an entry for {id}, which has a driver in this bundle, found none"
                        );
                        report.add(&codes::INDEX_ENTRY_MISSING, Position::START, message);
                    }
                }
            }
            for entry in &self.tools {
                if find(&expected, entry.id.as_str(), entry.major).is_none() {
                    let message = format!(
                        "expected only contracts with a driver in this bundle, found an entry for {}",
                        entry.id
                    );
                    report.add(&codes::INDEX_ENTRY_EXTRA, entry.at, message);
                }
            }
        }
        let refused = report.has_errors();
        let diagnostics = report.finish(Some(())).diagnostics;
        if refused { Err(diagnostics) } else { Ok(()) }
    }
}

/// A capability in the spelling of tools.json.
pub fn family(capability: &Capability) -> String {
    match capability.class().in_tools_json() {
        Some(name) => format!("{name}:{}", capability.scope()),
        None => capability.to_string(),
    }
}

/// Reads a capability in the spelling of tools.json.
///
/// # Errors
/// The colon is missing, a part is empty, or the scope is not valid for the family.
pub fn parse_family(text: &str) -> Result<Capability, CapabilityError> {
    let short = text
        .split_once(':')
        .and_then(|(name, scope)| Some((Class::of_tools_json(name)?, scope)));
    match short {
        Some((class, scope)) => Capability::of(class.clone(), scope),
        None => Capability::parse(text),
    }
}

/// The contract of a version 1 entry, for bundles without TOOL.md. Missing statements are read in
/// the stricter way.
fn contract(entry: &IndexEntry) -> Tool {
    let only_reads = match &entry.transport {
        Transport::Http { method, .. } => matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"),
        _ => false,
    };
    let secrets = entry.secrets.iter();
    let secrets = secrets.filter_map(|id| Capability::of(Class::Secret, id).ok());
    // Secrets have their own field in tools.json.
    let is_readable =
        |one: &&Capability| one.class().can_be_required() && *one.class() != Class::Secret;
    let read = entry.capabilities.iter().filter(is_readable).cloned();
    // A capability that can't be required counts as a change with any method: a declaration that
    // this host can't read must block the tool, not be ignored.
    let is_change = |one: &&Capability| !only_reads || !is_readable(one);
    let mutates: CapabilitySet = entry
        .capabilities
        .iter()
        .filter(is_change)
        .cloned()
        .collect();
    // A program counts as a change, since no declaration covers everything that it does. An
    // ungrantable family counts as a change, since it may be one.
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
            runloop.insert(key.to_owned(), members.clone().into());
        }
    }
    let mut metadata = Map::new();
    if !runloop.is_empty() {
        metadata.insert("runloop".to_owned(), runloop.into());
    }
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

/// The entry of a contract, if one of the drivers serves it.
fn entry(tool: &Tool, drivers: &[&Driver]) -> Option<IndexEntry> {
    let driver = chosen(tool, drivers)?.clone();
    Some(IndexEntry {
        transport: Transport::Component { driver },
        ..without_transport(tool)
    })
}

/// The default driver if it serves the contract, otherwise the serving driver with the lowest id.
fn chosen<'d>(tool: &Tool, drivers: &[&'d Driver]) -> Option<&'d ToolId> {
    let serves = |driver: &&&Driver| {
        tool.driver_constraints.permits(driver.kind.as_str())
            && driver
                .implements_tool(tool.id.as_str(), &tool.version)
                .is_some()
    };
    let default = tool.default_implementation.as_deref();
    let ids = drivers.iter().filter(serves).map(|driver| &driver.id);
    ids.min_by_key(|id| (Some(id.as_str()) != default, *id))
}

/// The entry with all fields from its contract, and a placeholder for the transport.
fn without_transport(tool: &Tool) -> IndexEntry {
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

/// The entry as JSON. Empty optional fields are left out.
fn entry_value(entry: &IndexEntry) -> Value {
    let transport = match &entry.transport {
        Transport::Exec { command, args } => {
            json!({ "kind": "exec", "command": command, "args": args })
        }
        Transport::Http {
            method,
            url,
            headers,
        } => {
            let headers = headers
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)));
            let headers: Map<String, Value> = headers.collect();
            json!({ "kind": "http", "method": method, "url": url, "headers": headers })
        }
        Transport::Component { driver } => {
            json!({ "kind": "component", "driver": driver.as_str() })
        }
    };
    let families: Vec<String> = entry.capabilities.iter().map(family).collect();
    let observability = (!entry.tags.is_empty()).then(|| json!({ "tags": entry.tags }));
    let mut value = json!({
        "id": entry.id.as_str(),
        "major": entry.major,
        "description": entry.description,
        "transport": transport,
        "input_schema": entry.input_schema.value(),
        "result_schema": entry.result_schema.value(),
        "schema_refs": entry.schema_refs,
        "capabilities": families,
        "secrets": entry.secrets,
        "budget": entry.budget,
        "requires_confirmation": entry.requires_confirmation,
        "observability": observability,
    });
    let is_written = |key: &str, value: &Value| {
        let is_empty = [json!(null), json!(false), json!([]), json!({})].contains(value);
        !is_empty || key.ends_with("_schema")
    };
    if let Value::Object(members) = &mut value {
        members.retain(|key, value| is_written(key, value));
    }
    value
}

fn find<'i>(index: &'i Index, id: &str, major: Option<u64>) -> Option<&'i IndexEntry> {
    let mut entries = index.tools.iter();
    entries.find(|entry| entry.id == id && entry.major == major)
}

fn compare(entry: &IndexEntry, wanted: &IndexEntry, transport: bool, report: &FileReport<'_>) {
    let pairs = compared(entry).into_iter().zip(compared(wanted));
    for ((field, found), (_, expected)) in pairs {
        if found != expected && (transport || field != "transport") {
            let (expected, found) = contrast(&expected.to_string(), &found.to_string());
            let message = format!(
                "expected `{field}` of {} to be {expected}, as contract and drivers say, found {found}",
                entry.id,
            );
            report.add(&codes::INDEX_DISAGREES, entry.at, message);
        }
    }
}

/// The compared fields of an entry, in a form in which the order of lists does not matter.
fn compared(entry: &IndexEntry) -> [(&'static str, Value); 10] {
    [
        ("description", json!(entry.description)),
        ("input_schema", entry.input_schema.value().clone()),
        ("result_schema", entry.result_schema.value().clone()),
        (
            "capabilities",
            sorted(entry.capabilities.iter().map(family)),
        ),
        ("secrets", sorted(entry.secrets.iter().cloned())),
        ("requires_confirmation", json!(entry.requires_confirmation)),
        ("budget", json!(entry.budget)),
        ("schema_refs", json!(entry.schema_refs)),
        ("observability.tags", sorted(entry.tags.iter().cloned())),
        ("transport", json!(transport(&entry.transport))),
    ]
}

fn sorted(names: impl Iterator<Item = String>) -> Value {
    json!(names.collect::<BTreeSet<_>>())
}

fn transport(transport: &Transport) -> String {
    match transport {
        Transport::Component { driver } => format!("component {driver}"),
        Transport::Exec { command, .. } => format!("exec {command}"),
        Transport::Http { method, url, .. } => format!("http {method} {url}"),
    }
}

/// Both texts; a long text is cut to the part around their first difference.
fn contrast(expected: &str, found: &str) -> (String, String) {
    const BEFORE: usize = 20;
    let pairs = expected.chars().zip(found.chars());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let skipped = common.saturating_sub(BEFORE);
    (excerpt(expected, skipped), excerpt(found, skipped))
}

fn excerpt(text: &str, skipped: usize) -> String {
    const LENGTH: usize = 120;
    let length = text.chars().count();
    if length <= LENGTH {
        return text.to_owned();
    }
    let before = if skipped > 0 { "..." } else { "" };
    let after = if length > skipped + LENGTH { "..." } else { "" };
    let shown = text.chars().skip(skipped).take(LENGTH);
    before.chars().chain(shown).chain(after.chars()).collect()
}
