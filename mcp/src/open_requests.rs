//! The open requests of a client. An id that is in use is refused, so that no answer is taken for
//! the answer to another request.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::json;
use toolward_host::{CallError, Cancellation, ErrorClass, SharedCancellation};

/// The most open requests of a client: requests that are neither answered nor cancelled.
pub(crate) const MAX_OPEN_REQUESTS: usize = 2048;
/// Memory that all open requests may take together.
pub(crate) const MAX_OPEN_BYTES: usize = 256 << 20;
/// The retry-after of a request beyond the limits.
const RETRY_AFTER_DELAY: Duration = Duration::from_secs(1);
/// JSON-RPC, a code for servers to define: too many requests.
const SERVER_ERROR: ErrorCode = ErrorCode(-32000);

/// From this number of open calls on, their answers may be joined. A client of few calls would wait
/// longer for an answer, and save little.
const MANY_CALLS: usize = 4;

/// The requests that a client waits for.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    requests: HashMap<RequestId, Open>,
    cost: usize,
    calls: usize,
    /// How many of the open calls came while no other call was open.
    first_calls: usize,
    cancelled: CancelledIds,
}

#[derive(Debug)]
struct Open {
    cost: usize,
    /// Why the call is cancelled. Set for tool calls only.
    cancellation: Option<SharedCancellation>,
    /// 1 for a call that came while no other call was open.
    first_calls: usize,
}

impl Open {
    fn cancel(&self, reason: Cancellation) {
        if let Some(cancellation) = &self.cancellation {
            cancellation.set(reason);
        }
    }
}

impl OpenRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// How many of the open requests are tool calls.
    pub(crate) fn calls(&self) -> usize {
        self.calls
    }

    /// Whether many calls are open, and each of them came while another one was open.
    pub(crate) fn many_came_together(&self) -> bool {
        self.calls >= MANY_CALLS && self.first_calls == 0
    }

    pub(crate) fn cancelled(&mut self, id: &RequestId) {
        if let Some(open) = self.ended(id) {
            open.cancel(Cancellation::Caller);
            self.cancelled.add(id.clone());
        }
    }

    /// Notes that the client has disconnected.
    pub(crate) fn disconnected(&self) {
        let requests = self.requests.values();
        requests.for_each(|open| open.cancel(Cancellation::Disconnected));
    }

    pub(crate) fn answered(&mut self, id: &RequestId) {
        self.ended(id);
    }

    fn ended(&mut self, id: &RequestId) -> Option<Open> {
        let open = self.requests.remove(id)?;
        self.cost = self.cost.saturating_sub(open.cost);
        let calls = usize::from(open.cancellation.is_some());
        self.calls = self.calls.saturating_sub(calls);
        self.first_calls = self.first_calls.saturating_sub(open.first_calls);
        Some(open)
    }

    /// Opens a request. Only a tool call has a `cancellation`.
    pub(crate) fn begin(
        &mut self,
        id: &RequestId,
        cost: usize,
        cancellation: Option<SharedCancellation>,
    ) -> Result<(), ErrorData> {
        let is_open = self.requests.contains_key(id);
        self.cancelled.check_new(id, is_open)?;
        if cost > MAX_OPEN_BYTES {
            let message = "expected a message that takes less memory: fewer values";
            return Err(invalid(message, "message-too-complex"));
        }
        let costs = self.cost.saturating_add(cost);
        if self.requests.len() >= MAX_OPEN_REQUESTS || costs > MAX_OPEN_BYTES {
            return Err(too_many());
        }
        let calls = usize::from(cancellation.is_some());
        let first_calls = usize::from(calls > self.calls);
        self.first_calls = self.first_calls.saturating_add(first_calls);
        self.calls = self.calls.saturating_add(calls);
        let open = Open {
            cost,
            cancellation,
            first_calls,
        };
        self.requests.insert(id.clone(), open);
        self.cost = costs;
        Ok(())
    }
}

/// Returns the error for a refused request, with a stable code.
pub(crate) fn invalid(message: impl Into<Cow<'static, str>>, code: &str) -> ErrorData {
    ErrorData::invalid_request(message, Some(json!({ "code": code })))
}

/// Returns the same error as the host does when too many calls wait.
pub(crate) fn too_many() -> ErrorData {
    let message = "too many requests are open; retry when one has ended";
    let code = toolward_host::ErrorCode::RATE_LIMITED;
    let mut error = CallError::new(code, ErrorClass::RateLimited, message);
    error.retryable = true;
    error.retry_after = Some(RETRY_AFTER_DELAY);
    ErrorData::new(SERVER_ERROR, message, serde_json::to_value(error).ok())
}

/// The most cancelled requests whose ids can't be used again. Otherwise a late answer to a
/// cancelled request would be taken for the answer to a new request with the same id.
const MAX_CANCELLED_IDS: usize = 256;
/// The longest id, in bytes. Ids of open and of cancelled requests are stored.
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

    /// Checks the id of a new request.
    ///
    /// # Errors
    ///
    /// If the id is too long, or belongs to a request that is open or was cancelled lately.
    pub(crate) fn check_new(&self, id: &RequestId, is_open: bool) -> Result<(), ErrorData> {
        if is_too_long(id) {
            let message = format!("expected an `id` of at most {MAX_ID_BYTES} bytes");
            return Err(invalid(message, "no-message"));
        }
        if is_open || self.0.contains(id) {
            let message = "expected a new `id`, found that of an open or a cancelled request";
            return Err(invalid(message, "id-in-use"));
        }
        Ok(())
    }
}

/// Whether an id is longer than [`MAX_ID_BYTES`].
pub(crate) fn is_too_long(id: &RequestId) -> bool {
    matches!(id, RequestId::String(text) if text.len() > MAX_ID_BYTES)
}
