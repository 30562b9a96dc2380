//! The stage that answers a call from a tape instead of dispatching it. What was recorded passes today's schema,
//! limits and redaction; a person is not asked, since nothing is done.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::result::{Block, CallError, ErrorClass, ErrorCode, Origin, Output, shortened};
use crate::executor::{AttemptMemory, Clock};
use crate::invocation::DriverOutput;
use crate::pipeline::authorise::Granted;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::dispatch::{Mapped, accept};
use crate::pipeline::validate::RoutedCall;
use crate::recording::publisher_id;
use crate::tape::{Nearest, Taken, Tape, Wanted};
use crate::validation_pool::ValidationPool;

/// The message of a failure of which none was kept.
const NO_MESSAGE: &str = "the recorded call failed; what it said was not kept";

/// A recorded output. `content` is a text where it was hidden.
#[derive(Deserialize)]
struct RecordedOutput {
    value: Value,
    content: Option<Value>,
}

/// What was said of a recorded failure.
#[derive(Default, Deserialize)]
struct RecordedDetail {
    message: Option<String>,
    cause: Option<Value>,
    hint: Option<String>,
}

/// Answers from the tape.
pub(crate) async fn answer(
    granted: Granted<RoutedCall>,
    tape: &Tape,
    pool: &ValidationPool,
    record: &mut CallRecord<'_>,
) -> Result<Output, CallError> {
    let (mut call, _) = granted.into_parts();
    let recorded = call.recorded_input.take();
    let recorded = recorded.ok_or_else(|| CallError::internal("a call without a recorded form"))?;
    let publisher = publisher_id(&call.tool.publisher);
    let publisher = publisher.ok_or_else(|| no_recording(&call, &Nearest::default()))?;
    let taken = tape.take(&Wanted {
        principal: &call.scope.principal,
        tool: call.tool.contract.id.as_str(),
        full_id: &call.tool.full_id,
        publisher: &publisher,
        input: &recorded.input,
    });
    let taken = taken.map_err(|nearest| no_recording(&call, &nearest))?;
    record.replayed(&taken, tape.ledger());
    let mut result = match taken.call.outcome.code {
        Some(_) => Err(failure(&taken)),
        None => output(&taken, &call, pool).await,
    };
    if let Some(redactor) = &recorded.redactor {
        match &mut result {
            Ok(output) => redactor.output(output),
            Err(error) => redactor.error(error),
        }
    }
    result
}

async fn output(
    taken: &Taken,
    call: &RoutedCall,
    pool: &ValidationPool,
) -> Result<Output, CallError> {
    let unreadable = || {
        CallError::new(
            ErrorCode::UPSTREAM_ERROR,
            ErrorClass::ExecutionFailed,
            "the recorded output is not one of this host's",
        )
    };
    let bytes = taken.call.output.as_deref().unwrap_or_default();
    let recorded: RecordedOutput = serde_json::from_slice(bytes).map_err(|_| unreadable())?;
    let content: Vec<Block> = match recorded.content {
        Some(blocks @ Value::Array(_)) => {
            serde_json::from_value(blocks).map_err(|_| unreadable())?
        }
        _ => Vec::new(),
    };
    let output = DriverOutput {
        structured: recorded.value.to_string(),
        content,
        lifted_bytes: 0,
    };
    let clock = Clock::start(call.timeout, None);
    let limits = &call.route.limits;
    let accepted = accept(
        output,
        (limits, AttemptMemory::alone(limits.memory_bytes)),
        &call.tool.contract,
        &call.route.implements.drop_outputs,
        (pool, &call.scope.principal),
        clock.deadline,
        || clock.late(),
    );
    let Mapped(output, _) = accepted.await?;
    Ok(output)
}

/// The recorded error. It is the driver's where it was, or where this host has no such code.
fn failure(taken: &Taken) -> CallError {
    let outcome = &taken.call.outcome;
    let code = outcome.code.as_ref().map_or("", |code| code.as_str());
    let is_own = outcome
        .origin
        .as_ref()
        .is_some_and(|word| word.as_str() == "host");
    let own = ErrorCode::of_host(code).filter(|_| is_own);
    let (code, origin) = match own {
        Some(own) => (own, Origin::Host),
        None => {
            let given = ErrorCode::from_driver(code);
            (given.unwrap_or(ErrorCode::UPSTREAM_ERROR), Origin::Driver)
        }
    };
    let class = outcome.class.as_ref();
    let class = class.and_then(|word| serde_json::from_value(json!(word)).ok());
    let detail = taken.call.detail.as_deref().unwrap_or_default();
    let detail: RecordedDetail = serde_json::from_slice(detail).unwrap_or_default();
    let message = detail.message.unwrap_or_else(|| NO_MESSAGE.to_owned());
    let class = class.unwrap_or(ErrorClass::ExecutionFailed);
    let mut error = CallError::new(code, class, message);
    error.origin = origin;
    error.cause = detail.cause;
    error.hint = detail.hint.map(shortened);
    error
}

fn no_recording(call: &RoutedCall, nearest: &Nearest) -> CallError {
    let tool = &call.tool.major_id;
    let message = match (&nearest.nearest, nearest.left) {
        (Some(_), left) => format!(
            "no recorded call of `{tool}` that is left has this input; {left} have another one"
        ),
        (None, _) => format!("no recorded call of `{tool}` is left"),
    };
    CallError::new(
        ErrorCode::NO_ROUTE,
        ErrorClass::DependencyUnavailable,
        message,
    )
    .with_cause(json!(nearest))
    .with_hint("only recorded calls are answered here, each once; nothing runs")
}
