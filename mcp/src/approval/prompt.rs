//! The approval prompt that a client shows, the open question, and the person's decision. The
//! prompt states everything that the approval covers. If a prompt is too long for this, no approval
//! is requested.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolward_bundle::text::{visible_json, visible_line};
use toolward_host::{Answer, ApprovalRequest};
use toolward_state::{ApprovalKey, Approvals, PersonsAnswer, QuestionId, detach, settled};

use crate::elicitation::{self, state_deadline};
use crate::principal::Principal;

/// The most characters of a name or effect, of a URL, of the arguments or a body, and of the
/// prompt.
const MAX_NAME_CHARS: usize = 200;
const MAX_URL_CHARS: usize = 2000;
const MAX_ARGUMENT_CHARS: usize = 6000;
const MAX_MESSAGE_CHARS: usize = 16_000;

/// The choices, as the form shows and returns them.
pub(crate) const ONCE: &str = "allow this call";
pub(crate) const SESSION: &str = "allow it for this session";
pub(crate) const NO: &str = "deny";
/// The field that holds the choice.
pub(crate) const DECISION: &str = "decision";

/// The text of the prompt; `None` if it is too long for a person to read.
pub(crate) fn message(request: &ApprovalRequest) -> Option<String> {
    let name = |text: &str| visible_line(text, MAX_NAME_CHARS);
    let mut out = format!(
        "The tool {} by publisher {} needs your approval.\n",
        name(&request.tool),
        name(&request.publisher)
    );
    let mut fact = |label: &str, text: &str| {
        let _ = writeln!(out, "{label}: {text}");
    };
    fact("called", &name(&request.name));
    let by = |publisher: &str| match publisher == request.publisher {
        true => "by",
        false => "by ANOTHER publisher,",
    };
    let (driver, publisher) = (name(&request.driver), name(&request.driver_publisher));
    let by_whom = by(&request.driver_publisher);
    fact("driver", &format!("{driver} {by_whom} {publisher}"));
    if !request.fallbacks.is_empty() {
        fact(
            "  it reaches",
            &reach(&request.driver_hosts, &request.driver_regions),
        );
    }
    for next in &request.fallbacks {
        let (id, publisher) = (whole(&next.id)?, whole(&next.publisher)?);
        let driver = format!("{id} {} {publisher}", by(&next.publisher));
        fact("or, if that fails, the driver", &driver);
        fact("  it reaches", &reach(&next.hosts, &next.regions));
    }
    for tool in &request.called_by {
        fact("called by the tool", &name(tool));
    }
    for effect in &request.effects {
        fact("effect", &whole(effect)?);
    }
    if request.risk > 0 {
        fact("risk", &format!("{} of 3", request.risk));
    }
    for reason in &request.reasons {
        fact("because", &name(reason));
    }
    if let Some(cost) = &request.cost {
        fact("cost", &name(cost));
    }
    for chained in &request.chain {
        let tool = whole(&chained.tool)?;
        let by = match chained.publisher == request.publisher {
            true => String::new(),
            false => format!(" by ANOTHER publisher, {}", name(&chained.publisher)),
        };
        fact("may call, and your yes covers it", &format!("{tool}{by}"));
        for publisher in chained.foreign_drivers() {
            fact(
                "  its driver",
                &format!("by ANOTHER publisher, {}", name(publisher)),
            );
        }
        if chained.risk > 0 {
            fact("  its risk", &format!("{} of 3", chained.risk));
        }
        for effect in &chained.effects {
            fact("  its effect", &whole(effect)?);
        }
    }
    for tool in &request.apart {
        fact("may call, and your yes does not cover it", &name(tool));
    }
    if let Some(http) = &request.request {
        if http.url.chars().nth(MAX_URL_CHARS).is_some() {
            return None;
        }
        let url = visible_line(&http.url, MAX_URL_CHARS);
        fact("sends", &format!("{} {url}", name(&http.method)));
    }
    out.push_str("arguments:\n");
    barred(&request.input, &mut out)?;
    match request.request.as_ref().and_then(|http| http.body.as_ref()) {
        None => {}
        Some(body) if *body == request.input => out.push_str("body: the arguments\n"),
        Some(body) => {
            out.push_str("body:\n");
            barred(body, &mut out)?;
        }
    }
    out.chars().nth(MAX_MESSAGE_CHARS).is_none().then_some(out)
}

/// Writes a value as JSON. Each line starts with a bar, so that it can't imitate another line of
/// the prompt. Returns `None` if the value is too long.
fn barred(value: &Value, out: &mut String) -> Option<()> {
    let json = visible_json(&serde_json::to_string_pretty(value).ok()?);
    if json.chars().nth(MAX_ARGUMENT_CHARS).is_some() {
        return None;
    }
    for line in json.lines() {
        let _ = writeln!(out, "| {line}");
    }
    Some(())
}

