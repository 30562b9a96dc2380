//! Records calls in a ledger, as rows for a [`Recorder`]. Only [`crate::pipeline::call_record`]
//! makes rows: one at the end of a call, one at the start of a call that changes something, and one
//! for each step of an approval.
//!
//! The catalogue prepares the names of tools, drivers and rules for records. Texts of callers and
//! tools are payloads, without sensitive values.

mod payloads;
mod rows;

use std::sync::Arc;
use std::time::SystemTime;

use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool as Contract;
use toolward_ledger::record::{
    Action, Answer, Approval, ApprovalEvent, Code, Event, Hash, Hex, Id, Number, Part, Rejected,
    Rule, Tool, Word,
};
use toolward_ledger::{Durability, Pending, Recorder};
use toolward_policy::{AskReason, Decision, RuleId, RuleKind, ToolRoutes};
use toolward_signing::Digest;

use crate::api::approval::{ApprovalScope, Remembered, Verdict};
use crate::api::result::ErrorCode;
pub(crate) use payloads::Keeping;
use rows::entry;
pub(crate) use rows::{CallRows, Parties, RecordedEnd, micros, recorded_id};

/// The recorder of a host's calls, and its settings.
pub(crate) struct Recording {
    pub(crate) recorder: Arc<dyn Recorder>,
    /// Whether the reply of a call that changes something waits until its end is on the disk.
    pub(crate) waits_for_end: bool,
    /// The digest of the policy.
    pub(crate) policy: Option<Hash>,
}

/// A step of an approval: the event, a person's answer, and the remembered approval. `Expired`
/// without a remembered approval means that no one answered in time. The row contains nothing of
/// the question or the input.
pub(crate) type ApprovalStep<'a> = (ApprovalEvent, Option<Answer>, Option<&'a Remembered>);

impl CallRows<'_> {
    /// Records the step. Returns a future to wait for while the queue is full.
    pub(crate) fn approval(
        &mut self,
        call: &Parties,
        (event, answer, kept): ApprovalStep<'_>,
    ) -> Pending {
        // An approval that has expired was given for another call, so no person was asked about
        // this one.
        self.asked |= event != ApprovalEvent::Expired || kept.is_none();
        let covers = match (kept, answer) {
            (Some(kept), _) => Some(kept.scope),
            (None, Some(Answer::Approved)) => Some(ApprovalScope::Call),
            (None, _) => None,
        };
        let (tool, route) = (call.recorded_tool(), call.recorded_route());
        let approval = Approval {
            answer,
            event,
            invocation: Some(self.id),
            person: None,
            rule: route.and_then(|route| route.asks.clone()),
            scope: covers.and_then(|scope| Word::parse(scope.as_str()).ok()),
            tool: tool
                .and_then(|tool| tool.part.as_ref())
                .map(|part| part.id.clone()),
            until: match event {
                ApprovalEvent::Answered => None,
                _ => kept.and_then(|kept| kept.until).map(since_1970),
            },
        };
        let entry = entry(Event::Approval(approval), &call.scope);
        self.recording.recorder.append(entry, Durability::Queued)
    }

    /// Notes that no person was asked now.
    pub(crate) fn not_asked(&mut self, verdict: &Verdict) {
        match verdict {
            // If the earlier answer is about exactly this call, a person was asked about this call.
            Verdict::Remembered(earlier) => self.asked |= earlier.scope == ApprovalScope::Call,
            // The question reached no person, though it may have been sent.
            Verdict::Unavailable => self.asked = false,
            _ => {}
        }
    }
}

fn since_1970(at: SystemTime) -> Number {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    micros(since.unwrap_or_default())
}

/// The publisher of an unsigned bundle. No publisher in a trust store has this name, since their
/// names contain no underscore.
const UNSIGNED: &str = "dev_unsigned";

