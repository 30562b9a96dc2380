//! Approval through a client: whether this client may ask a person at all, what an
//! approval covers, and how a call that waits for one is resumed.

pub(crate) mod denial_backoff;
pub(crate) mod denials;
mod keys;
mod memory;
pub(crate) mod pending_approvals;
pub(crate) mod prompt;
pub(crate) mod session_approvals;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::InputRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_host::{
    ApprovalRequest, ApprovalScope, Approver, CallError, ErrorCode, Origin, Remembered, Verdict,
};

use crate::client::{Client, Era, Person, Unanswered};
use crate::elicitation::questions::{self, Choice};
use crate::elicitation::request_state::ANSWER_TIMEOUT;
use keys::{ApprovalKeys, keys};
pub(crate) use memory::{ApprovalDecision, ApprovalMemory, Decided, DecidedBy};
use pending_approvals::{Full, Opened};
use session_approvals::Found;

/// The key of the approval question, which no driver's question can have.
pub(crate) const KEY: &str = "toolward:approval";

/// Identifies an approved call or tool: a digest, see [`ApprovalKeys`].
pub(crate) type ApprovalKey = [u8; 32];

/// AIP-14 `risk_level` 3: what can't be undone is never approved through a client.
const IRREVERSIBLE_RISK: u8 = 3;

/// What a person can do if no client may ask them.
const IN_A_TERMINAL: &str = "a person can make the call themselves in a terminal of the server's machine, where they are asked";

/// The operator's standing yes.
const PREAPPROVED: &str = ", or approve it in advance by `preapproved = true` in the tool's grant";

/// Longest name of a client that `[clients]` may have, in characters.
const MAX_NAME_CHARS: usize = 200;

/// An approval question, sealed so that an answer counts for it alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingApproval {
    /// The call, with everything that the person was shown.
    pub(crate) call: ApprovalKey,
    /// The tool as it was, with any arguments.
    pub(crate) tool: ApprovalKey,
    /// The tool by its name and its callers: the key of a denial.
    pub(crate) named: ApprovalKey,
    /// The number of the question while it is open.
    pub(crate) question: u64,
    /// Whether "for this session" was among the choices.
    pub(crate) session: bool,
}

/// Why no one was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAsked {
    /// It can't be undone.
    Irreversible,
    /// The operator does not trust this client to ask.
    Untrusted {
        /// Whether a grant could stand for the answer.
        can_be_preapproved: bool,
    },
    /// This client can't ask, or can't now.
    CanNotAsk,
    /// It is too long for a person to read.
    TooLong,
    /// It changed since it was approved.
    Changed,
    /// A person denied it a moment ago; the backoff lasts this long.
    Paused(Duration),
    /// The limit of open questions is reached.
    Asked(Full),
}

/// Asks through one client, for one call.
pub(crate) struct ClientApprover {
    client: Client,
    memory: ApprovalMemory,
    /// Whether the call resumes after questions, so that it was approved before.
    resumes: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    decided: Option<Decided>,
    /// Whether a request was answered with what was decided.
    used: bool,
    pending: Option<(PendingApproval, InputRequest)>,
    not_asked: Option<NotAsked>,
}

impl ClientApprover {
    /// `decided` is a person's decision about a call, if there is one.
    pub(crate) fn new(
        client: &Client,
        memory: &ApprovalMemory,
        resumes: bool,
        decided: Option<Decided>,
    ) -> Self {
        Self {
            client: client.clone(),
            memory: memory.clone(),
            resumes,
            state: Mutex::new(State {
                decided,
                ..State::default()
            }),
        }
    }

    /// The call that a person approved.
    pub(crate) fn approved(&self) -> Option<ApprovalKey> {
        let decided = self.state().decided;
        let approved = decided.filter(|decided| decided.is_approved());
        approved.map(|decided| decided.call)
    }

    /// The approval that has to be asked for before the call is made again.
    pub(crate) fn pending(&self) -> Option<(PendingApproval, InputRequest)> {
        self.state().pending.take()
    }

