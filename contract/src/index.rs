//! The machine index of a bundle: tools.json, versions 1 and 2. It repeats the contracts, which decide.

mod attachment;
mod generate;
mod parse;
mod transport;

use serde_json::{Map, Value};

use crate::capability::{Capability, CapabilityError, CapabilitySet, Class};
use crate::diagnostic::Position;
use crate::schema::Schema;
use crate::tool::{
    Approval, CostClass, DEFAULT_TIMEOUT, DriverConstraints, McpResult, McpSchemas, Requires, Tool,
    ToolId,
};

pub use transport::Transport;

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
    /// The contract's id; may hold `_` in version 1.
    pub id: ToolId,
    /// The contract's major version, if the document has entries for several of the id. Version 2 only.
    pub major: Option<u64>,
    /// Summary.
    pub description: String,
    /// What carries the tool out.
    pub transport: Transport,
    /// Schema of the input.
    pub input_schema: Schema,
    /// Schema of the result.
    pub result_schema: Schema,
    /// Names for further schema ids.
    pub schema_refs: Map<String, Value>,
    /// What it needs, spelled as families (`net:`, `fs:`, `db:`) in the document.
    pub capabilities: CapabilitySet,
    /// Families that no policy can grant, as version 1 has them: without a scope (`exec`, `model`), or with a scope that
    /// the family does not have. They deny the attachment.
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
    /// The contracts that a version 1 document stands for, where a bundle has no TOOL.md; empty for
    /// version 2. What the document leaves open is read in the stricter way: every capability
    /// counts as a mutation unless the transport is an HTTP request that only reads.
    #[must_use]
    pub fn contracts(&self) -> Vec<Tool> {
        if self.version == 1 {
            self.tools.iter().map(contract).collect()
        } else {
            Vec::new()
        }
    }
}

/// A capability in the spelling of tools.json.
#[must_use]
pub fn family(capability: &Capability) -> String {
    match capability.class().in_tools_json() {
        Some(name) => format!("{name}:{}", capability.scope()),
        None => capability.to_string(),
    }
}

/// Reads a capability in the spelling of tools.json.
///
/// # Errors
/// No colon, an empty part, or a scope that the family does not have.
pub fn parse_family(text: &str) -> Result<Capability, CapabilityError> {
    let short = text
        .split_once(':')
        .and_then(|(name, scope)| Some((Class::of_tools_json(name)?, scope)));
    match short {
        Some((class, scope)) => Capability::of(class.clone(), scope),
        None => Capability::parse(text),
    }
}

/// The contract that an entry of version 1 stands for, for bundles without TOOL.md. Careful where the document is silent.
fn contract(entry: &IndexEntry) -> Tool {
    let only_reads = match &entry.transport {
        Transport::Http { method, .. } => matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS"),
        _ => false,
    };
    let secrets = entry.secrets.iter();
    let secrets = secrets.filter_map(|id| Capability::of(Class::Secret, id).ok());
    // Secrets that are used have a separate field.
    let is_readable =
        |one: &&Capability| one.class().can_be_required() && *one.class() != Class::Secret;
    let read = entry.capabilities.iter().filter(is_readable).cloned();
    // What can't be required is a change with any method: a declaration that
    // this host can't read must block the tool, not be left out.
    let is_change = |one: &&Capability| !only_reads || !is_readable(one);
    let mutates: CapabilitySet = entry
        .capabilities
        .iter()
        .filter(is_change)
        .cloned()
        .collect();
    // No declaration states what a program does, and what can't be granted may be a change.
    let undeclared = !entry.ungrantable.is_empty();
    let changes =
        undeclared || !mutates.is_empty() || matches!(entry.transport, Transport::Exec { .. });
    let approval = match (entry.requires_confirmation, changes) {
        (true, _) => Approval::Always,
        (false, true) => Approval::OnMutate,
        (false, false) => Approval::Auto,
    };
    let extras = [
        ("budget", &entry.budget),
        ("schema_refs", &entry.schema_refs),
    ];
    let extras = extras
        .into_iter()
        .filter(|(_, members)| !members.is_empty());
    let extras = extras.map(|(key, members)| (key.to_owned(), members.clone().into()));
    let runloop: Map<String, Value> = extras.collect();
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
