//! The executor of recorded results: answers a call from a tape, for any kind of driver. A recorded
//! result must match the current schema and limits, and is redacted. No person is asked, since
//! nothing runs.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_ledger::cassette::CassetteCall;
use toolward_sandbox::invocation::DriverOutput;

use super::{Attempt, AttemptReport, Executor, Features, Job, ResultSource};
use crate::api::result::{
    Block, CallError, ErrorClass, ErrorCode, Origin, Output, Result, shortened,
};
use crate::call_context::CallContext;
use crate::recording::publisher_id;
use crate::redact::Redactor;
use crate::tape::{Nearest, Tape, Wanted};

/// A call's input in the form in which it would be recorded.
pub(crate) struct RecordedInput {
    /// The publisher of the tool.
    pub(crate) publisher: Arc<str>,
    pub(crate) input: Value,
    /// Removes the current secrets.
    pub(crate) redactor: Option<Redactor>,
}

/// The message of a recorded failure that has no recorded message.
const NO_MESSAGE: &str = "the recorded call failed; what it said was not kept";

/// The executor of one tape.
pub(crate) struct ReplayExecutor {
    pub(super) tape: Tape,
}

impl ReplayExecutor {
    fn report(&self, context: &CallContext) -> Result<AttemptReport> {
        let recorded = context.extensions.get::<RecordedInput>();
        let recorded =
            recorded.ok_or_else(|| CallError::internal("a call without a recorded form"))?;
        let contract = &context.contract;
        let publisher = publisher_id(&recorded.publisher);
        let full_id = format!("{}@{}", contract.id, contract.version);
        let taken = match &publisher {
            Some(publisher) => self.tape.take(&Wanted {
                principal: context.principal(),
                tool: contract.id.as_str(),
                full_id: &full_id,
                publisher,
                input: &recorded.input,
            }),
            None => Err(Nearest::default()),
        };
        let (call, replayed) =
            taken.map_err(|nearest| no_recording(&contract.major_id(), &nearest))?;
        let result = match call.outcome.code {
            Some(_) => Err(failure(&call)),
            None => output(&call),
        };
        let result = result.map(|output| DriverOutput {
            content: output.content,
            ..DriverOutput::new(output.structured.to_string())
        });
        Ok(AttemptReport {
            source: ResultSource::Record(Box::new(replayed)),
            ..AttemptReport::new(result.into())
        })
    }
}

impl Executor for ReplayExecutor {
    fn features(&self) -> Features {
        Features {
            replays: true,
            ..Features::default()
        }
    }

    fn attempt<'a>(&'a self, _job: &'a mut Job, context: &'a CallContext) -> Attempt<'a> {
        let report = self.report(context);
        let report = report.unwrap_or_else(AttemptReport::failed);
        Box::pin(std::future::ready(report))
    }
}

/// A recorded output. `content` is a text if it was hidden.
#[derive(Deserialize)]
struct RecordedOutput {
    value: Value,
    content: Option<Value>,
}

/// The message and further details of a recorded failure.
#[derive(Default, Deserialize)]
struct RecordedDetail {
    message: Option<String>,
    cause: Option<Value>,
    hint: Option<String>,
}

fn output(call: &CassetteCall) -> Result<Output> {
    let unreadable = |_| {
        CallError::of(
            ErrorCode::UPSTREAM_ERROR,
            "the recorded output is not one of this host's",
        )
    };
    let bytes = call.output.as_deref().unwrap_or_default();
    let recorded: RecordedOutput = serde_json::from_slice(bytes).map_err(unreadable)?;
    let content: Vec<Block> = match recorded.content {
        Some(blocks @ Value::Array(_)) => serde_json::from_value(blocks).map_err(unreadable)?,
        _ => Vec::new(),
    };
    Ok(Output {
        structured: recorded.value,
        content,
    })
}

/// The recorded error. It counts as a driver's error if it was one, or if this host does not know
/// its code.
fn failure(call: &CassetteCall) -> CallError {
    let outcome = &call.outcome;
    let code = outcome.code.as_ref().map_or("", |code| code.as_str());
    let origin = outcome.origin.as_ref().map(|word| word.as_str());
    let own = ErrorCode::of_host(code).filter(|_| origin == Some("host"));
    let (code, origin) = match own {
        Some(own) => (own, Origin::Host),
        None => {
            let given = ErrorCode::from_driver(code);
            (given.unwrap_or(ErrorCode::UPSTREAM_ERROR), Origin::Driver)
        }
    };
    let class = outcome.class.as_ref();
    let class = class.and_then(|word| serde_json::from_value(json!(word)).ok());
    let detail = call.detail.as_deref().unwrap_or_default();
    let detail: RecordedDetail = serde_json::from_slice(detail).unwrap_or_default();
    let message = detail.message.unwrap_or_else(|| NO_MESSAGE.to_owned());
    let class = class.unwrap_or(ErrorClass::ExecutionFailed);
    let mut error = CallError::new(code, class, message);
    error.origin = origin;
    error.cause = detail.cause;
    error.hint = detail.hint.map(shortened);
    error
}

fn no_recording(tool: &str, nearest: &Nearest) -> CallError {
    let message = match (&nearest.nearest, nearest.left) {
        (Some(_), left) => format!(
            "no recorded call of `{tool}` that is left has this input; {left} have another one"
        ),
        (None, _) => format!("no recorded call of `{tool}` is left"),
    };
    CallError::of(ErrorCode::NO_ROUTE, message)
        .with_cause(json!(nearest))
        .with_hint("only recorded calls are answered here, each once; nothing runs")
}