/// Describes the hosts and regions that a driver declares. The host bounds the text.
fn reach(hosts: &[String], regions: &[String]) -> String {
    let line = match hosts {
        [] => "no host".to_owned(),
        hosts => format!("{} in the region {}", hosts.join(", "), regions.join(", ")),
    };
    visible_line(&line, usize::MAX)
}

fn whole(text: &str) -> Option<String> {
    let fits = text.chars().nth(MAX_NAME_CHARS).is_none();
    fits.then(|| visible_line(text, MAX_NAME_CHARS))
}

/// The form below the prompt.
pub(crate) fn schema(session: bool) -> Value {
    let choices = match session {
        true => json!([ONCE, SESSION, NO]),
        false => json!([ONCE, NO]),
    };
    json!({
        "type": "object",
        "properties": {
            DECISION: { "type": "string", "title": "Your decision", "enum": choices },
        },
        "required": [DECISION],
    })
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalDecision {
    Once,
    Session,
    Deny,
}

/// A person's decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The call.
    pub(crate) call: ApprovalKey,
    /// The answer to the approval question, if it came with the call. `None` if the call was
    /// approved earlier, before its driver's questions.
    pub(crate) answer: Option<ApprovalDecision>,
}

impl Decided {
    /// The approval of a call that a person gave before the driver's questions.
    pub(crate) fn before(call: ApprovalKey) -> Self {
        Self { call, answer: None }
    }

    pub(super) fn is_approved(self) -> bool {
        self.answer != Some(ApprovalDecision::Deny)
    }
}

/// An approval question. A client gets it sealed, so that an answer counts only for this question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingApproval {
    /// The key of the call, which covers everything that the person was shown.
    pub(crate) call: ApprovalKey,
    /// The key of the tool at the time of the question, for any arguments.
    pub(crate) tool: ApprovalKey,
    /// The key of the tool's name together with its callers. A denial is recorded under this key.
    pub(crate) named: ApprovalKey,
    /// The number of the question.
    pub(crate) question: u64,
    /// Whether "for this session" was among the choices.
    pub(crate) session: bool,
}

impl PendingApproval {
    pub(crate) fn id(&self, principal: &Principal) -> QuestionId {
        QuestionId {
            principal: principal.name.clone(),
            tool: self.named,
            number: self.question,
        }
    }
}

impl From<ApprovalDecision> for PersonsAnswer {
    fn from(decision: ApprovalDecision) -> Self {
        match decision {
            ApprovalDecision::Deny => Self::Denied,
            ApprovalDecision::Once | ApprovalDecision::Session => Self::Approved,
        }
    }
}

/// A question that may be open. Dropping it closes the question, so a call that ends leaves no
/// question open. If an answer is being stored then, the drop stores it.
pub(crate) struct OpenQuestion {
    approvals: Arc<dyn Approvals>,
    id: QuestionId,
    /// The answer that closes the question on drop; `None` if the question is closed already, or if
    /// a client holds its sealed state.
    answer: Option<PersonsAnswer>,
}

impl OpenQuestion {
    pub(crate) fn new(approvals: &Arc<dyn Approvals>, id: QuestionId) -> Self {
        Self {
            approvals: approvals.clone(),
            id,
            answer: Some(PersonsAnswer::None),
        }
    }

    /// From now on, dropping the question closes it with this answer.
    pub(super) fn on_drop(&mut self, answer: PersonsAnswer) {
        self.answer = Some(answer);
    }

    pub(crate) fn disarm(&mut self) {
        self.answer = None;
    }

    /// Closes the question. Returns whether it was open.
    pub(crate) async fn close(mut self, answer: PersonsAnswer) -> bool {
        self.on_drop(answer);
        let was_open = close(&*self.approvals, &self.id, answer).await;
        self.disarm();
        was_open
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if let Some(answer) = self.answer {
            let (approvals, id) = (self.approvals.clone(), self.id.clone());
            detach(Box::pin(async move {
                close(&*approvals, &id, answer).await;
            }));
        }
    }
}

/// Closes a question, and returns whether it was open. If closing fails, the question counts as not
/// open, so that an approval does not count.
async fn close(approvals: &dyn Approvals, question: &QuestionId, answer: PersonsAnswer) -> bool {
    let deadline = state_deadline();
    let answer = || approvals.answer(question.clone(), answer, deadline);
    settled(deadline, answer).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a person's answer is not kept");
        false
    })
}

/// Returns a person's decision. Anything but an explicit yes is treated as a denial.
pub(crate) fn decision(said: &Value, pending: &PendingApproval) -> ApprovalDecision {
    let Some(Answer::Accepted(content)) = elicitation::choice(said.clone()) else {
        return ApprovalDecision::Deny;
    };
    match content.get(DECISION).and_then(Value::as_str) {
        Some(ONCE) => ApprovalDecision::Once,
        Some(SESSION) if pending.session => ApprovalDecision::Session,
        _ => ApprovalDecision::Deny,
    }
}
