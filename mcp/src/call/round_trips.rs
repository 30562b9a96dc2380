//! The round trips of one call: the person behind the client answers a driver's questions and
//! approval questions, and the call continues with the answers. A client of the session era is
//! asked while the call waits. A client of the stateless era carries sealed state from the question
//! to the answer.

#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod backoff_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting_tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ElicitationCapability, ErrorData,
    FormElicitationCapability, InputRequest, InputRequiredResult, InputResponses, JsonObject,
    RootsCapabilities, SamplingCapability,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolward_host::{
    Answer, Asked, CallEnd, CallError, ErrorClass, ErrorCode, Host, Origin, Reply, Request, Resume,
    SharedState, digest,
};
use toolward_state::{
    ApprovalKey, Approvals, Binding, Keys, PersonsAnswer, StateError, Unsealed, settled,
};

use super::runtime::CallRuntime;
use crate::approval::{
    self, ApprovalDecision, ApprovalToAsk, ClientApprover, Decided, OpenQuestion, PendingApproval,
};
use crate::client::{Client, Era, Unanswered};
use crate::elicitation::{self, ANSWER_TIMEOUT, state_deadline};

/// How a call ended for the client: with a reply, with a question to the client, or with a fault of
/// the protocol. An example of a fault is a client that lacks a capability that the call needs.
pub(crate) type ClientEnd = CallEnd<Box<Reply>, InputRequiredResult, ErrorData>;

/// Open questions, approvals and denials of all clients.
pub(crate) struct RoundTrips {
    keys: Arc<dyn Keys>,
    approvals: Arc<dyn Approvals>,
}

/// How often a question is repeated to a client that leaves answers out.
const MAX_REPEATS: u8 = 3;

/// The state that a client carries from a question to its answer.
#[derive(Serialize, Deserialize)]
enum State {
    /// A person is asked whether the call may run.
    Approval(PendingApproval),
    /// The driver asks. Any approval that the call needs was given before.
    Questions {
        asked: Box<Asked>,
        approved: Option<ApprovalKey>,
        /// How often the question was repeated.
        repeats: u8,
    },
}

/// The decision and the answers with which a call starts, if any.
#[derive(Default)]
struct Start {
    decided: Option<Decided>,
    resume: Option<Box<Resume>>,
}

impl RoundTrips {
    /// Uses the keys and approvals of the hosts that serve the calls.
    pub(crate) fn new(state: &SharedState) -> Self {
        Self {
            keys: state.keys(),
            approvals: state.approvals(),
        }
    }

    /// Carries a call out: puts its questions to the client and continues with the answers. `name`
    /// is the tool's name over MCP. `input` is the call's input as a client of the stateless era
    /// sent it; it is ignored for other clients.
    ///
    /// # Errors
    ///
    /// A fault if the answers belong to no open question of this call, if answers are still missing
    /// after [`MAX_REPEATS`] repeats, or if the question can't be looked up. The call then does not
    /// reach the host.
    pub(crate) async fn carry_out(
        &self,
        client: &Client,
        runtime: CallRuntime<'_>,
        mut request: Box<Request>,
        name: &str,
        input: &JsonObject,
        parameters: &CallToolRequestParams,
    ) -> Result<ClientEnd, ErrorData> {
        let host = runtime.host;
        let exchange = Exchange {
            keys: &*self.keys,
            client,
            subject: ["call", name],
            input,
        };
        let mut start = Start::default();
        if let Some(state) = &parameters.request_state {
            let responses = parameters.input_responses.as_ref();
            match Box::pin(exchange.opened(&self.approvals, state, responses)).await? {
                ControlFlow::Continue(opened) => start = opened,
                ControlFlow::Break(end) => return Ok(end),
            }
        }
        *request = (*request).answerable(client.answerable);
        let mut request = Some(request);
        loop {
            // Only a client that is asked while the call waits needs a second copy.
            let call = match client.person {
                Some(_) => request.clone(),
                None => request.take(),
            };
            let Some(mut call) = call else {
                let fault = ErrorData::internal_error("no request is left", None);
                return Ok(CallEnd::Failed(fault));
            };
            let resumes = start.resume.is_some();
            let approver = ClientApprover::new(client, &self.approvals, resumes, start.decided);
            let approver = Arc::new(approver);
            *call = (*call).approver(approver.clone());
            if let Some(resume) = start.resume.take() {
                *call = (*call).resume(*resume);
            }
            let mut reply = runtime.call(call).await;
            if let Some(asked) = approver.pending() {
                return Ok(Box::pin(exchange.ask_approval(asked)).await);
            }
            if let Some(asked) = reply.asked.take() {
                let Some(requests) = requests(&asked) else {
                    host.give_up(&asked);
                    reply.result = Err(unaskable(&asked));
                    return Ok(CallEnd::Done(Box::new(reply)));
                };
                let approved = approver.approved();
                if client.era == Era::Stateless {
                    let state = State::Questions {
                        asked,
                        approved,
                        repeats: 0,
                    };
                    return Ok(Box::pin(exchange.ask(&state, requests, None)).await);
                }
                // Boxed, so that it takes no room in the future of a call that asks nothing.
                let answered = Box::pin(answered(client, host, *asked, requests)).await;
                start = Start {
                    decided: approved.map(Decided::before),
                    resume: Some(Box::new(answered)),
                };
                continue;
            }
            if let Err(error) = &mut reply.result {
                if let Some(fault) = lacking(client, error) {
                    return Ok(CallEnd::Failed(fault));
                }
                approver.explain(error, tool_id(&reply.metadata.tool));
            }
            return Ok(CallEnd::Done(Box::new(reply)));
        }
    }
}

