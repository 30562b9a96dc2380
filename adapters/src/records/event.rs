//! `tool_event`: an event of a call, and the states of a call.

use serde::Serialize;
use serde_json::Value;

use toolward_host::{
    CallCost, CallDecision, CallError, CallEvent, CallEventKind, Cancellation, ErrorClass,
    ErrorCode, Origin, Reply, TraceParent,
};

use super::references::{object, record, timestamp};

/// Returns the record of an event. It contains ids, codes and numbers, but nothing of the call's
/// input or output.
pub fn event_record(event: &CallEvent) -> Value {
    let tool = event.tool.as_deref();
    let tool = tool.map(|tool| tool.split('@').next().unwrap_or_default());
    let native = &event.native;
    let trace = native.traceparent.as_ref().map(|trace| [trace_ref(trace)]);
    let mut record = record! {
        event_id = event.id;
        event_type = event.kind.class();
        source = "toolward";
        time = timestamp(event.at);
        invocation_id = event.invocation;
        parent_invocation_id ? &event.parent;
        native_call_id ? native.call_id.as_ref().map(ToString::to_string);
        tool_call_id ? native.tool_call_id.as_ref().map(ToString::to_string);
        trace_refs ? trace;
        tool_id ? tool;
        actor_ref = format!("principal:{}", event.principal);
        status ? status(&event.kind);
    };
    if let (Value::Object(record), Value::Object(details)) = (&mut record, details(&event.kind)) {
        record.extend(details);
    }
    record
}

/// Returns a trace and the caller's span in it (W3C Trace Context).
fn trace_ref(traceparent: &TraceParent) -> Value {
    object! {
        trace_id = traceparent.trace_id();
        span_id = traceparent.span_id();
    }
}

/// Returns the additional details of events of some classes.
fn details(kind: &CallEventKind) -> Value {
    match kind {
        CallEventKind::ValidationFailed { code } => object! { error_code = code; },
        CallEventKind::PermissionDecided { decision } => object! { decision = decision.as_str(); },
        CallEventKind::Started { driver, attempt } => object! {
            runtime_ref = format!("driver:{driver}");
            attempt = attempt;
        },
        CallEventKind::Progress { done, total } => object! { done = done; total ? total; },
        CallEventKind::Yielded { questions } => object! { questions = questions; },
        CallEventKind::Redacted { texts } => object! { redacted_texts = texts; },
        CallEventKind::ResultCreated { bytes, canceled } => object! {
            cancel_reason ? canceled.map(Cancellation::as_str);
            result_size_bytes = bytes;
        },
        CallEventKind::Succeeded(cost) | CallEventKind::TimedOut(cost) => {
            took(cost, Value::default())
        }
        CallEventKind::Canceled { reason, cost } => {
            took(cost, object! { cancel_reason = reason.as_str(); })
        }
        CallEventKind::Failed { code, class, cost } => {
            took(cost, object! { error_code = code; error_class = class; })
        }
        _ => Value::default(),
    }
}

/// Adds the cost of the call to these details.
fn took(cost: &CallCost, details: Value) -> Value {
    let mut took = object! {
        duration_us = cost.micros;
        fuel = cost.fuel;
        peak_memory = cost.peak_memory;
        violations = cost.violations;
    };
    if let (Value::Object(mut details), Value::Object(took)) = (details, &mut took) {
        details.append(took);
        *took = details;
    }
    took
}

/// A state of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Transition {
    pub(crate) status: Value,
    /// The time from which the call is in the state.
    pub(crate) at: String,
}

impl Transition {
    /// Returns the state after an event, if the event changes the state.
    pub(crate) fn of(event: &CallEvent) -> Option<Self> {
        Some(Self {
            status: status(&event.kind)?.into(),
            at: timestamp(event.at),
        })
    }
}

/// Returns the state of a call after an event, if the event changes the state.
fn status(kind: &CallEventKind) -> Option<&'static str> {
    Some(match kind {
        CallEventKind::Planned => "planned",
        CallEventKind::Selected => "selected",
        CallEventKind::ArgumentsReady => "arguments_ready",
        CallEventKind::ValidationFailed {
            code: "input_invalid",
        } => "schema_parse_failed",
        CallEventKind::ValidationFailed { .. } => "validation_failed",
        CallEventKind::PermissionRequested => "awaiting_approval",
        CallEventKind::PermissionDecided { decision } => match decision {
            CallDecision::Approved => "approved",
            CallDecision::Denied => "denied",
            _ => return None,
        },
        CallEventKind::Queued => "queued",
        CallEventKind::Started { .. } => "running",
        CallEventKind::PartialResult => "partial_result",
        CallEventKind::Yielded { .. } => "needs_input",
        CallEventKind::Succeeded(_) => "succeeded",
        CallEventKind::Failed { .. } => "failed",
        CallEventKind::Canceled { .. }
        | CallEventKind::ResultCreated {
            canceled: Some(_), ..
        } => "canceled",
        CallEventKind::TimedOut(_) => "timed_out",
        _ => return None,
    })
}

/// The states in which a call can end. The call's earlier states come from its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It has an output.
    Succeeded,
    /// The driver asks, and the call can continue with answers.
    NeedsInput,
    /// The input does not match the contract's schema.
    SchemaParseFailed,
    /// The input matches the schema, but no driver accepts it.
    ValidationFailed,
    /// A person is asked, and has not answered yet.
    AwaitingApproval,
    /// A person denied it or could not be asked, or its caller may not call it.
    Denied,
    /// Policy blocks it, or a requirement is missing.
    Blocked,
    /// The deadline passed.
    TimedOut,
    /// It was cancelled.
    Canceled,
    /// It failed in any other way.
    Failed,
}

impl Status {
    /// Returns the state of a call with this reply.
    pub fn of(reply: &Reply) -> Self {
        match &reply.result {
            Ok(_) => Self::Succeeded,
            Err(_) if reply.asked.is_some() => Self::NeedsInput,
            Err(error) => Self::of_error(error, reply.metadata.attempts > 0),
        }
    }

    fn of_error(error: &CallError, ran: bool) -> Self {
        if error.origin == Origin::Driver {
            return Self::Failed;
        }
        match error.class {
            ErrorClass::SchemaValidationFailed => Self::SchemaParseFailed,
            ErrorClass::InvalidArguments => Self::ValidationFailed,
            ErrorClass::ApprovalRejected if error.code == ErrorCode::APPROVAL_PENDING => {
                Self::AwaitingApproval
            }
            ErrorClass::ApprovalRejected | ErrorClass::PermissionDenied => Self::Denied,
            ErrorClass::PolicyBlocked | ErrorClass::CapabilityGap => Self::Blocked,
            ErrorClass::SetupRequired
            | ErrorClass::CredentialMissing
            | ErrorClass::DependencyUnavailable
                if !ran =>
            {
                Self::Blocked
            }
            ErrorClass::Timeout => Self::TimedOut,
            ErrorClass::Canceled => Self::Canceled,
            _ => Self::Failed,
        }
    }
}
