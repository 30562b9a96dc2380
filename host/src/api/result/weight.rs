//! What results and records take in the host's memory, beside the values that they
//! are made of ([`toolward_contract::json::weight`]).

use std::mem::size_of;

use toolward_contract::json::weight::{string, value};

use super::{Block, BlockContent, CallError, LogRecord, Output, ResourceBody};

/// A record that a driver logged, and its copy on the way to an observer.
pub(crate) fn record(record: &LogRecord) -> u64 {
    (size_of::<LogRecord>() as u64)
        .saturating_add(string(&record.message))
        .saturating_add(value(&record.fields))
        .saturating_mul(2)
}

/// A result: its value and blocks, or its error.
pub(crate) fn result(result: &Result<Output, CallError>) -> u64 {
    match result {
        Ok(output) => {
            let blocks = output.content.iter().map(block);
            blocks.fold(value(&output.structured), u64::saturating_add)
        }
        Err(error) => {
            let hint = error.hint.as_deref().map_or(0, string);
            let cause = error.cause.as_ref().map_or(0, value);
            (size_of::<CallError>() as u64)
                .saturating_add(string(&error.message))
                .saturating_add(hint)
                .saturating_add(cause)
        }
    }
}

fn block(block: &Block) -> u64 {
    let text = |text: &Option<String>| text.as_deref().map_or(0, string);
    let bytes = |bytes: &[u8]| bytes.len() as u64;
    let parts = match &block.content {
        BlockContent::Text { text } => [string(text), 0, 0, 0, 0],
        BlockContent::Image { data, mime_type } | BlockContent::Audio { data, mime_type } => {
            [bytes(data), string(mime_type), 0, 0, 0]
        }
        BlockContent::ResourceLink {
            uri,
            name,
            title,
            description,
            mime_type,
            size: _,
        } => [
            string(uri),
            string(name),
            text(title),
            text(description),
            text(mime_type),
        ],
        BlockContent::Resource {
            uri,
            mime_type,
            body,
        } => {
            let body = match body {
                ResourceBody::Text(text) => string(text),
                ResourceBody::Blob(blob) => bytes(blob),
            };
            [string(uri), text(mime_type), body, 0, 0]
        }
    };
    let own = size_of::<Block>() as u64;
    parts.into_iter().fold(own, u64::saturating_add)
}
