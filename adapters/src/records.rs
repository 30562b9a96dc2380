//! Tools and calls of a host as records of Agent Tool 0.2.0, for programs that store or exchange
//! them. A record shows what the host decided; it does not influence the host.
//!
//! There are records for 16 of the 19 objects of the specification; the MCP server makes
//! `deferred_tool_ref`. `tool_hook`, `tool_scheduler_policy` and `tool_result_persistence` are
//! missing: the host has no hooks, decides about each call separately, and returns every result
//! whole.
//!
//! ```
//! use toolward_host::Host;
//! use toolward_adapters::records::{Described, tool_declaration};
//!
//! fn declare(host: &Host, tool: &str) -> Option<String> {
//!     let info = host.tool(tool)?;
//!     let declaration = tool_declaration(&Described { info, name: "text_stats" });
//!     Some(declaration.to_string())
//! }
//! ```

mod call;
mod declaration;
mod event;
mod interface;
mod permission;
mod recorder;
pub(crate) mod references;
mod result;

use std::time::SystemTime;

use serde_json::{Value, json};
use toolward_contract::capability::Capability;

pub use self::call::{EndedCall, NativeCall};
pub use self::declaration::{Described, amplifier_spec, function_definition, tool_declaration};
use self::declaration::{line, lines};
pub use self::event::{Status, event_record};
use self::interface::{execution_profile, tool_interface};
use self::permission::{permission_profile, rules};
pub use self::recorder::{Answer, Recorder};
use self::references::{object, record, time_of, timestamp};
pub use self::result::amplifier_result;
use self::result::tool_error;

const PRODUCER: &str = concat!("toolward/", env!("CARGO_PKG_VERSION"));

