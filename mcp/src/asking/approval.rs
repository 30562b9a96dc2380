//! Approval through a client: whether this client may ask a person at all, what a
//! yes stands for, and how a call that waits for one is taken up again.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::InputRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_host::{ApprovalRequest, Approver, CallError, ErrorCode, Origin, Verdict};

use super::client::{Client, Era};
use super::digest;
use super::elicit::{self, Choice};
use super::seal::PATIENCE;
use super::shown;
use super::standing::{Key, Standing};

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
}

/// Asks through one client, for one call.
pub(crate) struct Through {
    client: Client,
    standing: Arc<Standing>,
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
        standing: &Arc<Standing>,
        goes_on: bool,
        decided: Option<(Key, bool)>,
    ) -> Self {
        Self {
            client: client.clone(),
            standing: standing.clone(),
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
        };
        error.message = format!("`{tool}` needs a person's approval, and {why}");
        error.hint = Some(match refusal {
            Refusal::Changed => "make the call anew".to_owned(),
            _ => format!(
                "a person can run `toolward call {tool}` in a terminal, where they are asked"
            ),
        });
    }

    async fn verdict(&self, request: &ApprovalRequest) -> Verdict {
        let (call, tool) = keys(request);
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
        if session && self.standing.has(&self.client.principal.name, &tool) {
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
        let pending = Pending {
            call,
            tool,
            session,
        };
        match (self.client.era, &self.client.person) {
            (Era::Session, Some(person)) => {
                let said = person.ask(question, PATIENCE).await;
                let Ok(said) = said else {
                    return Verdict::Denied(Some("nobody answered".to_owned()));
                };
                self.take(&pending, decision(&said, &pending), direct)
            }
            (Era::Stateless, _) if direct => {
                self.state().pending = Some((pending, question));
                Verdict::Later
            }
            _ => self.refuse(Refusal::CanNotAsk, direct),
        }
    }

    fn take(&self, pending: &Pending, decision: Decision, direct: bool) -> Verdict {
        match decision {
            Decision::No => return Verdict::Denied(None),
            Decision::Session => (self.standing).add(&self.client.principal.name, pending.tool),
            Decision::Once => {}
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

/// What identifies a call, and what identifies its tool whatever the arguments:
/// all that a person is shown, and the bundles behind it.
fn keys(request: &ApprovalRequest) -> (Key, Key) {
    let chain: Vec<_> = request
        .chain
        .iter()
        .map(|chained| (&chained.tool, &chained.effects, chained.risk))
        .collect();
    let tool = (
        (&request.principal, &request.tool_id, &request.name),
        (&request.publisher, &request.bundle),
        (
            &request.driver,
            &request.driver_publisher,
            &request.driver_bundle,
        ),
        (&request.effects, request.risk, &request.reasons),
        (chain, &request.apart, &request.called_by),
    );
    let input = *digest::value(&request.input).as_bytes();
    let call = (&tool, &request.tool, input);
    (key(b"call", &call), key(b"tool", &tool))
}

/// JSON tells where a text ends, so that no two different values are written alike.
fn key(kind: &[u8], value: &impl Serialize) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(kind);
    hasher.update(&serde_json::to_vec(value).unwrap_or_default());
    *hasher.finalize().as_bytes()
}
