//! Drivers: DRIVER.md (AIP-30), which states how contracts are carried out and on what terms. No code
//! is read here.

mod check;
mod component;
mod exec;
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
pub use component::{
    BytesForm, ForeignError, ForeignResult, ForeignWorld, ForeignWorldError, ResultForm,
    WitArguments, WitCall, World, domain_code,
};
pub use exec::Program;
pub(crate) use exec::is_absolute;
pub(crate) use http::header_refusal;
pub use http::{Endpoint, HttpCall, Method, StatusError};
pub use mapping::{InputMapping, MappedInput, MappingError, Transform};
pub use render::{HeaderPiece, RenderError, RenderErrorKind, Rendered, Values};
pub use requirements::{Cost, CostOverride, DriverLimits, Platform};
pub use response::{ExtractError, JsonPath, OutputPlace};
pub(crate) use template::PlaceholderPlaces;
pub use template::{BodyTemplate, SlotSource, Template, TemplatePart, TemplateSlot};

/// The id of a driver: the same form as a contract's.
pub type DriverId = ToolId;

/// The documents that may declare drivers of a kind, and the hosts that run them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Declared by a DRIVER.md; every host runs them.
    Run,
    /// Declared by a version 1 `tools.json`, never by a DRIVER.md; hosts run them.
    Attached,
    /// Declared by a DRIVER.md; only an executor that an application brings runs them.
    Named,
}

/// The work of a driver of a kind on a host, from least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Nothing,
    Requests,
    Code,
}

/// A row of the table of kinds.
struct KindRow {
    name: &'static str,
    known: Known,
    work: Work,
    rank: u8,
    record: &'static str,
}

/// Declares the kinds. A row has everything that differs by kind, except its fields and its executor:
/// its word, its `Known`, its `Work`, its rank, and its name in records.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal, $known:ident, $work:ident, $rank:literal, $record:literal;)+) => {
        /// The kind of a driver.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum DriverKind {
            $($(#[$doc])+ $kind,)+
        }

        impl DriverKind {
            /// All kinds.
            pub const ALL: &[DriverKind] = &[$(DriverKind::$kind),+];

            fn row(self) -> KindRow {
                let (name, known, work, rank, record) = match self {
                    $(Self::$kind => ($name, Known::$known, Work::$work, $rank, $record),)+
                };
                KindRow { name, known, work, rank, record }
            }
        }
    };
}

kinds! {
    /// A WebAssembly component.
    Component = "component", Run, Code, 1, "wasm_component";
    /// Requests that the host makes itself, described in DRIVER.md.
    Http = "http", Run, Requests, 2, "http_request";
    /// A form that a person fills in: the contract's `outputs`.
    Form = "form", Run, Nothing, 5, "human_form";
    /// A program of the host's machine, named by a version 1 `tools.json`.
    Exec = "exec", Attached, Code, 4, "host_program";
    /// AIP-30's `cli`.
    Cli = "cli", Named, Code, 4, "unbound";
    /// AIP-30's `mcp`.
    Mcp = "mcp", Named, Code, 3, "unbound";
    /// AIP-30's `sdk`.
    Sdk = "sdk", Named, Code, 1, "unbound";
    /// AIP-30's `builtin`.
    Builtin = "builtin", Named, Code, 0, "unbound";
}

impl DriverKind {
    /// Whether this host runs drivers of this kind.
    pub fn is_run(self) -> bool {
        self.row().known != Known::Named
    }

    /// Whether drivers of this kind are code.
    pub fn runs_code(self) -> bool {
        self.row().work == Work::Code
    }

    /// The rank among drivers with the same cost; lower ranks come first. The order is AIP-30's: inside the
    /// host, inside its process, over the network, with a protocol on top, in a separate process. A
    /// component has the rank of an `sdk`. A form comes last: a person is asked only if no other driver
    /// serves the call.
    pub fn rank(self) -> u8 {
        self.row().rank
    }

    /// The name of the kind in records.
    pub fn record(self) -> &'static str {
        self.row().record
    }

    /// The word in DRIVER.md or `tools.json`.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The kinds that a DRIVER.md may have.
    fn declared() -> impl Iterator<Item = DriverKind> {
        let all = DriverKind::ALL.iter().copied();
        all.filter(|kind| kind.row().known != Known::Attached)
    }

    /// The kinds of DRIVER.md that every host runs, as a list for people.
    pub fn run_names(conjunction: &str) -> String {
        listed(
            DriverKind::declared().filter(|kind| kind.is_run()),
            conjunction,
        )
    }
}

