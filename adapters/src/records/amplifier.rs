//! The result of a call in the form of Amplifier's tool contract.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use toolward_contract::schema::Schema;
use toolward_host::{BlockContent, CallError, ErrorClass, ErrorCode, Output, Reply};
use toolward_support::text::visible;

use crate::records::references::milliseconds;

/// Characters of an error's message.
const MAX_MESSAGE_CHARS: usize = 4096;

/// Amplifier's `ToolResult`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AmplifierResult<'a> {
    /// Whether there is an output.
    pub success: bool,
    /// The value without what is internal; where it is null, the text of the content blocks.
    pub output: Option<Cow<'a, Value>>,
    /// Why there is none.
    pub error: Option<AmplifierError>,
}

/// The error of an [`AmplifierResult`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AmplifierError {
    /// What happened.
    pub message: String,
    /// The stable code.
    #[serde(rename = "type")]
    pub code: ErrorCode,
    /// The class of Agent Tool.
    pub class: ErrorClass,
    /// Whether the same call may work later.
    pub retryable: bool,
    /// How long to wait before that.
    pub retry_after_ms: Option<u64>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl<'a> AmplifierResult<'a> {
    /// That of a reply. A model reads it: what the schema of the tool's outputs marks `x-internal` is left out.
    #[must_use]
    pub fn of(reply: &'a Reply, outputs: Option<&Schema>) -> Self {
        let value = reply.result.as_ref().ok();
        Self {
            success: value.is_some(),
            output: value.and_then(|value| output(value, outputs)),
            error: reply.result.as_ref().err().map(AmplifierError::of),
        }
    }
}

impl AmplifierError {
    fn of(error: &CallError) -> Self {
        let after = |after: Duration| milliseconds(after);
        Self {
            message: visible(&error.message, MAX_MESSAGE_CHARS),
            code: error.code.clone(),
            class: error.class,
            retryable: error.retryable,
            retry_after_ms: error.retry_after.map(after),
            hint: error
                .hint
                .as_deref()
                .map(|hint| visible(hint, MAX_MESSAGE_CHARS)),
        }
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
