//! Approval through a client: whether this client may ask a person, how the question is put, and
//! when an earlier decision answers it.

mod not_asked;
pub(crate) mod prompt;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use rmcp::model::InputRequest;
use toolward_host::{
    ApprovalKeys, ApprovalRequest, ApprovalScope, Approver, CallError, ErrorCode, Origin,
    Remembered, Verdict,
};
use toolward_state::{
    ApprovalKey, Approvals, Opening, PersonsAnswer, QuestionWatch, RememberedApproval, settled,
};
use toolward_support::helper::lock;

use crate::client::{AsksPerson, Client, Era, Unanswered};
use crate::elicitation::{self, ANSWER_TIMEOUT, state_deadline};
use not_asked::NotAsked;
pub(crate) use prompt::{ApprovalDecision, Decided, OpenQuestion, PendingApproval, decision};

/// The key of the approval question, which no driver's question can have.
pub(crate) const KEY: &str = "toolward:approval";

/// The `risk_level` (AIP-14) of calls that can't be undone. No client may approve such a call.
const IRREVERSIBLE_RISK: u8 = 3;

/// Asks through one client, for one call.
pub(crate) struct ClientApprover {
    client: Client,
    approvals: Arc<dyn Approvals>,
    /// Whether the call resumes after its driver's questions. If it needs approval, a person
    /// approved it before these questions.
    resumes: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    decided: Option<Decided>,
    /// Whether `decided` answered an approval request.
    used: bool,
    pending: Option<ApprovalToAsk>,
    not_asked: Option<NotAsked>,
}

/// An approval question that is open. Dropping the value closes the question, unless `open` was
/// disarmed.
pub(crate) struct ApprovalToAsk {
    pub(crate) pending: PendingApproval,
    pub(crate) request: InputRequest,
    pub(crate) open: OpenQuestion,
}

