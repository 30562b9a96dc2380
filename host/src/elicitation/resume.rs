//! Resuming a call: checks that the call is the one that asked, and that the answers match its
//! questions.

use toolward_contract::form::Form;
use toolward_contract::json;
use toolward_sandbox::invocation::{QuestionAnswer, QuestionReply, Resumption};

use super::{Answer, Ask, Asked, MAX_ROUNDS, Resume, Spent, sample};
use crate::api::result::{CallError, ErrorClass, ErrorCode, Result};
use crate::digest;

/// The most bytes of the answer to a form.
const MAX_FORM_ANSWER_BYTES: usize = 64 << 10;

/// The values that identify a call, which must be unchanged when it resumes.
pub(crate) struct CallIdentity<'a> {
    pub(crate) principal: &'a str,
    /// The tool as `id@version`.
    pub(crate) tool: &'a str,
    pub(crate) publisher: &'a str,
    pub(crate) driver: &'a str,
    /// The manifest digest of the driver's bundle.
    pub(crate) bundle: &'a str,
    /// The input that the guest gets.
    pub(crate) input: &'a str,
    pub(crate) context: &'a str,
}

/// A call that resumes, with checked answers.
pub(crate) struct Resumed {
    pub(crate) rounds: u32,
    pub(crate) spent: Spent,
    pub(crate) resumption: Resumption,
}

/// Why an answer does not fit its question, for a driver that may ask again.
pub(crate) struct RejectedAnswer(pub(crate) String);

impl CallIdentity<'_> {
    /// BLAKE3 of the guest's input and context, 64 hex digits.
    pub(crate) fn input(&self) -> String {
        let digest = digest::texts([self.input, self.context]);
        digest.to_hex().to_string()
    }

    /// The name of the first value that differs from the call that asked.
    fn differs(&self, asked: &Asked) -> Option<&'static str> {
        let pairs = [
            ("principal", asked.principal.as_str(), self.principal),
            ("tool", asked.tool.as_str(), self.tool),
            ("publisher", &asked.publisher, self.publisher),
            ("driver", &asked.driver, self.driver),
            ("driver's bundle", &asked.bundle, self.bundle),
        ];
        let differs = pairs.into_iter().find(|(_, was, is)| was != is);
        let input = || (asked.input != self.input()).then_some("input");
        differs.map(|(what, ..)| what).or_else(input)
    }
}

/// Checks that a call resumes unchanged, with answers to its questions. An answer that does not fit
/// ends the call, unless the driver `asks_again`.
pub(crate) fn check(
    resume: Resume,
    call: &CallIdentity<'_>,
    limits: json::Limits,
    asks_again: bool,
) -> Result<(Resumed, Option<RejectedAnswer>)> {
    let Resume { asked, mut answers } = resume;
    if let Some(what) = call.differs(&asked) {
        return Err(refused(format!(
            "the {what} is not that of the call that asked"
        )));
    }
    if asked.round == 0 || asked.round > MAX_ROUNDS {
        return Err(refused("the call has asked too often".to_owned()));
    }
    let uneven = || refused("there is not one answer to each question".to_owned());
    let is_answered = |key: &String| answers.iter().any(|(answered, _)| answered == key);
    let mut keys = asked.questions.iter().map(|question| &question.key);
    if answers.len() != asked.questions.len() || !keys.all(is_answered) {
        return Err(uneven());
    }
    let mut rejected = None;
    let mut replies = Vec::with_capacity(asked.questions.len());
    for question in asked.questions {
        let found = answers.iter().position(|(key, _)| *key == question.key);
        let (key, answer) = answers.swap_remove(found.ok_or_else(uneven)?);
        let reply = match answer {
            Answer::Declined => QuestionReply::Declined,
            Answer::Cancelled => QuestionReply::Cancelled,
            Answer::Accepted(value) => {
                let bytes = match question.ask {
                    Ask::Form { .. } => limits.bytes.min(MAX_FORM_ANSWER_BYTES),
                    _ => limits.bytes,
                };
                let checked = json::check(&value, &json::Limits { bytes, ..limits });
                let checked = checked.map_err(|error| error.to_string());
                match checked.and_then(|()| fits(&question.ask, &value)) {
                    Ok(()) => QuestionReply::Accepted(value.to_string()),
                    Err(problem) if asks_again => {
                        rejected = Some(RejectedAnswer(problem));
                        QuestionReply::Cancelled
                    }
                    Err(problem) => return Err(misses(&key, &problem)),
                }
            }
        };
        replies.push(QuestionAnswer { key, reply });
    }
    let resumed = Resumed {
        rounds: asked.round,
        spent: asked.spent,
        resumption: Resumption {
            state: asked.state,
            answers: replies,
        },
    };
    Ok((resumed, rejected))
}

fn fits(ask: &Ask, value: &serde_json::Value) -> Result<(), String> {
    match ask {
        Ask::Form { schema, .. } => Form::read(schema)?.check(value),
        Ask::Sample(_) => sample::check_answer(value),
        Ask::Roots => sample::check_roots(value),
    }
}

/// Replaces the error that the pinned driver is unavailable: a resumed call is pinned to the driver
/// that asked. Returns other errors unchanged.
pub(crate) fn gone(error: CallError) -> CallError {
    match error.code == ErrorCode::PINNED_PROVIDER_UNAVAILABLE {
        true => refused("the driver that asked no longer serves this tool".to_owned()),
        false => error,
    }
}

fn refused(message: String) -> CallError {
    CallError::new(
        ErrorCode::RESUME_REFUSED,
        ErrorClass::InvalidArguments,
        format!("the call can't resume: {message}"),
    )
    .with_hint("make the call again, and answer its new questions")
}

fn misses(key: &str, problem: &str) -> CallError {
    CallError::of(
        ErrorCode::INPUT_INVALID,
        format!("the answer to `{key}` is not what was asked for: {problem}"),
    )
    .with_cause(serde_json::json!({ "question": key }))
    .with_hint("make the call again, and answer in the form that it asks for")
}
