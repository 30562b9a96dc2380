//! Approval through a client: whether this client may ask a person at all, what a
//! yes stands for, and how a call that waits for one is taken up again.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::InputRequest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolward_host::{ApprovalRequest, Approver, CallError, ErrorCode, Origin, Verdict};

use super::client::{Client, Era, Unanswered};
use super::denied::Denied;
use super::elicit::{self, Choice};
use super::keys::{Keys, keys};
use super::open::{Full, Open, Opened};
use super::seal::PATIENCE;
use super::shown;
use super::standing::{Key, Standing};
use crate::principal::Principal;

/// The key of the question; no driver's can be the same.
pub(crate) const KEY: &str = "toolward:approval";

/// AIP-14 `risk_level` 3: what can't be undone is never approved through a client.
const IRREVERSIBLE: u8 = 3;

/// An approval that was asked for, so that the answer is an answer to it alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The call in all that a person was shown.
    pub(crate) call: Key,
    /// The tool as it stood, whatever the arguments.
    pub(crate) tool: Key,
    /// The tool by its name, as it is used here: what a no is kept under.
    pub(crate) named: Key,
    /// The number of the question, as long as it is open.
    pub(crate) question: u64,
    /// Whether "for this session" was among the choices.
    pub(crate) session: bool,
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Once,
    Session,
    No,
}

/// What people said before.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) standing: Arc<Standing>,
    pub(crate) denied: Arc<Denied>,
    pub(crate) open: Arc<Open>,
}

impl Memory {
    /// Keeps what a person decided. Only who may approve makes anything stand.
    pub(crate) fn keep(&self, principal: &Principal, pending: &Pending, decision: Decision) {
        let name = &principal.name;
        match decision {
            Decision::No => {
                self.denied.no(name, pending.named, Instant::now());
                self.open.end(name, &pending.named);
            }
            Decision::Once => self.denied.yes(name, &pending.named),
            Decision::Session => {
                self.denied.yes(name, &pending.named);
                if principal.may_approve {
                    self.standing.add(name, pending.tool);
                }
            }
        }
    }
}

/// Why nobody was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It can't be undone.
    Irreversible,
    /// The operator does not trust this client to ask.
    Untrusted,
    /// This client can't ask, or not now.
    CanNotAsk,
    /// It is more than a person reads.
    TooLong,
    /// It changed since it was approved.
    Changed,
    /// A person said no a moment ago, and is left alone for as long.
    Paused(Duration),
    /// As many questions as may be are open already.
    Asked(Full),
}

/// Asks through one client, for one call.
pub(crate) struct Through {
    client: Client,
    memory: Memory,
    /// Whether the call goes on after questions: then it was approved before.
    goes_on: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    decided: Option<(Key, bool)>,
    pending: Option<(Pending, InputRequest)>,
    refusal: Option<Refusal>,
}

impl Through {
    /// `decided` is what a person said of a call, if they did.
    pub(crate) fn new(
        client: &Client,
        memory: &Memory,
        goes_on: bool,
        decided: Option<(Key, bool)>,
    ) -> Self {
        Self {
            client: client.clone(),
            memory: memory.clone(),
            goes_on,
            state: Mutex::new(State {
                decided,
                ..State::default()
            }),
        }
    }

    /// The call that a person said yes to.
    pub(crate) fn approved(&self) -> Option<Key> {
        let decided = self.state().decided;
        decided.filter(|(_, yes)| *yes).map(|(call, _)| call)
    }

    /// The approval that has to be asked for before the call is made again.
    pub(crate) fn pending(&self) -> Option<(Pending, InputRequest)> {
        self.state().pending.take()
    }

    /// Says why nobody was asked, and what a person can do; nothing of the policy.
    pub(crate) fn explain(&self, error: &mut CallError, tool: &str) {
        let Some(refusal) = self.state().refusal else {
            return;
        };
        if error.code != ErrorCode::APPROVAL_DENIED || error.origin != Origin::Host {
            return;
        }
        let why = match refusal {
            Refusal::Irreversible => {
                "what it does can't be undone, so no client may answer for a person"
            }
            Refusal::Untrusted => "this client is not trusted to ask for it",
            Refusal::CanNotAsk => "this client can't ask for it",
            Refusal::TooLong => "it is too long to be shown whole",
            Refusal::Changed => "what was approved is not what it would do now",
            Refusal::Paused(_) => "they were asked about this tool a moment ago and did not agree",
            Refusal::Asked(Full::Tool(_)) => "they are being asked about this tool already",
            Refusal::Asked(Full::Person(_)) => {
                "as many questions as may be at once are unanswered already"
            }
        };
        error.message = format!("`{tool}` needs a person's approval, and {why}");
        error.hint = Some(match refusal {
            Refusal::Changed => "make the call anew".to_owned(),
            Refusal::Paused(wait) => {
                error.code = ErrorCode::APPROVAL_PAUSED;
                let seconds = wait.as_secs().saturating_add(1);
                error.cause = Some(json!({ "asked_again_after_seconds": seconds }));
                format!(
                    "go on without it; they can be asked again in {seconds} seconds, or run \
                     `toolward call {tool}` in a terminal themselves"
                )
            }
            Refusal::Asked(Full::Tool(wait) | Full::Person(wait)) => {
                error.code = ErrorCode::APPROVAL_PAUSED;
                let seconds = wait.as_secs().saturating_add(1);
                error.cause = Some(json!({ "asked_again_after_seconds": seconds }));
                format!(
                    "wait for their answers, or go on without it; they can be asked again in \
                     {seconds} seconds at the latest"
                )
            }
            _ => format!(
                "a person can run `toolward call {tool}` in a terminal, where they are asked"
            ),
        });
    }

