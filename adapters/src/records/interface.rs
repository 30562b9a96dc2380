//! `tool_interface` and `tool_execution_profile`: what a runtime has to know of a tool.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use toolward_contract::capability::Class;
use toolward_contract::tool::Requires;
use toolward_host::{CallError, DriverInfo, ErrorClass, ToolInfo};
use toolward_policy::{Decision, Hints};

use crate::records::contracts::model_view;
use crate::records::declaration::{Described, kind, line};
use crate::records::references::{self, milliseconds, serving};
use crate::records::version::SchemaVersion;

/// What the holder of a reference sees of the tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaVisibility {
    /// All that a model may see of it.
    Loaded,
    /// Nothing: it is not for callers.
    Internal,
}

/// What a runtime has to know of a tool. A tool that no call can run has the most cautious
/// classification.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interface {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub interface_id: String,
    /// The contract's id.
    pub tool_id: String,
    /// The name that models call it by.
    pub name: String,
    /// The collision boundary of its name.
    pub namespace: String,
    /// Older names.
    pub aliases: Vec<String>,
    /// What a model sees of the input.
    pub model_input_schema: Value,
    /// What the host checks the input by.
    pub runtime_input_schema: Value,
    /// What a model sees of the output.
    pub output_schema: Value,
    /// Whether anything but what the schema allows is refused.
    pub strict: bool,
    /// What its reader sees of the schemas.
    pub schema_visibility: SchemaVisibility,
    /// Whether calls can run.
    pub is_enabled: bool,
    /// `ready`, or the class of the error that every call ends with.
    pub setup_state: SetupState,
    /// The secrets that it declares to use.
    pub required_credentials: Vec<String>,
    /// Whether calls change nothing.
    pub is_read_only: bool,
    /// Whether calls may overwrite or delete.
    pub is_destructive: bool,
    /// Whether calls reach what lies outside of this machine.
    pub is_open_world: bool,
    /// Whether two calls at once can't meet: each has an instance of its own, and only what
    /// is read-only shares nothing that changes.
    pub is_concurrency_safe: bool,
    /// Whether a person takes part: approves calls, or answers questions of the driver.
    pub requires_user_interaction: bool,
    /// What confines it.
    pub sandbox_profile: &'static str,
    /// What decides about it.
    pub permission_matcher: &'static str,
    /// The time that a call may take; the operator may allow less.
    pub timeout_ms: u64,
    /// Whether a running call can be cancelled.
    pub supports_abort: bool,
    /// How it runs; left out without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_profile_ref: Option<String>,
    /// What it may do; left out without a driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_profile_ref: Option<String>,
}

/// Whether calls of a tool can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SetupState {
    /// They can.
    Ready,
    /// They end with an error of this class.
    #[serde(untagged)]
    Blocked(ErrorClass),
}

impl SetupState {
    fn of(refusal: Option<&CallError>) -> Self {
        refusal.map_or(Self::Ready, |error| Self::Blocked(error.class))
    }
}

impl Interface {
    /// That of a tool of a host.
    #[must_use]
    pub fn of(tool: &Described<'_>) -> Self {
        let Described { info, name } = *tool;
        let contract = &info.contract;
        let (driver, hints) = (
            serving(info),
            info.effects.map_or(Hints::CAUTIOUS, |effects| {
                Hints::of(&info.contract, effects, info.confirmed)
            }),
        );
        let refusal = info.refusal();
        let asks = |driver: &DriverInfo| matches!(driver.decision, Decision::Ask(..));
        let own = driver.map(|driver| &driver.declaration.requires);
        let requires = || own.into_iter().chain([&contract.requires]);
        let questions = requires().any(|requires| requires.user().next().is_some());
        let credentials: BTreeSet<String> = requires().flat_map(Requires::secrets).collect();
        Self {
            schema_version: SchemaVersion,
            interface_id: references::interface(info),
            tool_id: contract.id.to_string(),
            name: name.to_owned(),
            namespace: line(references::namespace_of(contract)),
            aliases: contract.aliases.iter().map(|alias| line(alias)).collect(),
            model_input_schema: model_view(&contract.inputs),
            runtime_input_schema: contract.inputs.closed().clone(),
            output_schema: model_view(&contract.outputs),
            strict: true,
            schema_visibility: match refusal {
                None => SchemaVisibility::Loaded,
                Some(_) => SchemaVisibility::Internal,
            },
            is_enabled: refusal.is_none(),
            setup_state: SetupState::of(refusal.as_ref()),
            required_credentials: credentials.into_iter().collect(),
            is_read_only: hints.read_only,
            is_destructive: hints.destructive,
            is_open_world: hints.open_world,
            is_concurrency_safe: hints.read_only,
            requires_user_interaction: questions || driver.is_some_and(asks),
            sandbox_profile: driver.map_or("none", sandbox),
            permission_matcher: "toolward-policy",
            timeout_ms: milliseconds(
                driver.map_or(contract.timeout, |driver| timeout(info, driver)),
            ),
            supports_abort: true,
            execution_profile_ref: driver.map(|driver| references::execution_profile(info, driver)),
            permission_profile_ref: driver
                .map(|driver| references::permission_profile(info, driver)),
        }
    }
}

