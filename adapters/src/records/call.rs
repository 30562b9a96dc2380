//! A call that has ended, with the data for its records.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use toolward_host::{CallEvent, LOCAL, Native, Reply, ToolFacts};
use toolward_policy::Decision;

use super::declaration::line;
use super::event::{Status, Transition};
use super::recorder::{Answer, ProgressReport, Recorder};
use super::references::{filled, object};

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct EndedCall<'a> {
    /// How it ended.
    pub reply: &'a Reply,
    /// The tool, if it exists.
    pub tool: Option<&'a ToolFacts>,
    /// The principal for which it was made.
    pub principal: &'a str,
    /// Its input. The record hides the sensitive values.
    pub input: Option<&'a Value>,
    /// The ids that the protocol gives the call.
    pub native: NativeCall,
    /// A person's answer.
    pub answer: Option<Answer>,
    /// The driver's reports.
    pub(crate) reports: Vec<ProgressReport>,
    /// Its events, as the host published them.
    pub(crate) events: Vec<Arc<CallEvent>>,
    /// The ledger's rows about it.
    pub(crate) evidence: Vec<String>,
    /// When it ended.
    pub ended: SystemTime,
}

impl<'a> EndedCall<'a> {
    /// Returns a call that ended just now, made for the local user.
    #[must_use]
    pub fn now(reply: &'a Reply, tool: Option<&'a ToolFacts>, recorder: &Recorder) -> Self {
        Self {
            reply,
            tool,
            principal: LOCAL,
            input: None,
            native: NativeCall::default(),
            answer: recorder.answer(&reply.metadata.invocation),
            reports: recorder.reports(),
            events: Vec::new(),
            evidence: Vec::new(),
            ended: SystemTime::now(),
        }
    }

    /// Adds its events. Events of other calls are left out.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Arc<CallEvent>>) -> Self {
        let own = &self.reply.metadata.invocation;
        let events = events.into_iter();
        self.events = events.filter(|event| event.invocation == *own).collect();
        self
    }

    /// Adds the ledger's rows about the call. `origin` identifies the ledger.
    #[must_use]
    pub fn with_rows(mut self, origin: &str, rows: impl IntoIterator<Item = u64>) -> Self {
        let rows = rows.into_iter();
        self.evidence = rows.map(|seq| format!("ledger:{origin}/{seq}")).collect();
        self
    }

    /// Returns the given ids. If there are none, returns the ids of the call's first event.
    pub(crate) fn native(&self) -> &Native {
        let of_events = self.events.first().map(|event| &event.native);
        match (self.native.call.is_empty(), of_events) {
            (true, Some(of_events)) => of_events,
            _ => &self.native.call,
        }
    }

    pub(crate) fn started(&self) -> SystemTime {
        let took = self.reply.metadata.milliseconds / 1e3;
        let took = Duration::try_from_secs_f64(took).unwrap_or_default();
        self.ended.checked_sub(took).unwrap_or(self.ended)
    }

    /// Whether its driver was granted secrets.
    pub(crate) fn has_secrets(&self) -> bool {
        let grant = self.decision().and_then(|decision| decision.grant());
        grant.is_some_and(|grant| !grant.secrets().is_empty())
    }

    /// The policy's decision about its driver; `None` if no driver was chosen.
    pub(crate) fn decision(&self) -> Option<&'a Decision> {
        let id = self.reply.metadata.driver.as_ref()?;
        let mut drivers = self.tool?.drivers.iter();
        let driver = drivers.find(|driver| *driver.id == **id)?;
        Some(&driver.decision)
    }

    /// Returns the states of the call. The last one is the state in which it ended.
    pub(crate) fn transitions(&self) -> Vec<Transition> {
        let events = self.events.iter();
        let mut all: Vec<Transition> = events.filter_map(|event| Transition::of(event)).collect();
        let ended = json!(Status::of(self.reply));
        let last = all.last_mut();
        // The reply is more precise than the last event: a call that failed by its event may be
        // blocked, or wait for a person.
        let failed = ["failed", "canceled", "timed_out"];
        if let Some(last) = last.filter(|last| failed.iter().any(|one| last.status == *one)) {
            last.status = ended;
        }
        all.dedup_by(|next, before| next.status == before.status);
        all
    }

    /// Returns the input with sensitive values hidden; `None` without a contract, since only the
    /// contract states which values are sensitive.
    pub(crate) fn observable_input(&self) -> Option<Value> {
        let schema = &self.tool?.contract.inputs;
        Some(schema.observable(self.input?))
    }
}

/// The ids that a protocol gives a call. They are the caller's texts, so a record shows them
/// sanitised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeCall {
    /// The call's ids. If there are none, the ids of the call's events are used.
    pub call: Native,
    /// The session. An id of a request is unique within its session.
    pub session: Option<String>,
    /// The version of the protocol.
    pub protocol_version: Option<String>,
}

impl NativeCall {
    /// Returns the field `native_refs` of a record: all ids except `native_call_id`; `None` if
    /// there are none.
    pub(crate) fn refs(&self, call: &Native) -> Option<Value> {
        let refs = object! {
            session ? shown(self.session.as_deref());
            protocol_version ? shown(self.protocol_version.as_deref());
            tool_call_id ? call.tool_call_id.as_ref().map(ToString::to_string);
            trace ? call.traceparent.as_ref().map(ToString::to_string);
        };
        filled(refs)
    }
}

fn shown(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(line)
}