/// Returns the records of a tool. `all` are the tools of its host that `principal` sees at `at`.
/// The declaration contains the input and output contracts and the external mappings. The lists of
/// profiles have an entry for each driver of the tool; the preferred driver comes first.
pub fn tool_records(
    tool: &Described<'_>,
    all: &[Described<'_>],
    principal: &str,
    at: SystemTime,
) -> Value {
    let (info, drivers) = (tool.info, &tool.info.drivers);
    let execution = drivers.iter().map(|one| execution_profile(info, one));
    let permission = drivers.iter().map(|one| permission_profile(info, one));
    record! {
        tool_declaration = tool_declaration(tool);
        tool_interface = tool_interface(tool);
        tool_execution_profiles = execution.collect::<Vec<_>>();
        tool_permission_profiles = permission.collect::<Vec<_>>();
        tool_namespace = tool_namespace(tool, all);
        tool_surface = tool_surface(all, principal, at);
    }
}

/// Returns all records of one call: the call itself, the decision about it unless it ended earlier,
/// the driver's progress reports, the call's events if they were read, its result, and its error if
/// it has no output.
pub fn call_records(call: &EndedCall<'_>) -> Value {
    let id = &call.reply.metadata.invocation;
    let decision = permission::permission_decision(call);
    let policy = match &decision {
        Some(_) => call.decision().map(rules).unwrap_or_default(),
        None => Vec::new(),
    };
    let error = call.reply.result.as_ref().err();
    let reports = call.reports.iter();
    let events = call.events.iter();
    let events: Vec<Value> = events.map(|event| event_record(event)).collect();
    record! {
        tool_invocation = invocation(call, decision.is_some(), &policy);
        tool_permission_decision ? decision;
        tool_progress = reports.map(|one| recorder::record(id, one)).collect::<Vec<_>>();
        tool_event ? not_empty(events);
        tool_result = result::record(call, &policy);
        tool_error ? error.map(|error| tool_error(call, error, &policy));
    }
}

fn invocation(call: &EndedCall<'_>, decided: bool, policy_refs: &[String]) -> Value {
    let facts = &call.reply.metadata;
    let id = &facts.invocation;
    let named = facts.tool.split('@').next().unwrap_or_default();
    let driver = facts.driver.iter().map(|id| format!("driver:{}", line(id)));
    let bundle = facts.bundle.iter().map(|id| format!("bundle:{}", line(id)));
    let decision = decided.then(|| permission::reference(id));
    let (started, native) = (call.started(), call.native());
    record! {
        invocation_id = id;
        native_call_id ? native.call_id.as_ref().map(ToString::to_string);
        native_refs ? call.native.refs(native);
        tool_id = line(named);
        status = Status::of(call.reply);
        status_transitions ? not_empty(call.transitions());
        created_at = timestamp(time_of(id).unwrap_or(started));
        started_at = timestamp(started);
        ended_at = timestamp(call.ended);
        actor_ref = format!("principal:{}", line(call.principal));
        observable_input ? call.observable_input();
        runtime_refs = driver.chain(bundle).collect::<Vec<_>>();
        policy_refs = policy_refs;
        permission_decision_refs = Vec::from_iter(decision);
        result_ref = result::reference(id);
        evidence_refs = call.evidence;
        telemetry_refs = [object! {
            duration_ms = facts.milliseconds;
            attempts = facts.attempts;
            fuel = facts.fuel;
            peak_memory = facts.peak_memory;
            violations = facts.violations_total;
        }];
    }
}

fn not_empty<T>(all: Vec<T>) -> Option<Vec<T>> {
    (!all.is_empty()).then_some(all)
}

/// Returns the tools of a host that a principal sees at `at`.
fn tool_surface(tools: &[Described<'_>], principal: &str, at: SystemTime) -> Value {
    let mut references = Vec::with_capacity(tools.len());
    let (mut loaded, mut blocked) = (Vec::new(), Vec::new());
    let (mut requirements, mut policies, mut bundles) = (Vec::new(), Vec::new(), Vec::new());
    let mut hasher = blake3::Hasher::new();
    for Described { info, name } in tools {
        let reference = info.contract.major_id();
        let refusal = info.refusal();
        let class = refusal.as_ref().map(|error| error.class);
        let without = info.without();
        let mut state = format!("{class:?}");
        for one in &without {
            state.push_str(&format!(" without {one}"));
        }
        for part in [&*reference, &*info.bundle, &*state] {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        match refusal {
            None => {
                loaded.push(reference.clone());
                let declared = info.contract.declaration();
                let is_left_out =
                    |one: &&Capability| without.iter().any(|out| out.capability == **one);
                let given = declared.iter().filter(|one| !is_left_out(one));
                let parts = without.iter().flat_map(|out| &out.given);
                requirements.extend(lines(given.chain(parts)));
            }
            Some(error) => blocked.push(json!({
                "tool_id": info.contract.id.to_string(),
                "name": name,
                "reason": error.class,
                "message": line(&error.message),
            })),
        }
        for driver in &info.drivers {
            policies.extend(rules(&driver.decision));
        }
        references.push(reference);
        bundles.push(format!("bundle:{}", info.bundle));
    }
    for list in [&mut requirements, &mut policies, &mut bundles] {
        list.sort();
        list.dedup();
    }
    let none: [String; 0] = [];
    record! {
        // Equal for surfaces with the same tools in the same states.
        surface_id = format!("surface:{}", hasher.finalize().to_hex());
        scope = format!("principal:{}", line(principal));
        created_at = timestamp(at);
        producer = PRODUCER;
        tool_refs = references;
        loaded_tools = loaded;
        deferred_tools = none;
        blocked_tools = blocked;
        excluded_tools = none;
        default_tool_choice = "auto";
        capability_requirements = requirements;
        policy_refs = policies;
        runtime_refs = bundles;
        surface_reason = "the tools of the bundles that were named, or are installed";
    }
}

/// Returns the namespace of a tool, with all tools of its publisher in that namespace: only tools
/// within one namespace can have colliding names.
fn tool_namespace(tool: &Described<'_>, all: &[Described<'_>]) -> Value {
    let namespace = tool.info.contract.effective_namespace();
    let here = all.iter().filter(|other| {
        other.info.publisher == tool.info.publisher
            && other.info.contract.effective_namespace() == namespace
    });
    record! {
        namespace = line(namespace);
        kind = "publisher";
        source = line(&tool.info.publisher);
        tool_refs = here.map(|one| one.info.contract.major_id()).collect::<Vec<_>>();
    }
}

macro_rules! schemas {
    ($($name:literal = $file:literal,)*) => {
        [$((
            $name,
            include_str!(concat!("../schemas/", $file, ".schema.json")),
        )),*]
    };
}

/// The name of each object, and the JSON Schema of its records, written from the tables of the
/// specification. The schemas allow unknown fields, as the specification requires.
pub const SCHEMAS: [(&str, &str); 16] = schemas! {
    "deferred_tool_ref" = "deferred-tool-ref",
    "tool_declaration" = "tool-declaration",
    "tool_error" = "tool-error",
    "tool_event" = "tool-event",
    "tool_execution_profile" = "tool-execution-profile",
    "tool_external_mapping" = "tool-external-mapping",
    "tool_input_contract" = "tool-input-contract",
    "tool_interface" = "tool-interface",
    "tool_invocation" = "tool-invocation",
    "tool_namespace" = "tool-namespace",
    "tool_output_contract" = "tool-output-contract",
    "tool_permission_decision" = "tool-permission-decision",
    "tool_permission_profile" = "tool-permission-profile",
    "tool_progress" = "tool-progress",
    "tool_result" = "tool-result",
    "tool_surface" = "tool-surface",
};
