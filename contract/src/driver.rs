//! Drivers: DRIVER.md (AIP-30). What carries contracts out, and on what terms; no code is read here.

mod check;
mod component;
mod exec;
mod foreign;
mod http;
mod mapping;
mod parse;
mod render;
mod requirements;
mod response;
mod template;
mod without_effect;

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::capability::{CapabilitySet, HostPattern};
use crate::diagnostic::Position;
use crate::tool::{Requires, Retry, Tool, ToolId};

pub(crate) use check::unplaced;
pub use component::{BytesForm, ResultForm, WitArguments, WitCall, World};
pub use exec::Program;
pub(crate) use exec::is_absolute;
pub use foreign::{ForeignError, ForeignResult, ForeignWorld, ForeignWorldError, domain_code};
pub(crate) use http::header_refusal;
pub use http::{Endpoint, HttpCall, Method, StatusError};
pub use mapping::{InputMapping, MappedInput, MappingError, Transform};
pub use render::{HeaderPiece, RenderError, RenderErrorKind, Rendered, Values};
pub use requirements::{Cost, CostOverride, Platform};
pub use response::{ExtractError, JsonPath, OutputPlace};
pub(crate) use template::PlaceholderPlaces;
pub use template::{BodyTemplate, SlotSource, Template, TemplatePart, TemplateSlot};

/// The id of a driver: the same form as a contract's.
pub type DriverId = ToolId;

/// What kind of thing a driver is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DriverKind {
    /// A WebAssembly component.
    Component,
    /// Requests that the host makes itself, described in DRIVER.md.
    Http,
    /// A form that a person fills in: the contract's `outputs`.
    Form,
    /// A program of the host's machine, named by a version 1 `tools.json`; no DRIVER.md has this kind.
    Exec,
    /// Known to AIP-30, not run by this host: `cli`, `mcp`, `sdk`, `builtin`.
    Other(String),
}

impl DriverKind {
    /// Whether this host runs drivers of it.
    #[must_use]
    pub fn is_run(&self) -> bool {
        !matches!(self, DriverKind::Other(_))
    }

    /// The kinds that AIP-30 has and this host does not run.
    pub(crate) const OTHER: &[&str] = &["cli", "mcp", "sdk", "builtin"];

    /// The word in DRIVER.md or `tools.json`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            DriverKind::Component => "component",
            DriverKind::Http => "http",
            DriverKind::Form => "form",
            DriverKind::Exec => "exec",
            DriverKind::Other(name) => name,
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A validated driver declaration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Driver {
    /// Machine identifier.
    pub id: DriverId,
    /// Display name, 1 to 80 characters.
    pub name: String,
    /// Purpose; at most 2000 characters.
    pub description: String,
    /// Version of the driver.
    pub version: semver::Version,
    /// What kind of thing it is.
    pub kind: DriverKind,
    /// The `.wasm` file next to DRIVER.md; present exactly for [`DriverKind::Component`].
    pub component: Option<String>,
    /// The contracts that it implements; at least one.
    pub implements: Vec<Implements>,
    /// `network.egress`: the part of the contract's network that it uses. Empty: none.
    pub egress: CapabilitySet,
    /// Whether `network.egress` is written, if only as an empty list: its component may import HTTP.
    pub declares_network: bool,
    /// What it needs beyond the contract. Needs a policy rule that names the driver.
    pub requires: Requires,
    /// Where it can run.
    pub platform: Platform,
    /// What its calls cost, unless an entry states another cost.
    pub cost_override: CostOverride,
    /// Narrows the contract's `timeout_ms`, never widens it.
    pub timeout_override: Option<Duration>,
    /// Replaces the contract's retry policy.
    pub retry_override: Option<Retry>,
    /// What it asks of the sandbox; the operator's maxima hold.
    pub limits: DriverLimits,
    /// Regions that it serves, as its publisher claims; empty: `global`.
    pub region: Vec<String>,
    /// Labels that policies match, as its publisher claims.
    pub policy_tags: Vec<String>,
    /// What holds for all requests of a driver of `kind: http`, as written: `base_url`, `default_headers`,
    /// `default_method`; of a transport in tools.json, `method`, `url` and `headers`.
    pub request_defaults: Map<String, Value>,
    /// `streaming` and `rate_limit` of a driver of `kind: http`, as written: no call depends on them.
    pub hints: Map<String, Value>,
    /// `auth`, as written.
    pub auth: Option<Map<String, Value>>,
    /// `health_check`, as written.
    pub health_check: Option<Map<String, Value>>,
    /// The fields that only drivers of its kind have, as written, where no host runs the kind.
    pub kind_fields: Map<String, Value>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
    /// Whether it stands for a transport of tools.json: it has no DRIVER.md then.
    pub is_attachment: bool,
    /// Why the transport of tools.json that it stands for is denied. Such a driver serves no call.
    pub denied: Option<DeniedTransport>,
}

/// Why a transport of tools.json is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedTransport {
    /// The code of the diagnostic: `transport-…`.
    pub code: &'static str,
    /// The diagnostic's message.
    pub message: String,
}

