//! Drivers: DRIVER.md (AIP-30), which states how contracts are carried out and on what terms. A
//! driver's component is not read here.

mod check;
mod component;
mod exec;
mod http;
mod kind;
mod mapping;
mod parse;
mod render;
mod requirements;
mod response;
mod template;
mod without_effect;

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
pub use kind::{DriverKind, Implements};
pub use mapping::{InputMapping, MappedInput, MappingError, Transform};
pub use render::{HeaderPiece, RenderError, RenderErrorKind, Rendered, Values};
pub use requirements::{Cost, CostOverride, DriverLimits, Platform};
pub use response::{ExtractError, JsonPath, OutputPlace};
pub(crate) use template::PlaceholderPlaces;
pub use template::{BodyTemplate, SlotSource, Template, TemplatePart, TemplateSlot};

/// The id of a driver: the same form as a contract's.
pub type DriverId = ToolId;

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
    /// Whether `network.egress` is written, even as an empty list: the driver's component may then
    /// import HTTP.
    pub declares_network: bool,
    /// Its needs beyond the contract. They require a policy rule that names the driver.
    pub requires: Requires,
    /// The machines on which it can run.
    pub platform: Platform,
    /// The cost of its calls, unless the entry of `implements` states another cost.
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
    /// `streaming` and `rate_limit` of a driver of `kind: http`, as written: no call depends on
    /// them.
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
    /// The reason for a denial, if it represents a denied transport of tools.json. Such a driver
    /// serves no call.
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

impl Driver {
    /// A driver that implements nothing yet.
    pub(crate) fn new(
        id: DriverId,
        name: String,
        description: String,
        version: semver::Version,
        kind: DriverKind,
    ) -> Self {
        Self {
            id,
            name,
            description,
            version,
            kind,
            component: None,
            implements: Vec::new(),
            egress: CapabilitySet::new(),
            declares_network: false,
            requires: Requires::default(),
            platform: Platform::default(),
            cost_override: CostOverride::default(),
            timeout_override: None,
            retry_override: None,
            limits: DriverLimits::default(),
            region: Vec::new(),
            policy_tags: Vec::new(),
            request_defaults: Map::new(),
            hints: Map::new(),
            auth: None,
            health_check: None,
            kind_fields: Map::new(),
            metadata: Map::new(),
            body: String::new(),
            is_attachment: false,
            denied: None,
        }
    }

    /// `id@major`, which identifies a driver (AIP-30, "Stable identity").
    pub fn major_id(&self) -> String {
        format!("{}@{}", self.id, self.version.major)
    }

    /// The one host to which the requests of a declarative driver (`kind: http`) go, by https.
    /// Without a port, 443 is used. `None` for other kinds, and if `egress` is not exactly one host
    /// without wildcard.
    pub fn origin(&self) -> Option<&HostPattern> {
        let host = self.egress.iter().next()?.host()?;
        (self.kind == DriverKind::Http && self.egress.len() == 1 && host.is_literal())
            .then_some(host)
    }

    /// The first entry of `implements` that serves this version of a contract.
    pub fn implements_tool(&self, id: &str, version: &semver::Version) -> Option<&Implements> {
        let version = nodejs_semver::Version::parse(version.to_string()).ok()?;
        self.implements
            .iter()
            .find(|entry| entry.is_of(id) && entry.version.satisfies(&version))
    }

    /// Sets the contract's id in each entry that names its contract by a path. `id_at` returns the
    /// id of the contract at such a path, which is given as written. Returns the paths without a
    /// contract, with their positions.
    pub fn resolve_paths(
        &mut self,
        id_at: impl Fn(&str) -> Option<ToolId>,
    ) -> Vec<(String, Position)> {
        let mut missing = Vec::new();
        for entry in &mut self.implements {
            if !kind::is_path(&entry.tool) {
                continue;
            }
            match id_at(&entry.tool) {
                Some(id) => entry.tool_id = Some(id),
                None => missing.push((entry.tool.clone(), entry.at)),
            }
        }
        missing
    }

    /// The time limit for calling `tool` through `entry`: the shortest of the contract's, the
    /// driver's and the entry's.
    pub fn timeout(&self, tool: &Tool, entry: &Implements) -> Duration {
        let overrides = [self.timeout_override, entry.timeout].into_iter();
        overrides.flatten().fold(tool.timeout, Duration::min)
    }

    /// The retry policy for calling `tool` through `entry`: the entry's if it has one, then the
    /// driver's, then the contract's.
    pub fn retry(&self, tool: &Tool, entry: &Implements) -> Option<Retry> {
        entry.retry.or(self.retry_override).or(tool.retry)
    }

    /// What a call of `tool` through `entry` costs: each part is the entry's, or otherwise the
    /// driver's. If neither states a class, the contract's class applies.
    pub fn cost(&self, tool: &Tool, entry: &Implements) -> Cost {
        let (entry, driver) = (&entry.cost_override, &self.cost_override);
        let currency = entry.currency.as_ref().or(driver.currency.as_ref());
        let class = entry.cost_class.or(driver.cost_class);
        Cost {
            units_per_call: entry.cost_units_per_call.or(driver.cost_units_per_call),
            currency: currency.cloned(),
            class: class.unwrap_or(tool.cost_class),
        }
    }
}
