//! `tool_event`: something that happened to a call, and the states that a call went through.

use serde::Serialize;
use toolward_host::{
    CallCost, CallDecision, CallEvent, CallEventKind, Cancellation, ErrorClass, TraceParent,
};

use crate::records::references::timestamp;
use crate::records::version::SchemaVersion;

/// Something that happened to a call. Ids, codes and numbers, and nothing of what the call
/// was made with or returned.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its id, a UUIDv7.
    pub event_id: String,
    /// Which of the event classes it is.
    pub event_type: &'static str,
    /// Whose event it is: always `toolward`.
    pub source: &'static str,
    /// When it happened.
    pub time: String,
    /// The invocation's id.
    pub invocation_id: String,
    /// The invocation that made the call, where a tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_invocation_id: Option<String>,
    /// Its id in the protocol over which it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_call_id: Option<String>,
    /// The id that a model's API gave the tool call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The trace that the call is part of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace_refs: Vec<TraceRef>,
    /// The tool's id, once it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// On whose behalf: an id that is random for each process.
    pub actor_ref: String,
    /// The state in which the call is from now on, where the event is a change of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// More about it.
    #[serde(flatten)]
    pub details: EventDetails,
}

/// A trace, and the caller's span in it (W3C Trace Context).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TraceRef {
    /// 32 hexadecimal digits.
    pub trace_id: String,
    /// 16 hexadecimal digits.
    pub span_id: String,
}

impl TraceRef {
    fn of(traceparent: &TraceParent) -> Self {
        Self {
            trace_id: traceparent.trace_id().to_owned(),
            span_id: traceparent.span_id().to_owned(),
        }
    }
}

/// What events of some classes say.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EventDetails {
    /// Why a call failed: a code of the host, or `driver`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<&'static str>,
    /// The class of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    /// Why a call was cancelled: `caller`, `disconnected`, `shutdown` or `parent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<&'static str>,
    /// `allowed`, `approved` or `denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// The driver that was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_ref: Option<String>,
    /// The number of the attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How much is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// How much there is, where the driver knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// How many questions the driver asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<u64>,
    /// In how many texts of the result bytes of secrets were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted_texts: Option<u64>,
    /// Bytes that the driver returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_size_bytes: Option<u64>,
    /// Microseconds from request to result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Units of fuel of all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// The peak memory of an attempt, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// Attempts of the driver beyond its grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violations: Option<u64>,
}

impl Event {
    /// The record of an event.
    #[must_use]
    pub fn of(event: &CallEvent) -> Self {
        let tool = event.tool.as_deref();
        let tool = tool.map(|tool| tool.split('@').next().unwrap_or_default());
        let native = &event.native;
        Self {
            schema_version: SchemaVersion,
            event_id: event.id.clone(),
            event_type: event.kind.class(),
            source: "toolward",
            time: timestamp(event.at),
            invocation_id: event.invocation.clone(),
            parent_invocation_id: event.parent.clone(),
            native_call_id: native.call_id.as_ref().map(ToString::to_string),
            tool_call_id: native.tool_call_id.as_ref().map(ToString::to_string),
            trace_refs: native.traceparent.iter().map(TraceRef::of).collect(),
            tool_id: tool.map(str::to_owned),
            actor_ref: format!("principal:{}", event.principal),
            status: status(&event.kind),
            details: EventDetails::of(&event.kind),
        }
    }
}

impl EventDetails {
    fn of(kind: &CallEventKind) -> Self {
        let none = Self::default();
        match kind {
            CallEventKind::ValidationFailed { code } => Self {
                error_code: Some(code),
                ..none
            },
            CallEventKind::PermissionDecided { decision } => Self {
                decision: Some(decision.as_str()),
                ..none
            },
            CallEventKind::Started { driver, attempt } => Self {
                runtime_ref: Some(format!("driver:{driver}")),
                attempt: Some(*attempt),
                ..none
            },
            CallEventKind::Progress { done, total } => Self {
                done: Some(*done),
                total: *total,
                ..none
            },
            CallEventKind::Yielded { questions } => Self {
                questions: Some(*questions),
                ..none
            },
            CallEventKind::Redacted { texts } => Self {
                redacted_texts: Some(*texts),
                ..none
            },
            CallEventKind::ResultCreated { bytes, canceled } => Self {
                result_size_bytes: Some(*bytes),
                cancel_reason: canceled.map(Cancellation::as_str),
                ..none
            },
            CallEventKind::Succeeded(cost) | CallEventKind::TimedOut(cost) => Self::took(cost),
            CallEventKind::Canceled { reason, cost } => Self {
                cancel_reason: Some(reason.as_str()),
                ..Self::took(cost)
            },
            CallEventKind::Failed { code, class, cost } => Self {
                error_code: Some(code),
                error_class: Some(*class),
                ..Self::took(cost)
            },
            _ => none,
        }
    }

    fn took(cost: &CallCost) -> Self {
        Self {
            duration_us: Some(cost.micros),
            fuel: Some(cost.fuel),
            peak_memory: Some(cost.peak_memory),
            violations: Some(cost.violations),
            ..Self::default()
        }
    }
}

/// A state that a call went through.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Transition {
    /// The state.
    pub status: &'static str,
    /// Since when.
    pub at: String,
}

impl Transition {
    /// The state after an event, where that is a change.
    pub(crate) fn of(event: &CallEvent) -> Option<Self> {
        Some(Self {
            status: status(&event.kind)?,
            at: timestamp(event.at),
        })
    }
}

/// The state of a call after an event, where that is a change.
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