/// One call, with the facts that questions to its client need.
struct Exchange<'a> {
    keys: &'a dyn Keys,
    client: &'a Client,
    subject: [&'a str; 2],
    input: &'a JsonObject,
}

impl Exchange<'_> {
    /// Interprets the answers that came with a state. If an answer to a driver's question is
    /// missing, all its questions are repeated, up to [`MAX_REPEATS`] times.
    async fn opened(
        &self,
        approvals: &Arc<dyn Approvals>,
        state: &str,
        responses: Option<&InputResponses>,
    ) -> Result<ControlFlow<ClientEnd, Start>, ErrorData> {
        let (state, until) = self.unsealed(state).await?;
        let state = serde_json::from_slice(&state).map_err(|_other| foreign())?;
        let response = |key: &str| responses.and_then(|responses| responses.get(key));
        match state {
            State::Approval(pending) => {
                let said = response(approval::KEY);
                let decision = said.map(|said| approval::decision(said, &pending));
                let open = OpenQuestion::new(approvals, pending.id(&self.client.principal));
                let answer = decision.map_or(PersonsAnswer::None, PersonsAnswer::from);
                let was_open = open.close(answer).await;
                // Without a decision the question was not answered, and the call asks again. It
                // also asks again if an approval comes after the question was closed, for example
                // by a denial of another question about the tool.
                let counts =
                    |decision: &ApprovalDecision| was_open || *decision == ApprovalDecision::Deny;
                let decided = decision.filter(counts).map(|decision| Decided {
                    call: pending.call,
                    answer: Some(decision),
                });
                let resume = None;
                Ok(ControlFlow::Continue(Start { decided, resume }))
            }
            State::Questions {
                asked,
                approved,
                repeats,
            } => {
                let answers = asked.questions.iter().map(|question| {
                    let said = response(&question.key)?.clone();
                    Some((
                        question.key.clone(),
                        elicitation::answer(&question.ask, said)?,
                    ))
                });
                let answers: Option<Vec<(String, Answer)>> = answers.collect();
                match answers {
                    Some(answers) => Ok(ControlFlow::Continue(Start {
                        decided: approved.map(Decided::before),
                        resume: Some(Box::new(Resume {
                            asked: *asked,
                            answers,
                        })),
                    })),
                    None if repeats >= MAX_REPEATS => {
                        let message = format!(
                            "expected an answer to every question in `inputResponses`, and asked {MAX_REPEATS} times again; \
                             make the request anew"
                        );
                        Err(fault("toolward:answers_missing", message))
                    }
                    None => {
                        let requests = requests(&asked).unwrap_or_default();
                        let state = State::Questions {
                            asked,
                            approved,
                            repeats: repeats.saturating_add(1),
                        };
                        // The repeated question keeps the time that is left.
                        let end = self.ask(&state, requests, Some(until)).await;
                        Ok(ControlFlow::Break(end))
                    }
                }
            }
        }
    }

    async fn unsealed(&self, state: &str) -> Result<(Vec<u8>, Instant), ErrorData> {
        if self.client.era == Era::Session {
            // No state is sealed for a client of the session era.
            return Err(foreign());
        }
        let input = digest::object(self.input);
        let unsealing = self
            .keys
            .unseal(self.binding(input.as_bytes()), state, state_deadline());
        match unsealing.await {
            Ok(Unsealed::Text(state, until)) => Ok((state, until)),
            Ok(Unsealed::Foreign) => Err(foreign()),
            // If the outcome is unknown, the state may have been used.
            Ok(Unsealed::Spent) | Err(StateError::Unknown) => Err(fault(
                "toolward:state_spent",
                "the `requestState` was used before, or is too old; make the request anew",
            )),
            Err(error) => Err(state_failed("the answer's state can't be opened", &error)),
        }
    }

    fn binding<'b>(&'b self, input: &'b [u8; 32]) -> Binding<'b> {
        Binding {
            principal: &self.client.principal.name,
            subject: self.subject,
            input,
        }
    }

    /// Returns a result that asks for an approval. If that fails, the question is closed.
    async fn ask_approval(&self, mut asked: ApprovalToAsk) -> ClientEnd {
        let requests = BTreeMap::from([(approval::KEY.to_owned(), asked.request)]);
        let state = State::Approval(asked.pending);
        let end = self.ask(&state, requests, None).await;
        if matches!(end, CallEnd::Asks(_)) {
            asked.open.disarm();
        }
        end
    }

    /// Returns a result that asks. A repeated question keeps its deadline `until`; a new question
    /// gets [`ANSWER_TIMEOUT`].
    async fn ask(
        &self,
        state: &State,
        requests: BTreeMap<String, InputRequest>,
        until: Option<Instant>,
    ) -> ClientEnd {
        let input = digest::object(self.input);
        let binding = self.binding(input.as_bytes());
        let deadline = state_deadline();
        let until = until.or_else(|| deadline.checked_add(ANSWER_TIMEOUT));
        let Some((state, until)) = serde_json::to_vec(state).ok().zip(until) else {
            let message = "the question can't be sealed";
            return CallEnd::Failed(ErrorData::internal_error(message, None));
        };
        let seal = || self.keys.seal(binding, state.clone(), until, deadline);
        match settled(deadline, seal).await {
            Ok(state) => CallEnd::Asks(InputRequiredResult::new(Some(requests), Some(state))),
            Err(error) => CallEnd::Failed(state_failed("the question can't be sealed", &error)),
        }
    }
}