/// Limits that a driver asks for, each of a call and at least 1. `None`: the host's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverLimits {
    /// Fuel.
    pub fuel: Option<u64>,
    /// Memory of all linear memories together, in MiB.
    pub memory_mib: Option<u64>,
    /// Size of the result, in bytes.
    pub output_bytes: Option<u64>,
    /// Captured standard output, and as much standard error, in bytes.
    pub stdio_bytes: Option<u64>,
    /// Log records.
    pub log_records: Option<u64>,
    /// Streams, pollables and other handles at once.
    pub resources: Option<u64>,
    /// HTTP requests at once.
    pub http_requests: Option<u64>,
    /// Size of one HTTP body, of a request or a response, in bytes.
    pub http_body_bytes: Option<u64>,
    /// Time of one HTTP request, in milliseconds.
    pub http_timeout_ms: Option<u64>,
    /// Bytes written below its workspaces.
    pub workspace_bytes: Option<u64>,
    /// Files made below its workspaces.
    pub workspace_files: Option<u64>,
    /// Calls of other tools.
    pub nested_calls: Option<u64>,
}

/// One entry of `implements`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Implements {
    /// The contract, as written: an id, or the path of its TOOL.md or of the folder that has it.
    pub tool: String,
    /// The contract's id; `None` for a path that leads to no contract, or that [`Driver::resolve_paths`] has not followed
    /// yet. Such an entry binds to nothing.
    pub tool_id: Option<ToolId>,
    /// The versions of the contract that it serves, as npm reads ranges.
    pub version: nodejs_semver::Range,
    /// The same range as written.
    pub version_text: String,
    /// Optional inputs that it does not support.
    pub drop_inputs: Vec<String>,
    /// Optional outputs that it does not give.
    pub drop_outputs: Vec<String>,
    /// How the contract's input becomes the driver's.
    pub mapping: InputMapping,
    /// What a call through it costs.
    pub cost_override: CostOverride,
    /// Narrows the timeout for this contract.
    pub timeout: Option<Duration>,
    /// Replaces the retry policy for this contract.
    pub retry: Option<Retry>,
    /// The request to make; present exactly for [`DriverKind::Http`].
    pub http: Option<HttpCall>,
    /// Where the document has the placeholders of the request.
    pub(crate) places: PlaceholderPlaces,
    /// The program to run; present exactly for [`DriverKind::Exec`].
    pub program: Option<Program>,
    /// The world that its component is called in.
    pub world: World,
    /// The fields that only drivers of its kind have, as written, where no host runs the kind.
    pub kind_fields: Map<String, Value>,
    /// Everything below the entry's `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The place of the entry in DRIVER.md.
    pub at: Position,
}

impl Implements {
    /// Whether it is about the contract with an id.
    #[must_use]
    pub fn is_of(&self, id: &str) -> bool {
        self.tool_id.as_ref().is_some_and(|own| *own == *id)
    }

    /// The contract's id; of a path that leads nowhere, the path.
    #[must_use]
    pub fn named(&self) -> &str {
        self.tool_id.as_ref().map_or(&self.tool, |id| id.as_str())
    }
}

impl Driver {
    /// `id@major`, which identifies a driver (AIP-30, "Stable identity").
    #[must_use]
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The one host that the requests of a declarative driver go to, by https; no port means 443.
    /// `None` for other kinds.
    #[must_use]
    pub fn origin(&self) -> Option<&HostPattern> {
        let host = self.egress.iter().next()?.host()?;
        (self.kind == DriverKind::Http && self.egress.len() == 1 && host.is_literal())
            .then_some(host)
    }

    /// The first entry that serves this version of a contract.
    #[must_use]
    pub fn implements_tool(&self, id: &str, version: &semver::Version) -> Option<&Implements> {
        let version = nodejs_semver::Version::parse(version.to_string()).ok()?;
        self.implements
            .iter()
            .find(|entry| entry.is_of(id) && entry.version.satisfies(&version))
    }

    /// Gives each entry that names its contract by a path the id that stands there.
    /// `id_at` knows the id of the contract at a path as written in the entry.
    /// Returns the paths, with their places, at which there is none.
    pub fn resolve_paths(
        &mut self,
        id_at: impl Fn(&str) -> Option<ToolId>,
    ) -> Vec<(String, Position)> {
        let mut missing = Vec::new();
        for entry in &mut self.implements {
            if !parse::is_path(&entry.tool) {
                continue;
            }
            match id_at(&entry.tool) {
                Some(id) => entry.tool_id = Some(id),
                None => missing.push((entry.tool.clone(), entry.at)),
            }
        }
        missing
    }

    /// The deadline of a call of `tool` through `entry`: the tightest of contract, driver and entry.
    #[must_use]
    pub fn timeout(&self, tool: &Tool, entry: &Implements) -> Duration {
        let overrides = [self.timeout_override, entry.timeout];
        overrides
            .into_iter()
            .flatten()
            .fold(tool.timeout, Duration::min)
    }

    /// The retry policy of a call of `tool` through `entry`: the entry's, else the driver's, else the
    /// contract's.
    #[must_use]
    pub fn retry(&self, tool: &Tool, entry: &Implements) -> Option<Retry> {
        entry.retry.or(self.retry_override).or(tool.retry)
    }
}
