//! The result of a call in the form of Amplifier's tool contract.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolward_contract::schema::Schema;
use toolward_host::{BlockContent, CallError, Output, Reply};
use toolward_support::text::visible;

use super::references::object;
use crate::records::references::milliseconds;

/// Characters of an error's message.
const MAX_MESSAGE_CHARS: usize = 4096;

/// A reply as Amplifier's `ToolResult`: the value, or the text of the content blocks if it is null. A model reads it:
/// what the schema of the tool's outputs marks `x-internal` is left out.
pub fn amplifier_result(reply: &Reply, outputs: Option<&Schema>) -> Value {
    let value = reply.result.as_ref().ok();
    json!({
        "success": value.is_some(),
        "output": value.and_then(|value| output(value, outputs)),
        "error": reply.result.as_ref().err().map(error),
    })
}

fn error(error: &CallError) -> Value {
    let hint = error.hint.as_deref();
    object! {
        message = visible(&error.message, MAX_MESSAGE_CHARS);
        type = error.code;
        class = error.class;
        retryable = error.retryable;
        retry_after_ms = error.retry_after.map(milliseconds);
        hint ? hint.map(|hint| visible(hint, MAX_MESSAGE_CHARS));
    }
}

fn output<'a>(output: &'a Output, outputs: Option<&Schema>) -> Option<Cow<'a, Value>> {
    if !output.structured.is_null() {
        return Some(match outputs {
            Some(schema) if schema.has_internal() => {
                Cow::Owned(schema.outward_value(output.structured.clone()))
            }
            _ => Cow::Borrowed(&output.structured),
        });
    }
    let texts = output
        .content
        .iter()
        .filter_map(|block| match &block.content {
            BlockContent::Text { text } => Some(text.as_str()),
            _ => None,
        });
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n").into()))
}
