//! A driver of `kind: form`: a person fills in the contract's `outputs`, and their answer
//! is the output.

use std::time::Duration;

use serde_json::{Value, json};

use super::attempts::{Attempt, Attempts};
use super::clock::Clock;
use super::outcome::Attempted;
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode};
use crate::catalogue::Route;
use crate::elicitation::{Asker, CallForm, MAX_ROUNDS, unavailable};
use crate::invocation::{
    DriverAsk, DriverOutput, DriverQuestion, InputRequest, QuestionReply, Resumption,
};
use crate::pipeline::validate::RoutedCall;

/// The key of the one question.
const KEY: &str = "form";
/// Bytes of the tool's description, and of the input, that the person sees.
const MAX_DESCRIPTION_BYTES: usize = 1500;
const MAX_INPUT_BYTES: usize = 2000;

/// What a call asks a person, and what they answered.
pub(crate) struct Form<'a> {
    pub(crate) call: &'a RoutedCall,
    pub(crate) route: &'a Route,
    pub(crate) invocation: String,
    pub(crate) asker: Asker,
    pub(crate) open: &'a CallForm<'a>,
    /// Set where the call resumes.
    pub(crate) resumption: Option<Resumption>,
    /// Why the last answer does not fit.
    pub(crate) rejected: Option<String>,
}

impl Attempts for Form<'_> {
    async fn attempt(&mut self, _number: u32, _clock: &Clock, _spent: u64) -> Attempt {
        Attempt {
            result: self.result(),
            claimed: false,
            dispatched: false,
            failing: false,
            fuel: 0,
            peak_memory: 0,
            captured: Captured::default(),
        }
    }
}

impl Form<'_> {
    fn result(&mut self) -> Result<Attempted, CallError> {
        let principal = &self.call.scope.principal;
        let Some(resumption) = self.resumption.take() else {
            return self.ask(None);
        };
        if !self.open.close(principal, &self.invocation) {
            return Err(unanswered("nobody answered in time"));
        }
        if let Some(problem) = self.rejected.take() {
            return self.ask(Some(&problem));
        }
        let reply = resumption.answers.into_iter().next();
        match reply.map(|answer| answer.reply) {
            Some(QuestionReply::Accepted(structured)) => Ok(Attempted::Done(DriverOutput {
                structured,
                content: Vec::new(),
                lifted_bytes: 0,
            })),
            Some(QuestionReply::Declined) => Err(unanswered("the person declined")),
            Some(QuestionReply::Cancelled) | None => Err(unanswered("nobody answered")),
        }
    }

    fn ask(&self, rejected: Option<&str>) -> Result<Attempted, CallError> {
        if !self.asker.granted.form {
            return Err(CallError::new(
                ErrorCode::UNAUTHORISED,
                ErrorClass::CapabilityGap,
                "the driver asks a person, and is not granted that".to_owned(),
            ));
        }
        if self.asker.rounds >= MAX_ROUNDS {
            return Err(unanswered(&format!(
                "no answer in {MAX_ROUNDS} rounds is what the contract takes"
            )));
        }
        let contract = &self.call.tool.contract;
        let schema = self
            .route
            .driver
            .driver
            .form(contract, &self.route.implements);
        let schema = schema.map_err(|problem| {
            CallError::new(
                ErrorCode::UPSTREAM_ERROR,
                ErrorClass::ExecutionFailed,
                format!("the contract's `outputs` can't be asked as a form: {problem}"),
            )
            .with_hint("report this to the tool's publisher")
        })?;
        let request = InputRequest {
            questions: vec![DriverQuestion {
                key: KEY.to_owned(),
                ask: DriverAsk::Form {
                    message: self.message(rejected)?,
                    schema: schema.to_string(),
                },
            }],
            state: Vec::new(),
        };
        let questions = self.asker.take(request)?;
        self.open
            .open(&self.call.scope.principal, &self.invocation)
            .map_err(busy)?;
        Ok(Attempted::Asks(questions))
    }

    /// What the tool is for, and the input behind a bar, so that no line of it passes for one of
    /// these.
    fn message(&self, rejected: Option<&str>) -> Result<String, CallError> {
        let contract = &self.call.tool.contract;
        let description = &contract.description;
        let end = description.floor_char_boundary(MAX_DESCRIPTION_BYTES);
        let mut message = String::new();
        if let Some(problem) = rejected {
            let end = problem.floor_char_boundary(MAX_DESCRIPTION_BYTES / 3);
            let problem = problem.get(..end).unwrap_or_default();
            message.push_str(&format!("Your last answer was not taken: {problem}\n\n"));
        }
        message.push_str(description.get(..end).unwrap_or_default());
        let input = contract.inputs.observable(&self.call.contract_input);
        if input.as_object().is_some_and(|members| members.is_empty()) {
            return Ok(message);
        }
        let input = serde_json::to_string_pretty(&input).unwrap_or_default();
        if input.len() > MAX_INPUT_BYTES {
            return Err(CallError::new(
                ErrorCode::INPUT_INVALID,
                ErrorClass::InvalidArguments,
                format!(
                    "a person is shown at most {MAX_INPUT_BYTES} bytes of input, and this has {}",
                    input.len()
                ),
            )
            .with_hint("shorten the input"));
        }
        message.push_str("\n\narguments:\n");
        for line in input.lines() {
            message.extend(["| ", line, "\n"]);
        }
        Ok(message)
    }
}

/// There is no answer.
fn unanswered(why: &str) -> CallError {
    let cause: Value = json!({ "rule": "form-unanswered" });
    CallError {
        message: format!("a person was asked, and there is no answer: {why}"),
        ..unavailable(&[])
    }
    .with_cause(cause)
    .with_hint("ask the person whether they want to answer, then call again")
}

fn busy(wait: Duration) -> CallError {
    CallError {
        retryable: true,
        retry_after: Some(wait),
        ..CallError::new(
            ErrorCode::RATE_LIMITED,
            ErrorClass::RateLimited,
            "a person is asked by another call already".to_owned(),
        )
        .with_hint("call again once that call has ended")
    }
}
