//! `tool_invocation`, and all records of one call together.

use serde::Serialize;
use serde_json::Value;

use crate::records::decision::{self, PermissionDecision};
use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::error::ToolError;
use crate::records::event::{Event, Transition};
use crate::records::native::NativeRefs;
use crate::records::permission::rules;
use crate::records::progress::Progress;
use crate::records::references::{time_of, timestamp};
use crate::records::result::{self, ToolResult};
use crate::records::status::Status;
use crate::records::version::SchemaVersion;

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Invocation {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its id, a UUIDv7.
    pub invocation_id: String,
    /// Its id in the protocol over which it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_call_id: Option<String>,
    /// More of what that protocol calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_refs: Option<NativeRefs>,
    /// The tool's id; what the caller asked for, if there is no such tool.
    pub tool_id: String,
    /// The state in which it ended.
    pub status: Status,
    /// The states that it went through, in order. Left out where its events were not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status_transitions: Vec<Transition>,
    /// When it was first made. A call that continues with answers keeps its id.
    pub created_at: String,
    /// When it was made, or made again.
    pub started_at: String,
    /// When it ended.
    pub ended_at: String,
    /// On whose behalf.
    pub actor_ref: String,
    /// What it was called with, sensitive values hidden. Left out where the input is not
    /// known, or there is no such tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observable_input: Option<Value>,
    /// The driver and its bundle, where one was chosen.
    pub runtime_refs: Vec<String>,
    /// The rules that decided.
    pub policy_refs: Vec<String>,
    /// Its `tool_permission_decision`.
    pub permission_decision_refs: Vec<String>,
    /// Its `tool_result`.
    pub result_ref: String,
    /// The rows of the ledger that have it, as `ledger:ORIGIN/SEQ`.
    pub evidence_refs: Vec<String>,
    /// What it took.
    pub telemetry_refs: [Telemetry; 1],
}

/// What a call took.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Telemetry {
    /// From request to result.
    pub duration_ms: f64,
    /// How often the driver was started.
    pub attempts: u32,
    /// In wasmtime's units.
    pub fuel: u64,
    /// In bytes.
    pub peak_memory: u64,
    /// Attempts of the driver beyond its grant.
    pub violations: u64,
}

impl Invocation {
    fn of(call: &EndedCall<'_>, decided: bool, policy_refs: Vec<String>) -> Self {
        let metadata = &call.reply.metadata;
        let id = &metadata.invocation;
        let named = metadata.tool.split('@').next().unwrap_or_default();
        let driver = metadata
            .driver
            .iter()
            .map(|id| format!("driver:{}", line(id)));
        let bundle = metadata
            .bundle
            .iter()
            .map(|id| format!("bundle:{}", line(id)));
        let decisions = decided.then(|| decision::reference(id));
        let started = call.started();
        let native = call.native();
        Self {
            schema_version: SchemaVersion,
            invocation_id: id.clone(),
            native_call_id: native.call_id.as_ref().map(ToString::to_string),
            native_refs: call.native.refs(native),
            tool_id: line(named),
            status: Status::of(call.reply),
            status_transitions: call.transitions(),
            created_at: timestamp(time_of(id).unwrap_or(started)),
            started_at: timestamp(started),
            ended_at: timestamp(call.ended),
            actor_ref: format!("principal:{}", line(call.principal)),
            observable_input: call.observable_input(),
            runtime_refs: driver.chain(bundle).collect(),
            policy_refs,
            permission_decision_refs: decisions.into_iter().collect(),
            result_ref: result::reference(id),
            evidence_refs: call.evidence(),
            telemetry_refs: [Telemetry {
                duration_ms: metadata.milliseconds,
                attempts: metadata.attempts,
                fuel: metadata.fuel,
                peak_memory: metadata.peak_memory,
                violations: metadata.violations_total,
            }],
        }
    }
}

/// All records of one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallRecords<'a> {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// The call.
    pub tool_invocation: Invocation,
    /// What was decided about it; left out where it ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_permission_decision: Option<PermissionDecision>,
    /// What the driver reported, in order.
    pub tool_progress: Vec<Progress>,
    /// What happened to it, in order. Left out where its events were not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_event: Vec<Event>,
    /// How it ended.
    pub tool_result: ToolResult<'a>,
    /// Why it has no output; left out where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_error: Option<ToolError>,
}

impl<'a> CallRecords<'a> {
    /// Those of a call.
    #[must_use]
    pub fn of(call: &EndedCall<'a>) -> Self {
        let invocation = &call.reply.metadata.invocation;
        let decision = PermissionDecision::of(call);
        let policy = match &decision {
            Some(_) => call.decision().map(rules).unwrap_or_default(),
            None => Vec::new(),
        };
        let error = call.reply.result.as_ref().err();
        let reports = call.reports.iter();
        Self {
            schema_version: SchemaVersion,
            tool_invocation: Invocation::of(call, decision.is_some(), policy.clone()),
            tool_permission_decision: decision,
            tool_progress: reports
                .map(|reported| Progress::of(invocation, reported))
                .collect(),
            tool_event: call.events.iter().map(|event| Event::of(event)).collect(),
            tool_result: ToolResult::of(call, policy.clone()),
            tool_error: error.map(|error| ToolError::of(call, error, policy)),
        }
    }
}