    async fn verdict(&self, request: &ApprovalRequest) -> Verdict {
        let Keys {
            call,
            tool,
            named,
            anyhow,
        } = keys(request);
        let direct = request.called_by.is_empty();
        if request.risk >= IRREVERSIBLE {
            return self.refuse(Refusal::Irreversible, direct);
        }
        if !self.client.principal.may_approve {
            return self.refuse(Refusal::Untrusted, direct);
        }
        if direct
            && let Some((decided, yes)) = self.state().decided
            && decided == call
        {
            return match yes {
                true => Verdict::Approved,
                false => Verdict::Denied(None),
            };
        }
        let session = !request.each_time;
        if session && self.memory.standing.has(&self.client.principal.name, &tool) {
            return Verdict::Approved;
        }
        if self.goes_on && direct {
            return self.refuse(Refusal::Changed, direct);
        }
        if !self.client.answerable.form {
            return self.refuse(Refusal::CanNotAsk, direct);
        }
        let Some(message) = shown::message(request) else {
            return self.refuse(Refusal::TooLong, direct);
        };
        let Some(question) = elicit::form(message, shown::schema(session)) else {
            return self.refuse(Refusal::CanNotAsk, direct);
        };
        let person = match (self.client.era, &self.client.person) {
            (Era::Session, Some(person)) => Some(person),
            (Era::Stateless, _) if direct => None,
            _ => return self.refuse(Refusal::CanNotAsk, direct),
        };
        let opened = match self.open(&named, &anyhow) {
            Ok(opened) => opened,
            Err(refusal) => return self.refuse(refusal, direct),
        };
        let pending = Pending {
            call,
            tool,
            named,
            question: opened.number,
            session,
        };
        let Some(person) = person else {
            self.state().pending = Some((pending, question));
            return Verdict::Later;
        };
        let mut left = Left {
            through: self,
            pending: &pending,
            unanswered: true,
        };
        let said = tokio::select! {
            biased;
            () = opened.ended.cancelled() => None,
            said = person.ask(question, PATIENCE) => Some(said),
        };
        left.unanswered = false;
        drop(left);
        match said {
            Some(Ok(said)) => self.take(&pending, decision(&said, &pending), direct),
            // They said no to another question about the same tool.
            None => Verdict::Denied(None),
            // An error is no answer of a person's: their no is a result.
            Some(Err(Unanswered::Refused)) => self.refuse(Refusal::CanNotAsk, direct),
            Some(Err(Unanswered::Late | Unanswered::Failed)) => {
                Verdict::Denied(Some("nobody answered".to_owned()))
            }
        }
    }

    /// Opens a question, unless a person is to be left alone about the tool.
    fn open(&self, named: &Key, anyhow: &Key) -> Result<Opened, Refusal> {
        let (principal, now) = (&self.client.principal.name, Instant::now());
        let Memory { denied, open, .. } = &self.memory;
        let opened = open.ask(principal, *named, now, PATIENCE);
        // Looked at when it is open: a no from now on ends it.
        let pauses = [named, anyhow].map(|tool| denied.pause(principal, tool, now));
        if let Some(pause) = pauses.into_iter().flatten().max() {
            if let Ok(opened) = opened {
                open.close(principal, opened.number);
            }
            return Err(Refusal::Paused(pause));
        }
        opened.map_err(Refusal::Asked)
    }

    fn take(&self, pending: &Pending, decision: Decision, direct: bool) -> Verdict {
        self.memory.keep(&self.client.principal, pending, decision);
        if decision == Decision::No {
            return Verdict::Denied(None);
        }
        if direct {
            self.state().decided = Some((pending.call, true));
        }
        Verdict::Approved
    }

    fn refuse(&self, refusal: Refusal, direct: bool) -> Verdict {
        if direct {
            self.state().refusal = Some(refusal);
        }
        Verdict::Unavailable
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that a person is looking at. A call that is given up before they
/// have answered was left unapproved: made again, it would put the question before
/// them again and again.
struct Left<'a> {
    through: &'a Through,
    pending: &'a Pending,
    unanswered: bool,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        let (memory, principal) = (&self.through.memory, &self.through.client.principal);
        memory.open.close(&principal.name, self.pending.question);
        if self.unanswered {
            memory.keep(principal, self.pending, Decision::No);
        }
    }
}

impl Approver for Through {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(self.verdict(request))
    }
}

/// What a person decided. Whatever is no plain yes is a no.
pub(crate) fn decision(said: &Value, pending: &Pending) -> Decision {
    let mut result = said.as_object().cloned().unwrap_or_default();
    let Some(Choice::Accepted(content)) = elicit::choice(&mut result) else {
        return Decision::No;
    };
    match content.get(shown::DECISION).and_then(Value::as_str) {
        Some(shown::ONCE) => Decision::Once,
        Some(shown::SESSION) if pending.session => Decision::Session,
        _ => Decision::No,
    }
}
