//! The ids of requests: which ones are refused, so that no answer passes for that to another request.

use std::collections::VecDeque;

use rmcp::model::{ErrorData, RequestId};
use serde_json::json;

/// Cancelled requests whose ids can't be used again: a late answer to one of them would
/// pass for the answer to another.
const MAX_CANCELLED_IDS: usize = 256;
/// Longest id, in bytes. It is kept as long as its request is open.
pub(crate) const MAX_ID_BYTES: usize = 256;

/// The ids of the requests that were cancelled last.
#[derive(Debug, Default)]
pub(crate) struct CancelledIds(VecDeque<RequestId>);

impl CancelledIds {
    pub(crate) fn add(&mut self, id: RequestId) {
        if self.0.len() >= MAX_CANCELLED_IDS {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    pub(crate) fn contain(&self, id: &RequestId) -> bool {
        self.0.contains(id)
    }
}

/// Whether an id has more bytes than are kept.
pub(crate) fn is_too_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > MAX_ID_BYTES)
}

/// The error for such an id.
pub(crate) fn too_long() -> ErrorData {
    let message = format!("expected an `id` of at most {MAX_ID_BYTES} bytes");
    ErrorData::invalid_request(message, Some(json!({ "code": "no-message" })))
}

/// The error for the id of a request that is open or was cancelled.
pub(crate) fn in_use() -> ErrorData {
    let message = "expected a new `id`, found that of an open or a cancelled request";
    ErrorData::invalid_request(message, Some(json!({ "code": "id-in-use" })))
}