/// The names of kinds for people.
fn listed(kinds: impl Iterator<Item = DriverKind>, conjunction: &str) -> String {
    let names: Vec<&str> = kinds.map(DriverKind::as_str).collect();
    match names.split_last() {
        Some((last, rest)) => format!("{} {conjunction} {last}", rest.join(", ")),
        None => String::new(),
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
    /// Its kind.
    pub kind: DriverKind,
    /// The `.wasm` file next to DRIVER.md; `None` for other kinds than [`DriverKind::Component`].
    pub component: Option<String>,
    /// The contracts that it implements; at least one.
    pub implements: Vec<Implements>,
    /// `network.egress`: the part of the contract's network that it uses. Empty means no network.
    pub egress: CapabilitySet,
    /// Whether `network.egress` is written, even as an empty list: its component may then import HTTP.
    pub declares_network: bool,
    /// Its needs beyond the contract. They require a policy rule that names the driver.
    pub requires: Requires,
    /// The machines on which it can run.
    pub platform: Platform,
    /// The cost of its calls, unless an entry states another cost.
    pub cost_override: CostOverride,
    /// Narrows the contract's `timeout_ms`, never widens it.
    pub timeout_override: Option<Duration>,
    /// Replaces the contract's retry policy.
    pub retry_override: Option<Retry>,
    /// The limits that it requests from the sandbox, up to the operator's maxima.
    pub limits: DriverLimits,
    /// Regions that it serves, as its publisher claims. Empty means `global`.
    pub region: Vec<String>,
    /// Labels that policies match, as its publisher claims.
    pub policy_tags: Vec<String>,
    /// The fields for all requests, as written. For `kind: http`: `base_url`, `default_headers`,
    /// `default_method`. For a transport in tools.json: `method`, `url` and `headers`.
    pub request_defaults: Map<String, Value>,
    /// `streaming` and `rate_limit` of a driver of `kind: http`, as written: no call depends on them.
    pub hints: Map<String, Value>,
    /// `auth`, as written.
    pub auth: Option<Map<String, Value>>,
    /// `health_check`, as written.
    pub health_check: Option<Map<String, Value>>,
    /// The fields that only drivers of its kind have, as written, if no host runs the kind.
    pub kind_fields: Map<String, Value>,
    /// Everything below `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The Markdown below the front matter. Informational.
    pub body: String,
    /// Whether it represents a transport of tools.json, and so has no DRIVER.md.
    pub is_attachment: bool,
    /// The reason if it represents a denied transport of tools.json. Such a driver serves no call.
    pub denied: Option<DeniedTransport>,
}

/// The reason for which a transport of tools.json is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeniedTransport {
    /// The code of the diagnostic: `transport-…`.
    pub code: &'static str,
    /// The diagnostic's message.
    pub message: String,
}

/// One entry of `implements`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Implements {
    /// The contract, as written: an id, or the path of its TOOL.md or of the folder of the TOOL.md.
    pub tool: String,
    /// The contract's id; `None` for a path that leads to no contract, or that [`Driver::resolve_paths`]
    /// has not resolved yet. Such an entry serves no contract.
    pub tool_id: Option<ToolId>,
    /// The versions of the contract that it serves, as an npm range.
    pub version: nodejs_semver::Range,
    /// The same range as written.
    pub version_text: String,
    /// Optional inputs that it does not support.
    pub drop_inputs: Vec<String>,
    /// Optional outputs that it does not give.
    pub drop_outputs: Vec<String>,
    /// How the contract's input is converted to the driver's.
    pub mapping: InputMapping,
    /// The cost of a call through it.
    pub cost_override: CostOverride,
    /// Narrows the timeout for this contract.
    pub timeout: Option<Duration>,
    /// Replaces the retry policy for this contract.
    pub retry: Option<Retry>,
    /// The request to make; `None` for other kinds than [`DriverKind::Http`].
    pub http: Option<HttpCall>,
    /// The positions of the request's placeholders in the document.
    pub(crate) places: PlaceholderPlaces,
    /// The program to run; `None` for other kinds than [`DriverKind::Exec`].
    pub program: Option<Program>,
    /// The world in which its component is called.
    pub world: World,
    /// The fields that only drivers of its kind have, as written, if no host runs the kind.
    pub kind_fields: Map<String, Value>,
    /// Everything below the entry's `metadata`, as written.
    pub metadata: Map<String, Value>,
    /// The place of the entry in DRIVER.md.
    pub at: Position,
}

impl Implements {
    /// Whether the entry is for the contract with the id `id`.
    pub fn is_of(&self, id: &str) -> bool {
        self.tool_id.as_ref().is_some_and(|own| *own == *id)
    }

    /// The contract's id, or the path if it was not resolved.
    pub fn named(&self) -> &str {
        self.tool_id.as_ref().map_or(&self.tool, |id| id.as_str())
    }
}

impl Driver {
    /// `id@major`, which identifies a driver (AIP-30, "Stable identity").
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The one host to which the requests of a declarative driver go, by https; without a port, 443 is
    /// used. `None` for other kinds, and if `egress` is not exactly one host without wildcard.
    pub fn origin(&self) -> Option<&HostPattern> {
        let host = self.egress.iter().next()?.host()?;
        (self.kind == DriverKind::Http && self.egress.len() == 1 && host.is_literal())
            .then_some(host)
    }

    /// The first entry that serves this version of a contract.
    pub fn implements_tool(&self, id: &str, version: &semver::Version) -> Option<&Implements> {
        let version = nodejs_semver::Version::parse(version.to_string()).ok()?;
        self.implements
            .iter()
            .find(|entry| entry.is_of(id) && entry.version.satisfies(&version))
    }

    /// Resolves the contract's id of each entry that names its contract by a path. `id_at` returns the id
    /// of the contract at a path as written in the entry. Returns the paths without a contract, with their
    /// positions.
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

    /// The time limit for calling `tool` through `entry`: the shortest of the contract's, the driver's and
    /// the entry's.
    pub fn timeout(&self, tool: &Tool, entry: &Implements) -> Duration {
        let overrides = [self.timeout_override, entry.timeout];
        overrides
            .into_iter()
            .flatten()
            .fold(tool.timeout, Duration::min)
    }

    /// The retry policy for calling `tool` through `entry`: the entry's if it has one, then the driver's,
    /// then the contract's.
    pub fn retry(&self, tool: &Tool, entry: &Implements) -> Option<Retry> {
        entry.retry.or(self.retry_override).or(tool.retry)
    }
}
