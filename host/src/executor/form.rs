//! A driver of `kind: form`: a person fills in the contract's `outputs`, and their answer
//! is the output.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolward_contract::capability::Class;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_sandbox::invocation::{
    CallEnd, DriverAsk, DriverForm, DriverOutput, DriverQuestion, InputRequest, QuestionReply,
};

use super::{Attempt, AttemptReport, Executor, Features, Job, ResultSource};
use crate::api::result::{
    CallError, ErrorClass, ErrorCode, Result, invalid_arguments, unauthorised,
};
use crate::call_context::CallContext;
use crate::elicitation::{MAX_ROUNDS, OpenForms, RejectedAnswer, unavailable};

/// The key of the form's only question.
const KEY: &str = "form";
/// The most bytes of the tool's description that the person sees; the rest is cut.
const MAX_DESCRIPTION_BYTES: usize = 1500;
/// The most bytes of the input that the person sees; a longer input is refused.
const MAX_INPUT_BYTES: usize = 2000;

/// The executor of forms.
pub(crate) struct FormExecutor {
    pub(super) driver: Arc<Driver>,
    pub(super) forms: Arc<OpenForms>,
}

impl Executor for FormExecutor {
    fn features(&self) -> Features {
        Features {
            asks_again: true,
            ..Features::default()
        }
    }

    fn begin(&self, job: &Job, context: &mut CallContext) -> Result<()> {
        let id = &job.invocation.id;
        let form = OpenForms::opened(&self.forms, &context.scope.principal, id);
        context.extensions.insert(form);
        Ok(())
    }

    fn attempt<'a>(&'a self, job: &'a mut Job, context: &'a CallContext) -> Attempt<'a> {
        let end = self.end(job, context);
        let report = AttemptReport {
            dispatched: false,
            source: ResultSource::Person,
            ..AttemptReport::new(end.unwrap_or_else(CallEnd::Failed))
        };
        Box::pin(std::future::ready(report))
    }
}

impl FormExecutor {
    fn end(&self, job: &mut Job, context: &CallContext) -> Result<CallEnd> {
        let Some(resumption) = job.invocation.resume.take() else {
            return self.ask(job, context, None);
        };
        if !self.forms.close(context.principal(), &job.invocation.id) {
            return Err(unanswered("nobody answered in time"));
        }
        if let Some(RejectedAnswer(problem)) = context.extensions.get() {
            return self.ask(job, context, Some(problem));
        }
        let reply = resumption.answers.into_iter().next();
        match reply.map(|answer| answer.reply) {
            Some(QuestionReply::Accepted(structured)) => {
                Ok(CallEnd::Done(DriverOutput::new(structured)))
            }
            Some(QuestionReply::Declined) => Err(unanswered("the person declined")),
            Some(QuestionReply::Cancelled) | None => Err(unanswered("nobody answered")),
        }
    }

    fn ask(&self, job: &Job, context: &CallContext, rejected: Option<&str>) -> Result<CallEnd> {
        let asker = &context.asker;
        if !context.access.grant.has(&Class::User, "form") {
            return Err(unauthorised(
                ErrorClass::CapabilityGap,
                "the driver asks a person, and is not granted that",
            ));
        }
        if asker.rounds >= MAX_ROUNDS {
            return Err(unanswered(&format!(
                "no answer in {MAX_ROUNDS} rounds is what the contract takes"
            )));
        }
        let schema = self.driver.form(&context.contract, &context.implements);
        let schema = schema.map_err(|problem| {
            CallError::of(
                ErrorCode::UPSTREAM_ERROR,
                format!("the contract's `outputs` can't be asked as a form: {problem}"),
            )
            .with_hint("report this to the tool's publisher")
        })?;
        let request = InputRequest {
            questions: vec![DriverQuestion {
                key: KEY.to_owned(),
                ask: DriverAsk::Form(DriverForm {
                    message: message(&context.contract, job, rejected)?,
                    schema: schema.to_string(),
                }),
            }],
            state: Vec::new(),
        };
        // A form is opened only after its question was accepted, so that a refused question does
        // not keep other calls from asking.
        asker.take(request.clone(), &context.access.grant, &context.violations)?;
        let (principal, id) = (context.principal(), &job.invocation.id);
        self.forms.open(principal, id).map_err(busy)?;
        Ok(CallEnd::Asks(request))
    }
}

/// The text of the form: the purpose of the tool, and the input. Each line of the input has a bar
/// in front, so that it can't imitate the host's lines.
fn message(contract: &Tool, job: &Job, rejected: Option<&str>) -> Result<String> {
    let description = &contract.description;
    let end = description.floor_char_boundary(MAX_DESCRIPTION_BYTES);
    let mut message = String::new();
    if let Some(problem) = rejected {
        let end = problem.floor_char_boundary(MAX_DESCRIPTION_BYTES / 3);
        let problem = problem.get(..end).unwrap_or_default();
        message.push_str(&format!("Your last answer was not taken: {problem}\n\n"));
    }
    message.push_str(description.get(..end).unwrap_or_default());
    let input = contract.inputs.observable(&job.contract_input);
    if input.as_object().is_some_and(|members| members.is_empty()) {
        return Ok(message);
    }
    let input = serde_json::to_string_pretty(&input).unwrap_or_default();
    if input.len() > MAX_INPUT_BYTES {
        let message = format!(
            "a person is shown at most {MAX_INPUT_BYTES} bytes of input, and this has {}",
            input.len()
        );
        return Err(invalid_arguments(message).with_hint("shorten the input"));
    }
    message.push_str("\n\narguments:\n");
    for line in input.lines() {
        message.extend(["| ", line, "\n"]);
    }
    Ok(message)
}

/// The error if no one answers.
fn unanswered(why: &str) -> CallError {
    let mut error = unavailable(&[]);
    error.message = format!("a person was asked, and there is no answer: {why}");
    error
        .with_cause(json!({ "rule": "form-unanswered" }))
        .with_hint("ask the person whether they want to answer, then call again")
}

fn busy(wait: Duration) -> CallError {
    let message = "a person is asked by another call already";
    CallError::of(ErrorCode::RATE_LIMITED, message)
        .with_retry_after(wait)
        .with_hint("call again once that call has ended")
}