impl ClientApprover {
    /// `decided` is a person's earlier decision, if any.
    pub(crate) fn new(
        client: &Client,
        approvals: &Arc<dyn Approvals>,
        resumes: bool,
        decided: Option<Decided>,
    ) -> Self {
        Self {
            client: client.clone(),
            approvals: approvals.clone(),
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

    /// Takes the question that the client must put to a person before it makes the call again.
    pub(crate) fn pending(&self) -> Option<ApprovalToAsk> {
        self.state().pending.take()
    }

    /// Explains why no one was asked, and what a person can do. A remote client learns nothing
    /// about the policy.
    pub(crate) fn explain(&self, error: &mut CallError, tool: &str) {
        let not_asked = self.state().not_asked;
        let is_denial = error.code == ErrorCode::APPROVAL_DENIED && error.origin == Origin::Host;
        if let Some(not_asked) = not_asked.filter(|_| is_denial) {
            not_asked.explain(&self.client, error, tool);
        }
    }

    async fn verdict(&self, request: &ApprovalRequest) -> Verdict {
        let asked = self.decided_or_asked(request).await;
        asked.unwrap_or_else(|not_asked| {
            if request.called_by.is_empty() {
                self.state().not_asked = Some(not_asked);
            }
            Verdict::Unavailable
        })
    }

    async fn decided_or_asked(&self, request: &ApprovalRequest) -> Result<Verdict, NotAsked> {
        let keys = request.keys();
        if let Some(verdict) = self.decided(request, &keys).await? {
            return Ok(verdict);
        }
        let session = !request.each_time;
        let (person, question) = self.question(request, session)?;
        let (asked, watch) = self.open(&keys, session, question).await?;
        request.mark_asked();
        let Some(person) = person else {
            self.state().pending = Some(asked);
            return Ok(Verdict::Later);
        };
        let direct = request.called_by.is_empty();
        self.ask_now(person, asked, watch, direct).await
    }

    /// Returns a verdict if a person has decided before, so that no question is needed. Fails if no
    /// person may be asked.
    async fn decided(
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
        let decided = self.state().decided;
        if let Some(decided) = decided.filter(|decided| direct && decided.call == keys.call) {
            self.state().used = true;
            return Ok(Some(match decided.answer {
                None => Verdict::Remembered(Remembered {
                    scope: ApprovalScope::Call,
                    until: None,
                }),
                Some(decision) => Verdict::Answered {
                    approved: decided.is_approved(),
                    remembered: self.keep(keys.tool, decision).await,
                },
            }));
        }
        let known = match request.each_time {
            true => None,
            false => self.remembered(keys.tool).await,
        };
        match known {
            Some(RememberedApproval::Valid(until)) => {
                return Ok(Some(Verdict::Remembered(for_session(until))));
            }
            Some(RememberedApproval::Expired(until)) => request.mark_expired(for_session(until)),
            None => {}
        }
        if self.resumes && direct {
            return Err(NotAsked::Changed);
        }
        Ok(None)
    }

    async fn remembered(&self, tool: ApprovalKey) -> Option<RememberedApproval> {
        let (principal, deadline) = (&self.client.principal.name, state_deadline());
        let look_up = || self.approvals.remembered(principal, tool, deadline);
        settled(deadline, look_up).await.unwrap_or_else(|error| {
            tracing::error!(%error, "earlier approvals are not known");
            None
        })
    }

    /// Remembers the approval of a tool for the session, if the person chose this and the principal
    /// may approve.
    async fn keep(&self, tool: ApprovalKey, decision: ApprovalDecision) -> Option<Remembered> {
        let principal = &self.client.principal;
        if decision != ApprovalDecision::Session || !principal.may_approve {
            return None;
        }
        let deadline = state_deadline();
        let remember = || {
            let principal = principal.name.clone();
            self.approvals.remember(principal, tool, deadline)
        };
        match settled(deadline, remember).await {
            Ok(until) => until.map(for_session),
            Err(error) => {
                tracing::error!(%error, "an approval is not remembered");
                None
            }
        }
    }

    /// Returns the question, and the person to ask while the call waits. Without such a person, the
    /// client calls again with the answer.
    fn question(
        &self,
        request: &ApprovalRequest,
        session: bool,
    ) -> Result<(Option<&dyn AsksPerson>, InputRequest), NotAsked> {
        if !self.client.answerable.form {
            return Err(NotAsked::CanNotAsk);
        }
        let message = prompt::message(request).ok_or(NotAsked::TooLong)?;
        let question =
            elicitation::form(message, prompt::schema(session)).ok_or(NotAsked::CanNotAsk)?;
        match (self.client.era, &self.client.person) {
            (Era::Session, Some(person)) => Ok((Some(person.as_ref()), question)),
            (Era::Stateless, _) if request.called_by.is_empty() => Ok((None, question)),
            _ => Err(NotAsked::CanNotAsk),
        }
    }

    /// Asks a person while the call waits. A question that is dropped unanswered counts as denied.
    /// Otherwise a client could put the question to a person over and over, by cancelling the call
    /// and making it again.
    async fn ask_now(
        &self,
        person: &dyn AsksPerson,
        asked: ApprovalToAsk,
        mut watch: QuestionWatch,
        direct: bool,
    ) -> Result<Verdict, NotAsked> {
        let ApprovalToAsk {
            pending,
            request,
            mut open,
        } = asked;
        open.on_drop(PersonsAnswer::Denied);
        let said = tokio::select! {
            biased;
            () = watch.withdrawn() => None,
            said = person.ask(request, ANSWER_TIMEOUT) => Some(said),
        };
        if let Some(Ok(said)) = said {
            let decision = decision(&said, &pending);
            let was_open = open.close(decision.into()).await;
            if decision == ApprovalDecision::Deny {
                return Ok(Verdict::Denied(None));
            }
            if !was_open {
                return Ok(Verdict::Withdrawn);
            }
            if direct {
                self.state().decided = Some(Decided::before(pending.call));
            }
            return Ok(match self.keep(pending.tool, decision).await {
                Some(kept) => Verdict::ApprovedFor(kept),
                None => Verdict::Approved,
            });
        }
        open.on_drop(PersonsAnswer::None);
        match said {
            // A person's denial is a result, so an error means that the client did not ask.
            Some(Err(Unanswered::Refused)) => Err(NotAsked::CanNotAsk),
            Some(_) => Ok(Verdict::Unanswered),
            // The person denied another question about the same tool.
            None => Ok(Verdict::Withdrawn),
        }
    }

    /// Opens a question, unless the tool is backed off.
    async fn open(
        &self,
        keys: &ApprovalKeys,
        session: bool,
        request: InputRequest,
    ) -> Result<(ApprovalToAsk, QuestionWatch), NotAsked> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a question can't be opened");
            NotAsked::Failed
        };
        let pending = PendingApproval {
            call: keys.call,
            tool: keys.tool,
            named: keys.named,
            question: getrandom::u64().map_err(|error| failed(&error))?,
            session,
        };
        let question = pending.id(&self.client.principal);
        let deadline = state_deadline();
        // A person has the full time to answer, however long the opening takes.
        let until = deadline.checked_add(ANSWER_TIMEOUT).unwrap_or(deadline);
        let mut asked = ApprovalToAsk {
            open: OpenQuestion::new(&self.approvals, question.clone()),
            pending,
            request,
        };
        let open = || {
            let question = question.clone();
            self.approvals
                .open(question, keys.any_caller, until, deadline)
        };
        let opening = settled(deadline, open).await;
        let not_asked = match opening {
            Ok(Opening::Open(watch)) => return Ok((asked, watch)),
            // The failed attempt may have opened the question, so it is not disarmed.
            Err(error) => return Err(failed(&error)),
            Ok(Opening::Paused(wait)) => NotAsked::Paused(wait),
            Ok(Opening::FullForTool(wait)) => NotAsked::AskedAboutTool(wait),
            Ok(Opening::Full(wait)) => NotAsked::Asked(wait),
        };
        asked.open.disarm();
        Err(not_asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn for_session(until: SystemTime) -> Remembered {
    Remembered {
        scope: ApprovalScope::Session,
        until: Some(until),
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
        decided.answer.map(|_| Verdict::Answered {
            approved: decided.is_approved(),
            remembered: None,
        })
    }
}
