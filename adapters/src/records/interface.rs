//! `tool_interface` and `tool_execution_profile`: the facts about a tool that a runtime needs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolward_contract::capability::Class;
use toolward_contract::tool::Requires;
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::{Decision, Hints};

use super::declaration::model_view;
use super::references::record;
use crate::records::declaration::{Described, kind, line, lines};
use crate::records::references::{self, milliseconds, serving};

/// Returns the facts about a tool that a runtime needs. If no call of the tool can run, the tool
/// gets the most cautious classification.
pub(crate) fn tool_interface(tool: &Described<'_>) -> Value {
    let Described { info, name } = *tool;
    let contract = &info.contract;
    let driver = serving(info);
    let hints = info.effects().map_or(Hints::CAUTIOUS, |effects| {
        Hints::of(contract, effects, info.confirmed())
    });
    let refusal = info.refusal();
    let asks = |driver: &DriverFacts| matches!(driver.decision, Decision::Ask(..));
    let own = driver.map(|driver| &driver.declaration.requires);
    let requires = || own.into_iter().chain([&contract.requires]);
    let questions = requires().any(|requires| requires.user().next().is_some());
    let credentials: BTreeSet<String> = requires().flat_map(Requires::secrets).collect();
    let timeout = driver.map_or(contract.timeout, |driver| timeout(info, driver));
    record! {
        interface_id = references::interface(info);
        tool_id = contract.id.to_string();
        name = name;
        namespace = line(contract.effective_namespace());
        aliases = lines(&contract.aliases);
        model_input_schema = model_view(&contract.inputs);
        runtime_input_schema = contract.inputs.closed();
        output_schema = model_view(&contract.outputs);
        strict = true;
        // Callers see its schemas only if calls can run.
        schema_visibility = if refusal.is_none() { "loaded" } else { "internal" };
        is_enabled = refusal.is_none();
        // `ready`, or the class of the error with which every call ends.
        setup_state = refusal.as_ref().map_or(json!("ready"), |error| json!(error.class));
        required_credentials = credentials;
        is_read_only = hints.read_only;
        is_destructive = hints.destructive;
        is_open_world = hints.open_world;
        // Each call has its own instance, but calls share state unless the tool only reads.
        is_concurrency_safe = hints.read_only;
        // A person approves calls, or answers questions of the driver.
        requires_user_interaction = questions || driver.is_some_and(asks);
        sandbox_profile = driver.map_or("none", sandbox);
        permission_matcher = "toolward-policy";
        timeout_ms = milliseconds(timeout);
        supports_abort = true;
        execution_profile_ref ? driver.map(|driver| references::execution_profile(info, driver));
        permission_profile_ref ? driver.map(|driver| references::permission_profile(info, driver));
    }
}

/// Describes how calls of a tool through one driver run. A result is whole. A call ends with its
/// reply, and does not modify the context of later calls.
pub(crate) fn execution_profile(info: &ToolFacts, driver: &DriverFacts) -> Value {
    let (contract, declared) = (&info.contract, &driver.declaration);
    let (id, version) = (contract.id.as_str(), &contract.version);
    let retry = declared
        .implements_tool(id, version)
        .and_then(|entry| declared.retry(contract, entry));
    let component = kind(driver) == "wasm_component";
    let all = contract
        .declaration()
        .union(&declared.requires.capabilities);
    record! {
        execution_profile_id = references::execution_profile(info, driver);
        execution_kind = kind(driver);
        driver = driver.id;
        driver_version = declared.version.to_string();
        driver_publisher = line(&driver.publisher);
        supports_progress = component;
        supports_cancel = true;
        supports_resume = component && all.of_class(&Class::User).next().is_some();
        supports_retries = contract.idempotent && retry.is_some_and(|retry| retry.max_attempts > 1);
        supports_partial_results = false;
        supports_background = false;
        supports_artifacts = false;
        supports_context_modifiers = false;
        // Whether the publisher's code runs in a sandbox. A driver of requests has no code.
        sandboxed = component;
        sandbox_profile = sandbox(driver);
        timeout_ms = milliseconds(timeout(info, driver));
    }
}

/// Returns what confines the calls of a driver: the sandbox of its component, the broker of its
/// program, or the host that makes its request.
pub(crate) fn sandbox(driver: &DriverFacts) -> &'static str {
    driver.declaration.kind.sandbox()
}

fn timeout(info: &ToolFacts, driver: &DriverFacts) -> std::time::Duration {
    let contract = &info.contract;
    let (id, version) = (contract.id.as_str(), &contract.version);
    let entry = driver.declaration.implements_tool(id, version);
    entry.map_or(contract.timeout, |entry| {
        driver.declaration.timeout(contract, entry)
    })
}
