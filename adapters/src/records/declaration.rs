//! `tool_declaration`: what a tool is, as its contract says and its host has it.

use serde_json::{Value, json};
use toolward_contract::driver::{Cost, DriverKind};
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::Decision;
use toolward_support::text::{visible, visible_line};

use crate::records::contracts::{input_contract, output_contract};
use crate::records::mapping::external_mappings;
use crate::records::object::record;
use crate::records::references::{self, serving};

/// Characters of a line of a publisher's, and of a description.
pub(crate) const MAX_LINE_CHARS: usize = 300;
const MAX_DESCRIPTION_CHARS: usize = 4000;

/// How the publisher of an unsigned bundle begins.
const DEV: &str = "dev:";

/// A tool of a host, and the name that models call it by.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// The tool.
    pub info: &'a ToolFacts,
    /// Its name over MCP.
    pub name: &'a str,
}

/// A tool's state: `draft` is unsigned, under work; `available` can be called; `deprecated` too, and its publisher calls
/// it so (`metadata.aml.status`); `disabled` is denied by the operator; `requires_setup` lacks a grant, a driver or a
/// context.
fn lifecycle(info: &ToolFacts) -> &'static str {
    let denied = |driver: &DriverFacts| match &driver.decision {
        Decision::Deny(denial) => !denial.denied_by.is_empty(),
        _ => false,
    };
    if info.refusal().is_none() {
        match info.publisher.starts_with(DEV) {
            true => "draft",
            false if is_deprecated(info) => "deprecated",
            false => "available",
        }
    } else if !info.drivers.is_empty() && info.drivers.iter().all(denied) {
        "disabled"
    } else {
        "requires_setup"
    }
}

/// Whether the definition of AML that the contract was made of is deprecated.
fn is_deprecated(info: &ToolFacts) -> bool {
    let aml = info.contract.metadata.get("aml");
    let status = aml.and_then(|aml| aml.get("status"));
    status.is_some_and(|status| status == "deprecated")
}

/// The declaration of a tool of a host.
#[must_use]
pub fn tool_declaration(tool: &Described<'_>) -> Value {
    let Described { info, name } = *tool;
    let contract = &info.contract;
    let driver = serving(info);
    let lines = |texts: &[String]| texts.iter().map(|text| line(text)).collect::<Vec<_>>();
    let declared = contract.declaration();
    record! {
        tool_id = contract.id.to_string();
        version = contract.version.to_string();
        publisher = line(&info.publisher);
        namespace = line(contract.effective_namespace());
        name = name;
        aliases = lines(&contract.aliases);
        search_hint ? contract.search_hint.as_deref().map(line);
        title = line(&contract.name);
        description = visible(&contract.description, MAX_DESCRIPTION_CHARS);
        lifecycle = lifecycle(info);
        tool_kind = driver.map_or("unbound", kind);
        capability_refs = declared.iter().map(|one| line(&one.to_string())).collect::<Vec<_>>();
        input_contract = input_contract(contract);
        output_contract = output_contract(info);
        interface_ref = references::interface(info);
        execution_profile_ref ? driver.map(|driver| references::execution_profile(info, driver));
        permission_profile_ref ? driver.map(|driver| references::permission_profile(info, driver));
        external_mappings = external_mappings(contract.id.as_str(), name);
        // Claims of its publisher, which nothing is decided by.
        annotations = json!({
            "tags": lines(&contract.tags),
            "cost": driver.and_then(|driver| cost(info, driver)),
            "fires_events": lines(&contract.fires_events),
        });
    }
}

/// How calls through a driver are carried out.
pub(crate) fn kind(driver: &DriverFacts) -> &'static str {
    match driver.declaration.kind {
        DriverKind::Component => "wasm_component",
        DriverKind::Http => "http_request",
        DriverKind::Form => "human_form",
        DriverKind::Exec => "host_program",
        DriverKind::Other(_) => "unbound",
    }
}

fn cost(info: &ToolFacts, driver: &DriverFacts) -> Option<Cost> {
    let contract = &info.contract;
    let (id, version) = (contract.id.as_str(), &contract.version);
    let entry = driver.declaration.implements_tool(id, version)?;
    Some(driver.declaration.cost(contract, entry))
}

pub(crate) fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}