/// How calls of a tool through one driver run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionProfile {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub execution_profile_id: String,
    /// `wasm_component`, `http_request` or `host_program`.
    pub execution_kind: &'static str,
    /// The driver's id.
    pub driver: String,
    /// The driver's version.
    pub driver_version: String,
    /// Who published the driver.
    pub driver_publisher: String,
    /// Whether calls may report progress.
    pub supports_progress: bool,
    /// Whether a running call can be cancelled.
    pub supports_cancel: bool,
    /// Whether a call may ask, and continue with the answers.
    pub supports_resume: bool,
    /// Whether a failed attempt may be repeated.
    pub supports_retries: bool,
    /// Always false: a result is whole.
    pub supports_partial_results: bool,
    /// Always false: a call ends with its reply.
    pub supports_background: bool,
    /// Always false.
    pub supports_artifacts: bool,
    /// Always false: a call changes nothing for the calls after it.
    pub supports_context_modifiers: bool,
    /// Whether code of the publisher runs in a sandbox. There is none in a request.
    pub sandboxed: bool,
    /// What confines it.
    pub sandbox_profile: &'static str,
    /// The time that a call may take; the operator may allow less.
    pub timeout_ms: u64,
}

impl ExecutionProfile {
    /// That of a tool's driver.
    #[must_use]
    pub fn of(info: &ToolInfo, driver: &DriverInfo) -> Self {
        let (contract, declared) = (&info.contract, &driver.declaration);
        let (id, version) = (contract.id.as_str(), &contract.version);
        let retry = declared
            .implements_tool(id, version)
            .and_then(|entry| declared.retry(contract, entry));
        let component = kind(driver) == "wasm_component";
        let all = contract
            .declaration()
            .union(&declared.requires.capabilities);
        Self {
            schema_version: SchemaVersion,
            execution_profile_id: references::execution_profile(info, driver),
            execution_kind: kind(driver),
            driver: driver.id.clone(),
            driver_version: declared.version.to_string(),
            driver_publisher: line(&driver.publisher),
            supports_progress: component,
            supports_cancel: true,
            supports_resume: component && all.of_class(&Class::User).next().is_some(),
            supports_retries: contract.idempotent
                && retry.is_some_and(|retry| retry.max_attempts > 1),
            supports_partial_results: false,
            supports_background: false,
            supports_artifacts: false,
            supports_context_modifiers: false,
            sandboxed: component,
            sandbox_profile: sandbox(driver),
            timeout_ms: milliseconds(timeout(info, driver)),
        }
    }
}

/// What confines the calls of a driver: its code, or, where it has none, the host's own
/// request.
pub(crate) fn sandbox(driver: &DriverInfo) -> &'static str {
    match kind(driver) {
        "wasm_component" => "wasm-component",
        "host_program" => "program-broker",
        _ => "host-request",
    }
}

fn timeout(info: &ToolInfo, driver: &DriverInfo) -> std::time::Duration {
    let contract = &info.contract;
    let (id, version) = (contract.id.as_str(), &contract.version);
    let entry = driver.declaration.implements_tool(id, version);
    entry.map_or(contract.timeout, |entry| {
        driver.declaration.timeout(contract, entry)
    })
}
