//! Checks the output of a driver against its limits and its contract.

use serde_json::{Value, json};
use toolward_contract::json as strict;
use toolward_contract::tool::Tool;
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::invocation::DriverOutput;
use toolward_sandbox::limits::CallLimits;

use crate::api::result::{
    Block, BlockContent, CallError, ErrorClass, ErrorCode, Output, ResourceBody, shortened,
    too_much_memory,
};
use crate::call_context::CallContext;
use crate::executor::AttemptMemory;
use crate::validation_pool::{self, ValidationPool};

/// Checks size, form and schema of an output, within the call's deadline. Also returns the memory
/// that the output takes.
pub(super) async fn accept(
    output: DriverOutput,
    context: &CallContext,
    pool: &ValidationPool,
) -> Result<(Output, u64), CallError> {
    let (limits, contract) = (&context.limits, &context.contract);
    let dropped = &context.implements.drop_outputs;
    let memory = AttemptMemory::of(&context.slot, limits.memory_bytes);
    if validation_pool::is_short(output.structured.len(), &contract.outputs) {
        return check(output, limits, contract, dropped, &memory);
    }
    let (limits, contract) = (limits.clone(), contract.clone());
    let (dropped, clock) = (dropped.clone(), context.clock);
    let late = || clock.late();
    // Most outputs are short, and the futures of their calls do not contain this one.
    let checked = pool.run(context.principal(), clock.deadline, late, move || {
        check(output, &limits, &contract, &dropped, &memory)
    });
    Box::pin(checked).await
}

fn check(
    output: DriverOutput,
    limits: &CallLimits,
    contract: &Tool,
    dropped: &[String],
    memory: &AttemptMemory,
) -> Result<(Output, u64), CallError> {
    let (mut output, memory) = map_output(output, limits, memory)?;
    // Callers must not rely on the outputs that the driver declares as dropped.
    if let Value::Object(members) = &mut output.structured {
        for name in dropped {
            members.shift_remove(name);
        }
    }
    let Err(violation) = contract.outputs.validate(&output.structured) else {
        return Ok((output, memory));
    };
    let place = match violation.instance_path.as_ref() {
        "" => "/",
        path => path,
    };
    Err(CallError::of(
        ErrorCode::UPSTREAM_ERROR,
        format!(
            "the driver's output does not match the contract's schema at {place:?}: {}",
            violation.message
        ),
    )
    .with_cause(json!({
        "path": shortened(violation.instance_path),
        "schema_path": violation.schema_path,
    }))
    .with_hint("report this to the driver's publisher"))
}

/// Parses a driver's output, within the limits on size and JSON. Also returns the memory that the
/// output takes.
fn map_output(
    output: DriverOutput,
    limits: &CallLimits,
    memory: &AttemptMemory,
) -> Result<(Output, u64), CallError> {
    let used = size(&output);
    if used > limits.output_bytes {
        return Err(CallError::too_large(used, limits.output_bytes));
    }
    let own = size_of::<Block>() as u64;
    let blocks = own.saturating_mul(output.content.len() as u64);
    let blocks = blocks.saturating_add(output.lifted_bytes);
    let text = used.saturating_add(blocks);
    // Memory is counted during parsing, since small values take fifty times the memory of their
    // text.
    let parsed = memory.parse(output.structured.as_bytes(), &limits.json, text)?;
    let (structured, values) = parsed.map_err(|error| not_allowed(&error, limits))?;
    let memory = text.saturating_add(values);
    let output = Output {
        structured,
        content: output.content,
    };
    Ok((output, memory))
}

fn not_allowed(error: &strict::JsonError, limits: &CallLimits) -> CallError {
    if error.kind == strict::JsonErrorKind::TooMuchMemory {
        return too_much_memory(limits.memory_bytes);
    }
    if error.kind == strict::JsonErrorKind::TooMany {
        let allowed = limits.json.values as u64;
        return CallError::new(
            ErrorCode::RESULT_TOO_LARGE,
            ErrorClass::ResultTooLarge,
            format!("the result has more than the {allowed} JSON values that are allowed"),
        )
        .with_limit(Exceeded::over(LimitName::JsonValues, allowed))
        .with_hint("ask for less, or raise the limit `json_values`");
    }
    CallError::of(
        ErrorCode::UPSTREAM_ERROR,
        format!("the driver's output is not the JSON that is allowed: {error}"),
    )
    .with_hint("report this to the driver's publisher")
}

/// Bytes that a block counts in addition to its content, since an empty block takes memory, too.
const BLOCK: u64 = 64;

fn size(output: &DriverOutput) -> u64 {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let blocks = output.content.iter().map(|block| match &block.content {
        BlockContent::Text { text } => text.len(),
        BlockContent::Image { data, mime_type } | BlockContent::Audio { data, mime_type } => {
            data.len().saturating_add(mime_type.len())
        }
        BlockContent::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
            size: _,
        } => [
            uri.len(),
            name.len(),
            text(title),
            text(description),
            text(mime_type),
        ]
        .into_iter()
        .fold(0, usize::saturating_add),
        BlockContent::Resource {
            uri,
            mime_type,
            body,
        } => {
            let body = match body {
                ResourceBody::Text(text) => text.len(),
                ResourceBody::Blob(bytes) => bytes.len(),
            };
            (uri.len())
                .saturating_add(text(mime_type))
                .saturating_add(body)
        }
    });
    blocks.fold(output.structured.len() as u64, |sum, block| {
        sum.saturating_add(BLOCK).saturating_add(block as u64)
    })
}
