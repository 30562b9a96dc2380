//! Rows about a person's approval of a call: that they were asked, what they answered, and how long that holds. No
//! row has a word of the question or of the input.

use std::time::SystemTime;

use toolward_ledger::record::{Answer, Approval, ApprovalEvent, Event, Number, Word};
use toolward_ledger::{Durability, Pending};

use super::rows::{CallRows, Parties, entry, micros};
use crate::api::approval::{ApprovalScope, Remembered};

/// What happens to an approval.
#[derive(Clone, Copy)]
pub(crate) enum ApprovalStep<'a> {
    /// A person is asked.
    Asked,
    /// They approved the call, or what is kept of it covers more.
    Approved(Option<&'a Remembered>),
    /// They denied it.
    Denied,
    /// What they approved is kept.
    Remembered(&'a Remembered),
    /// Another answer of theirs ended the question.
    Revoked,
    /// What was kept has run out; without it, the time for an answer has.
    Expired(Option<&'a Remembered>),
}

impl CallRows<'_> {
    /// Records it. Returns what to wait for while the queue is full.
    pub(crate) fn approval(&mut self, call: &Parties, said: ApprovalStep<'_>) -> Pending<()> {
        let (event, answer, kept) = match said {
            ApprovalStep::Asked => (ApprovalEvent::Asked, None, None),
            ApprovalStep::Approved(kept) => {
                let answer = Some(Answer::Approved);
                (ApprovalEvent::Answered, answer, kept)
            }
            ApprovalStep::Denied => (ApprovalEvent::Answered, Some(Answer::Denied), None),
            ApprovalStep::Remembered(kept) => (ApprovalEvent::Remembered, None, Some(kept)),
            ApprovalStep::Revoked => (ApprovalEvent::Revoked, None, None),
            ApprovalStep::Expired(kept) => (ApprovalEvent::Expired, None, kept),
        };
        // An approval that ran out was about another call.
        self.asked |= !matches!(said, ApprovalStep::Expired(Some(_)));
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

    /// The question reached no person, though it may have been sent.
    pub(crate) fn reached_nobody(&mut self) {
        self.asked = false;
    }

    /// An earlier answer covers the call. One about this very call makes it a call that a person was asked about.
    pub(crate) fn remembers(&mut self, earlier: &Remembered) {
        self.asked |= earlier.scope == ApprovalScope::Call;
    }
}

fn since_1970(at: SystemTime) -> Number {
    micros(
        at.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default(),
    )
}