/// The names of a tool in records.
pub(crate) struct RecordedTool {
    /// `None` if a name does not have a record's form.
    pub(crate) part: Option<Part<Tool>>,
    pub(crate) surface: Option<Hash>,
    pub(crate) mutates: Vec<Action>,
    /// The drivers that can't serve it.
    pub(crate) unserved: Vec<Rejected>,
    /// Declarations that do not have a record's form.
    pub(crate) unfit: Vec<String>,
}

impl RecordedTool {
    /// `surface` is the digest of the bundle's surface.
    pub(crate) fn of(
        (contract, bundle, publisher): (&Contract, &str, &str),
        surface: Option<Digest>,
        planned: &ToolRoutes<'_>,
    ) -> Self {
        let full_id = format!("{}@{}", contract.id, contract.version);
        let mut mutates = Vec::new();
        let mut unfit = Vec::new();
        for capability in &contract.mutates {
            let name = capability.to_string();
            match Action::parse(&name) {
                Ok(action) => mutates.push(action),
                Err(_) => unfit.push(name),
            }
        }
        let unserved = planned.rejected.iter().filter_map(|rejected| {
            let why = rejected.reasons.first()?.code();
            Some(Rejected {
                driver: Id::parse(rejected.implementation.driver.id.as_str()).ok()?,
                why: Code::parse(why).ok()?,
            })
        });
        Self {
            part: part(Tool::parse(&full_id).ok(), bundle, publisher),
            surface: surface.map(|digest| Hex(*digest.as_bytes())),
            mutates,
            unserved: unserved.collect(),
            unfit,
        }
    }
}

/// The names in records of a driver that may serve a tool.
pub(crate) struct RecordedRoute {
    /// `None` if a name does not have a record's form.
    pub(crate) part: Option<Part<Id>>,
    pub(crate) rules: Vec<Rule>,
    /// The rule that requires asking a person, if a rule does.
    pub(crate) asks: Option<Rule>,
}

impl RecordedRoute {
    pub(crate) fn of(
        planned: &toolward_policy::Route<'_>,
        (driver, bundle, publisher): (&Driver, &str, &str),
    ) -> Self {
        let id = Id::parse(driver.id.as_str()).ok();
        let rules = match &planned.decision {
            Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
                let mut all: Vec<Rule> = Vec::new();
                for rule in allowed.rules.iter().chain(&allowed.preapproved) {
                    all.extend(rule_name(rule).filter(|rule| !all.contains(rule)));
                }
                all
            }
            Decision::Deny(denial) => denial.denied_by.iter().filter_map(rule_name).collect(),
        };
        let asks = match &planned.decision {
            Decision::Ask(_, reasons) => reasons.iter().find_map(|reason| match reason {
                AskReason::Rule(rule) => rule_name(rule),
                _ => None,
            }),
            Decision::Allow(_) | Decision::Deny(_) => None,
        };
        Self {
            part: part(id, bundle, publisher),
            rules,
            asks,
        }
    }

    /// This driver, and why it does not take a call.
    pub(crate) fn rejected(&self, why: &ErrorCode) -> Option<Rejected> {
        Some(Rejected {
            driver: self.part.as_ref()?.id.clone(),
            why: Code::parse(why.as_str()).ok()?,
        })
    }
}

fn part<N>(id: Option<N>, bundle: &str, publisher: &str) -> Option<Part<N>> {
    Some(Part {
        bundle: Hash::parse(bundle)?,
        id: id?,
        publisher: publisher_id(publisher)?,
    })
}

/// A publisher in the form of records: `dev:DIR` without the directory, `key:ID` with an
/// underscore.
pub(crate) fn publisher_id(publisher: &str) -> Option<Id> {
    if publisher.starts_with("dev:") {
        return Id::parse(UNSIGNED).ok();
    }
    Id::parse(&publisher.replace(':', "_")).ok()
}

fn rule_name(rule: &RuleId) -> Option<Rule> {
    let kind = match rule.kind {
        RuleKind::Grant => "grant",
        RuleKind::Deny => "deny",
    };
    Rule::parse(&format!("{kind}:{}", rule.number)).ok()
}
