//! Checks the questions of a guest before a person or model sees them.

use serde_json::json;
use toolward_contract::capability::Class;
use toolward_contract::form::Form;
use toolward_contract::json;
use toolward_policy::{Grant, LimitName};
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::invocation::{DriverAsk, DriverForm, InputRequest};
use toolward_sandbox::violations::{EndsCall, Violations};

use super::{Answerable, Ask, MAX_ROUNDS, Question, sample};
use crate::api::result::{CallError, ErrorCode, Result};
use crate::redact::Redactor;

/// The most questions that are asked at once.
const MAX_QUESTIONS: usize = 8;
/// The most bytes of a question's key.
const MAX_KEY_BYTES: usize = 64;
/// The most bytes of the text for a person.
const MAX_MESSAGE_BYTES: usize = 4096;
/// The most bytes of the parameters of a sample.
const MAX_SAMPLE_BYTES: usize = 64 << 10;
/// The most bytes of the schema of a form.
const MAX_SCHEMA_BYTES: usize = 16 << 10;
/// The most bytes of all questions together, since a stateless transport carries them to the client
/// and back.
const MAX_TOTAL_BYTES: usize = 96 << 10;
/// The most bytes of the driver's state.
const MAX_STATE_BYTES: usize = 64 << 10;

/// The properties of a call that decide which questions it may ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) answerable: Answerable,
    /// Whether another tool made the call, so that no one can answer.
    pub(crate) nested: bool,
    /// How often the call has asked.
    pub(crate) rounds: u32,
}

/// Questions that were checked.
pub(crate) struct CheckedQuestions {
    pub(crate) questions: Vec<Question>,
    pub(crate) state: Vec<u8>,
}

impl Asker {
    /// Checks that the questions were granted, that the caller can get them answered, and that they
    /// are valid. Returns the questions.
    pub(crate) fn take(
        &self,
        request: InputRequest,
        grant: &Grant,
        violations: &Violations,
    ) -> Result<CheckedQuestions> {
        let mut kinds = request.questions.iter().map(|question| kind(&question.ask));
        if let Some(kind) = kinds.find(|kind| !grant.has(&Class::User, kind)) {
            return Err(match violations.record(&Class::User, kind) {
                Err(EndsCall(violation)) => CallError::violated(&violation),
                Ok(()) => not_granted(kind),
            });
        }
        self.may_ask(&request)?;
        accept(request).map_err(|problem| not_allowed(&problem))
    }

    /// Fails if the caller can't get the questions answered.
    fn may_ask(&self, request: &InputRequest) -> Result<()> {
        let mut lacking: Vec<&str> = Vec::new();
        for question in &request.questions {
            let kind = kind(&question.ask);
            if (self.nested || !covers(self.answerable, kind)) && !lacking.contains(&kind) {
                lacking.push(kind);
            }
        }
        let nobody = self.nested || self.answerable == Answerable::default();
        if nobody || !lacking.is_empty() {
            return Err(unavailable(&lacking));
        }
        if self.rounds >= MAX_ROUNDS {
            return Err(worn_out());
        }
        Ok(())
    }
}

impl CheckedQuestions {
    /// Refuses questions that contain a secret's value, which only the driver may see.
    pub(crate) fn keep(self, redactor: Option<&Redactor>) -> Result<Self> {
        let Some(redactor) = redactor else {
            return Ok(self);
        };
        let text = serde_json::to_string(&self.questions).unwrap_or_default();
        match redactor.slug_in_json(&text) {
            Some(slug) => Err(not_allowed(&format!(
                "a question holds the value of the secret `{slug}`"
            ))),
            None => Ok(self),
        }
    }
}

fn kind(ask: &DriverAsk) -> &'static str {
    match ask {
        DriverAsk::Form(_) => "form",
        DriverAsk::Sample(_) => "sample",
        DriverAsk::Roots => "roots",
    }
}

fn covers(answerable: Answerable, kind: &str) -> bool {
    match kind {
        "form" => answerable.form,
        "sample" => answerable.sample,
        _ => answerable.roots,
    }
}

