//! `tool_invocation`, and all records of one call together.

use serde_json::Value;

use super::event::Status;
use super::references::{object, record};
use super::result::tool_error;
use super::{permission, recorder, result};
use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::event::event_record;
use crate::records::permission::rules;
use crate::records::references::{time_of, timestamp};

/// All records of one call: the call itself, what was decided about it if it did not end before, what the driver
/// reported, its events if they were read, its result, and its error if it has no output.
#[must_use]
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
        evidence_refs = call.evidence();
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