    /// Explains why no one was asked and what a person can do. Reveals nothing of the
    /// policy.
    pub(crate) fn explain(&self, error: &mut CallError, tool: &str) {
        let Some(not_asked) = self.state().not_asked else {
            return;
        };
        if error.code != ErrorCode::APPROVAL_DENIED || error.origin != Origin::Host {
            return;
        }
        let why = match not_asked {
            NotAsked::Irreversible => {
                "what it does can't be undone, so no client may answer for a person"
            }
            NotAsked::Untrusted { .. } => "this client is not trusted to ask for it",
            NotAsked::CanNotAsk => "this client can't ask for it",
            NotAsked::TooLong => "it is too long to be shown whole",
            NotAsked::Changed => "what was approved is not what it would do now",
            NotAsked::Paused(_) => "they were asked about this tool a moment ago and did not agree",
            NotAsked::Asked(Full::Tool(_)) => "they are being asked about this tool already",
            NotAsked::Asked(Full::Person(_)) => {
                "as many questions as may be at once are unanswered already"
            }
        };
        error.message = format!("`{tool}` needs a person's approval, and {why}");
        error.hint = Some(match not_asked {
            NotAsked::Changed => "make the call again".to_owned(),
            NotAsked::Paused(wait) => {
                error.code = ErrorCode::APPROVAL_PAUSED;
                let seconds = wait.as_secs().saturating_add(1);
                error.cause = Some(json!({ "asked_again_after_seconds": seconds }));
                format!(
                    "go on without it; they can be asked again in {seconds} seconds, or make \
                     the call themselves in a terminal of the server's machine"
                )
            }
            NotAsked::Asked(Full::Tool(wait) | Full::Person(wait)) => {
                error.code = ErrorCode::APPROVAL_PAUSED;
                let seconds = wait.as_secs().saturating_add(1);
                error.cause = Some(json!({ "asked_again_after_seconds": seconds }));
                format!(
                    "wait for their answers, or go on without it; they can be asked again in \
                     {seconds} seconds at the latest"
                )
            }
            NotAsked::Untrusted { can_be_preapproved } => self.trust_hint(can_be_preapproved),
            _ => IN_A_TERMINAL.to_owned(),
        });
    }

    /// What the operator can write for a client that may not ask. A remote client learns nothing of the policy.
    fn trust_hint(&self, can_be_preapproved: bool) -> String {
        let Some(name) = &self.client.untrusted_name else {
            return IN_A_TERMINAL.to_owned();
        };
        let is_writable = !name.is_empty() && visible_line(name, MAX_NAME_CHARS) == *name;
        let by = match is_writable {
            true => {
                // JSON and TOML write such a line alike.
                let name = Value::from(name.as_str());
                format!(
                    "by `may_approve = [{name}]` in `[clients]` of toolward.toml (add {name} to the list if there is one)"
                )
            }
            false => "by `--trust-client`, since `[clients]` can't have its name".to_owned(),
        };
        let preapproved = if can_be_preapproved { PREAPPROVED } else { "" };
        format!(
            "{IN_A_TERMINAL}; if this client shows questions to a person, its operator can let it ask {by}{preapproved}, \
             and start the server again"
        )
    }

    async fn verdict(&self, request: &ApprovalRequest) -> Verdict {
        let keys = keys(request);
        let direct = request.called_by.is_empty();
        match self.decided(request, &keys) {
            Ok(Some(verdict)) => return verdict,
            Ok(None) => {}
            Err(not_asked) => return self.refuse(not_asked, direct),
        }
        let session = !request.each_time;
        let (person, question) = match self.question(request, session) {
            Ok(asked) => asked,
            Err(not_asked) => return self.refuse(not_asked, direct),
        };
        let opened = match self.open(&keys.named, &keys.any_caller) {
            Ok(opened) => opened,
            Err(not_asked) => return self.refuse(not_asked, direct),
        };
        let pending = PendingApproval {
            call: keys.call,
            tool: keys.tool,
            named: keys.named,
            question: opened.number,
            session,
        };
        request.mark_asked();
        let Some(person) = person else {
            self.state().pending = Some((pending, question));
            return Verdict::Later;
        };
        self.ask_now(person, question, &pending, &opened, direct)
            .await
    }

    /// The verdict that needs no question: the client may not approve this, or a person
    /// has decided before.
    fn decided(
        &self,
        request: &ApprovalRequest,
        keys: &ApprovalKeys,
    ) -> Result<Option<Verdict>, NotAsked> {
        let direct = request.called_by.is_empty();
        if request.risk >= IRREVERSIBLE_RISK {
            return Err(NotAsked::Irreversible);
        }
        if !self.client.principal.may_approve {
            return Err(NotAsked::Untrusted {
                can_be_preapproved: request.can_be_preapproved,
            });
        }
        let principal = &self.client.principal;
        let decided = self.state().decided;
        if let Some(decided) = decided.filter(|decided| direct && decided.call == keys.call) {
            self.state().used = true;
            return Ok(Some(match decided.by {
                DecidedBy::Before => Verdict::Remembered(Remembered {
                    scope: ApprovalScope::Call,
                    until: None,
                }),
                DecidedBy::Answer(decision) => Verdict::Answered {
                    approved: decided.is_approved(),
                    remembered: self.memory.keep(principal, keys.tool, decision),
                },
            }));
        }
        let found = self.memory.session.find(&principal.name, &keys.tool);
        match found.filter(|_| !request.each_time) {
            Some(Found::Valid(earlier)) => return Ok(Some(Verdict::Remembered(earlier))),
            Some(Found::Expired(earlier)) => request.mark_expired(earlier),
            None => {}
        }
        if self.resumes && direct {
            return Err(NotAsked::Changed);
        }
        Ok(None)
    }