fn accept(request: InputRequest) -> Result<CheckedQuestions, String> {
    if request.questions.is_empty() {
        return Err("it asks nothing".to_owned());
    }
    if request.questions.len() > MAX_QUESTIONS {
        return Err(format!(
            "it asks more than {MAX_QUESTIONS} questions at once"
        ));
    }
    if request.state.len() > MAX_STATE_BYTES {
        return Err(format!("its state has more than {MAX_STATE_BYTES} bytes"));
    }
    let mut together = 0_usize;
    let mut questions: Vec<Question> = Vec::with_capacity(request.questions.len());
    for question in request.questions {
        let key = question.key;
        if !is_key(&key) {
            return Err(format!(
                "the key of a question is not 1 to {MAX_KEY_BYTES} of A-Z, a-z, 0-9, `_`, `-` and `.`"
            ));
        }
        if questions.iter().any(|earlier| earlier.key == key) {
            return Err(format!("it asks twice with the key `{key}`"));
        }
        together = together.saturating_add(size(&question.ask));
        if together > MAX_TOTAL_BYTES {
            return Err(format!(
                "its questions have more than {MAX_TOTAL_BYTES} bytes"
            ));
        }
        let ask = ask(question.ask).map_err(|problem| format!("question `{key}`: {problem}"))?;
        questions.push(Question { key, ask });
    }
    Ok(CheckedQuestions {
        questions,
        state: request.state,
    })
}

/// Whether a text is a valid key. Keys appear in messages, so they have plain characters. The keys
/// of the host's own questions have a colon, so these keys have none.
fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=MAX_KEY_BYTES).contains(&key.len()) && key.chars().all(allowed)
}

fn size(ask: &DriverAsk) -> usize {
    match ask {
        DriverAsk::Form(DriverForm { message, schema }) => {
            message.len().saturating_add(schema.len())
        }
        DriverAsk::Sample(parameters) => parameters.len(),
        DriverAsk::Roots => 0,
    }
}

fn ask(ask: DriverAsk) -> Result<Ask, String> {
    match ask {
        DriverAsk::Form(DriverForm { message, schema }) => {
            if message.trim().is_empty() || message.len() > MAX_MESSAGE_BYTES {
                return Err(format!("its message is not 1 to {MAX_MESSAGE_BYTES} bytes"));
            }
            let schema = parsed(&schema, MAX_SCHEMA_BYTES)?;
            Form::read(&schema)?;
            Ok(Ask::Form { message, schema })
        }
        DriverAsk::Sample(parameters) => {
            let parameters = parsed(&parameters, MAX_SAMPLE_BYTES)?;
            sample::check(&parameters)?;
            Ok(Ask::Sample(parameters))
        }
        DriverAsk::Roots => Ok(Ask::Roots),
    }
}

fn parsed(text: &str, bytes: usize) -> Result<serde_json::Value, String> {
    let limits = json::Limits {
        bytes,
        depth: 12,
        values: 4000,
    };
    json::parse(text.as_bytes(), &limits)
        .map_err(|error| format!("it is not the JSON that is allowed: {error}"))
}

fn not_granted(kind: &str) -> CallError {
    CallError::of(
        ErrorCode::INPUT_UNAVAILABLE,
        format!("the driver asks a question that it was not granted (`user:{kind}`)"),
    )
    .with_hint("its contract has to declare it in `requires.user`, and the policy to grant it")
}

/// The error if the caller can't answer questions of these kinds.
pub(crate) fn unavailable(lacking: &[&str]) -> CallError {
    CallError::of(
        ErrorCode::INPUT_UNAVAILABLE,
        "the driver asks a question, and this caller can't answer",
    )
    .with_cause(json!({ "lacking": lacking }))
    .with_hint("give what it needs as input, if the contract has a field for it")
}

fn worn_out() -> CallError {
    CallError::of(
        ErrorCode::LIMIT_EXCEEDED,
        format!("the driver asks again after {MAX_ROUNDS} rounds of questions"),
    )
    .with_limit(Exceeded::over(LimitName::Rounds, u64::from(MAX_ROUNDS)))
    .with_hint("report this to the driver's publisher")
}

fn not_allowed(problem: &str) -> CallError {
    CallError::of(
        ErrorCode::UPSTREAM_ERROR,
        format!("the driver asks in a way that is not allowed: {problem}"),
    )
    .with_cause(json!({ "rule": "question-not-allowed" }))
    .with_hint("report this to the driver's publisher")
}