/// Returns the requests for all questions; `None` if the protocol has no request for one of them.
fn requests(asked: &Asked) -> Option<BTreeMap<String, InputRequest>> {
    let requests = asked.questions.iter().map(|question| {
        let request = elicitation::request(asked, question)?;
        Some((question.key.clone(), request))
    });
    requests.collect()
}

/// Asks a client that can be asked while the call waits. The questions are asked one after the
/// other.
async fn answered(
    client: &Client,
    host: &Host,
    asked: Asked,
    mut requests: BTreeMap<String, InputRequest>,
) -> Resume {
    let given_up = GiveUp {
        host,
        asked: &asked,
    };
    let mut answers = Vec::with_capacity(asked.questions.len());
    for question in &asked.questions {
        let request = requests.remove(&question.key);
        let said = match (&client.person, request) {
            (Some(person), Some(request)) => person.ask(request, ANSWER_TIMEOUT).await,
            _ => Err(Unanswered::Failed),
        };
        let answer = match said {
            Ok(said) => elicitation::answer(&question.ask, said).unwrap_or(Answer::Cancelled),
            Err(Unanswered::Refused) => Answer::Declined,
            Err(Unanswered::Late | Unanswered::Failed) => Answer::Cancelled,
        };
        answers.push((question.key.clone(), answer));
    }
    // It is not dropped, since all questions were put to the client.
    std::mem::forget(given_up);
    Resume { asked, answers }
}

/// Withdraws the questions of a call if it is dropped while a person is asked.
struct GiveUp<'a> {
    host: &'a Host,
    asked: &'a Asked,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        self.host.give_up(self.asked);
    }
}

/// Returns the fault for a client of the stateless era that lacks a capability that a question
/// needs.
fn lacking(client: &Client, error: &CallError) -> Option<ErrorData> {
    let ours = error.code == ErrorCode::INPUT_UNAVAILABLE && error.origin == Origin::Host;
    if client.era != Era::Stateless || !ours {
        return None;
    }
    let kinds = error.cause.as_ref()?.get("lacking")?.as_array()?;
    if kinds.is_empty() {
        return None;
    }
    let has = |kind: &str| kinds.iter().any(|named| named == kind);
    let mut required = ClientCapabilities::default();
    required.sampling = has("sample").then(SamplingCapability::default);
    required.roots = has("roots").then(RootsCapabilities::default);
    required.elicitation = has("form")
        .then(|| ElicitationCapability::default().with_form(FormElicitationCapability::default()));
    Some(ErrorData::missing_required_client_capability(required))
}

/// The error for a driver's question that fits the host's rules, but not the protocol's.
fn unaskable(asked: &Asked) -> CallError {
    let tool = &asked.tool_id;
    CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        format!("`{tool}` asks what the protocol has no question for"),
    )
    .with_hint("report this to the driver's publisher")
}

/// Returns `id` from `id@version`.
fn tool_id(tool: &str) -> &str {
    tool.split_once('@').map_or(tool, |(id, _)| id)
}

fn state_failed(message: &'static str, error: &StateError) -> ErrorData {
    tracing::error!(%error, "{message}");
    ErrorData::internal_error(message, None)
}

fn foreign() -> ErrorData {
    fault(
        "toolward:state_refused",
        "the `requestState` was not given out for this request, or was changed",
    )
}

fn fault(code: &str, message: impl Into<Cow<'static, str>>) -> ErrorData {
    ErrorData::invalid_params(message, Some(json!({ "code": code })))
}