    /// The question, and the person to ask while the call waits. Without one, the
    /// client calls again with the answer.
    fn question(
        &self,
        request: &ApprovalRequest,
        session: bool,
    ) -> Result<(Option<&dyn Person>, InputRequest), NotAsked> {
        if !self.client.answerable.form {
            return Err(NotAsked::CanNotAsk);
        }
        let message = prompt::message(request).ok_or(NotAsked::TooLong)?;
        let question =
            questions::form(message, prompt::schema(session)).ok_or(NotAsked::CanNotAsk)?;
        match (self.client.era, &self.client.person) {
            (Era::Session, Some(person)) => Ok((Some(person.as_ref()), question)),
            (Era::Stateless, _) if request.called_by.is_empty() => Ok((None, question)),
            _ => Err(NotAsked::CanNotAsk),
        }
    }

    /// Asks a person while the call waits.
    async fn ask_now(
        &self,
        person: &dyn Person,
        question: InputRequest,
        pending: &PendingApproval,
        opened: &Opened,
        direct: bool,
    ) -> Verdict {
        let mut guard = UnansweredGuard {
            approver: self,
            pending,
            unanswered: true,
        };
        let said = tokio::select! {
            biased;
            () = opened.ended.cancelled() => None,
            said = person.ask(question, ANSWER_TIMEOUT) => Some(said),
        };
        guard.unanswered = false;
        drop(guard);
        match said {
            Some(Ok(said)) => self.take(pending, decision(&said, pending), direct),
            // They denied another question about the same tool.
            None => Verdict::Withdrawn,
            // An error is not a person's answer: their denial is a result.
            Some(Err(Unanswered::Refused)) => self.refuse(NotAsked::CanNotAsk, direct),
            Some(Err(Unanswered::Late | Unanswered::Failed)) => Verdict::Unanswered,
        }
    }

    /// Opens a question, unless the tool is backed off.
    fn open(&self, named: &ApprovalKey, any_caller: &ApprovalKey) -> Result<Opened, NotAsked> {
        let (principal, now) = (&self.client.principal.name, Instant::now());
        let ApprovalMemory {
            backoff, pending, ..
        } = &self.memory;
        let opened = pending.open(principal, *named, now, ANSWER_TIMEOUT);
        // Checked after opening: a denial from now on cancels the question.
        let pauses = [named, any_caller].map(|tool| backoff.remaining(principal, tool, now));
        if let Some(pause) = pauses.into_iter().flatten().max() {
            if let Ok(opened) = opened {
                pending.close(principal, opened.number);
            }
            return Err(NotAsked::Paused(pause));
        }
        opened.map_err(NotAsked::Asked)
    }

    fn take(&self, pending: &PendingApproval, decision: ApprovalDecision, direct: bool) -> Verdict {
        let principal = &self.client.principal;
        self.memory.heed(principal, pending, decision);
        if decision == ApprovalDecision::Deny {
            return Verdict::Denied(None);
        }
        if direct {
            self.state().decided = Some(Decided::before(pending.call));
        }
        match self.memory.keep(principal, pending.tool, decision) {
            Some(kept) => Verdict::ApprovedFor(kept),
            None => Verdict::Approved,
        }
    }

    fn refuse(&self, not_asked: NotAsked, direct: bool) -> Verdict {
        if direct {
            self.state().not_asked = Some(not_asked);
        }
        Verdict::Unavailable
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a question that is dropped unanswered as denied. Otherwise a client could
/// cancel the call and make it again, and put the question to a person over and over.
struct UnansweredGuard<'a> {
    approver: &'a ClientApprover,
    pending: &'a PendingApproval,
    unanswered: bool,
}

impl Drop for UnansweredGuard<'_> {
    fn drop(&mut self) {
        let (memory, principal) = (&self.approver.memory, &self.approver.client.principal);
        memory.pending.close(&principal.name, self.pending.question);
        if self.unanswered {
            memory.heed(principal, self.pending, ApprovalDecision::Deny);
        }
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(self.verdict(request))
    }

    fn unused_answer(&self) -> Option<Verdict> {
        let state = self.state();
        let decided = state.decided.filter(|_| !state.used)?;
        match decided.by {
            DecidedBy::Answer(_) => Some(Verdict::Answered {
                approved: decided.is_approved(),
                remembered: None,
            }),
            DecidedBy::Before => None,
        }
    }
}

/// What a person decided. Anything but an explicit yes is treated as a denial.
pub(crate) fn decision(said: &Value, pending: &PendingApproval) -> ApprovalDecision {
    let mut result = said.as_object().cloned().unwrap_or_default();
    let Some(Choice::Accepted(content)) = questions::choice(&mut result) else {
        return ApprovalDecision::Deny;
    };
    match content.get(prompt::DECISION).and_then(Value::as_str) {
        Some(prompt::ONCE) => ApprovalDecision::Once,
        Some(prompt::SESSION) if pending.session => ApprovalDecision::Session,
        _ => ApprovalDecision::Deny,
    }
}
