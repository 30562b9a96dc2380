//! `tool_declaration`: what a tool is, as its contract says and its host has it.

use serde::Serialize;
use toolward_contract::driver::{Cost, DriverKind};
use toolward_host::{DriverInfo, ToolInfo};
use toolward_policy::Decision;
use toolward_support::text::{visible, visible_line};

use crate::records::contracts::{InputContract, OutputContract};
use crate::records::mapping::ExternalMapping;
use crate::records::references::{self, serving};
use crate::records::version::SchemaVersion;

/// Characters of a line of a publisher's, and of a description.
pub(crate) const MAX_LINE_CHARS: usize = 300;
const MAX_DESCRIPTION_CHARS: usize = 4000;

/// How the publisher of an unsigned bundle begins.
const DEV: &str = "dev:";

/// A tool of a host, and the name that models call it by.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// The tool.
    pub info: &'a ToolInfo,
    /// Its name over MCP.
    pub name: &'a str,
}

/// A tool's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lifecycle {
    /// Under work: unsigned, and it can be called.
    Draft,
    /// It can be called.
    Available,
    /// It can be called, and its publisher calls it deprecated (`metadata.aml.status`).
    Deprecated,
    /// The operator denies it.
    Disabled,
    /// Something is missing: a grant, a driver, a context.
    RequiresSetup,
}

impl Lifecycle {
    /// That of a tool of a host.
    #[must_use]
    pub fn of(info: &ToolInfo) -> Self {
        let denied = |driver: &DriverInfo| match &driver.decision {
            Decision::Deny(denial) => !denial.denied_by.is_empty(),
            _ => false,
        };
        if info.refusal().is_none() {
            match info.publisher.starts_with(DEV) {
                true => Self::Draft,
                false if is_deprecated(info) => Self::Deprecated,
                false => Self::Available,
            }
        } else if !info.drivers.is_empty() && info.drivers.iter().all(denied) {
            Self::Disabled
        } else {
            Self::RequiresSetup
        }
    }
}

/// Whether the definition of AML that the contract was made of is deprecated.
fn is_deprecated(info: &ToolInfo) -> bool {
    let aml = info.contract.metadata.get("aml");
    let status = aml.and_then(|aml| aml.get("status"));
    status.is_some_and(|status| status == "deprecated")
}

/// What a tool is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Declaration {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// The contract's id.
    pub tool_id: String,
    /// The contract's version.
    pub version: String,
    /// Who published it.
    pub publisher: String,
    /// The collision boundary of its name.
    pub namespace: String,
    /// The name that models call it by.
    pub name: String,
    /// Older names.
    pub aliases: Vec<String>,
    /// Words for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_hint: Option<String>,
    /// Its display name.
    pub title: String,
    /// What it does, for models. The publisher's text, made safe to show.
    pub description: String,
    /// Its state on this host.
    pub lifecycle: Lifecycle,
    /// `wasm_component`, `http_request`, `host_program`, or `unbound` without a driver.
    pub tool_kind: &'static str,
    /// What it declares to need and to change.
    pub capability_refs: Vec<String>,
    /// What it takes.
    pub input_contract: InputContract,
    /// What it gives.
    pub output_contract: OutputContract,
    /// Its `tool_interface`.
    pub interface_ref: String,
    /// How it runs; left out without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_profile_ref: Option<String>,
    /// What it may do; left out without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_profile_ref: Option<String>,
    /// What other protocols call it.
    pub external_mappings: Vec<ExternalMapping>,
    /// Claims of its publisher, which nothing is decided by.
    pub annotations: Annotations,
}

/// Claims of a tool's publisher.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// Words for discovery.
    pub tags: Vec<String>,
    /// What a call costs.
    pub cost: Option<Cost>,
    /// Events that it says it fires.
    pub fires_events: Vec<String>,
}

impl Declaration {
    /// That of a tool of a host.
    #[must_use]
    pub fn of(tool: &Described<'_>) -> Self {
        let Described { info, name } = *tool;
        let contract = &info.contract;
        let driver = serving(info);
        let lines = |texts: &[String]| texts.iter().map(|text| line(text)).collect();
        let declared = contract.declaration();
        Self {
            schema_version: SchemaVersion,
            tool_id: contract.id.to_string(),
            version: contract.version.to_string(),
            publisher: line(&info.publisher),
            namespace: line(references::namespace_of(contract)),
            name: name.to_owned(),
            aliases: lines(&contract.aliases),
            search_hint: contract.search_hint.as_deref().map(line),
            title: line(&contract.name),
            description: visible(&contract.description, MAX_DESCRIPTION_CHARS),
            lifecycle: Lifecycle::of(info),
            tool_kind: driver.map_or("unbound", kind),
            capability_refs: declared.iter().map(|one| line(&one.to_string())).collect(),
            input_contract: InputContract::of(contract),
            output_contract: OutputContract::of(info),
            interface_ref: references::interface(info),
            execution_profile_ref: driver.map(|driver| references::execution_profile(info, driver)),
            permission_profile_ref: driver
                .map(|driver| references::permission_profile(info, driver)),
            external_mappings: ExternalMapping::all(contract.id.as_str(), name),
            annotations: Annotations {
                tags: lines(&contract.tags),
                cost: driver.and_then(|driver| cost(info, driver)),
                fires_events: lines(&contract.fires_events),
            },
        }
    }
}

/// How calls through a driver are carried out.
pub(crate) fn kind(driver: &DriverInfo) -> &'static str {
    match driver.declaration.kind {
        DriverKind::Component => "wasm_component",
        DriverKind::Http => "http_request",
        DriverKind::Form => "human_form",
        DriverKind::Exec => "host_program",
        DriverKind::Other(_) => "unbound",
    }
}

fn cost(info: &ToolInfo, driver: &DriverInfo) -> Option<Cost> {
    let contract = &info.contract;
    let (id, version) = (contract.id.as_str(), &contract.version);
    let entry = driver.declaration.implements_tool(id, version)?;
    Some(driver.declaration.cost(contract, entry))
}

pub(crate) fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}
