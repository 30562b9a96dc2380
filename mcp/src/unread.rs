//! Results that a client has not read count in the memory of all calls. Without room a
//! connection that reads nothing ends.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolward_host::{ReadProgress, SharedState, UnreadResult};

/// Smaller results are not counted: limits on requests and connections bound them.
const MIN_COUNTED_BYTES: usize = 16 << 10;

/// Counts the results on one connection.
#[derive(Debug, Clone)]
pub(crate) struct UnreadResults {
    pub(crate) state: SharedState,
    pub(crate) principal: Arc<str>,
    /// Ends the connection.
    pub(crate) end: CancellationToken,
    /// Of all results on the connection: a result that waits for another is not unread.
    pub(crate) progress: ReadProgress,
}

impl UnreadResults {
    /// Counts a result until what is returned is dropped. Without room the connection ends.
    pub(crate) fn hold(&self, bytes: usize) -> Option<UnreadResult> {
        if bytes < MIN_COUNTED_BYTES {
            return None;
        }
        let end = self.end.clone();
        let ends = move || {
            tracing::warn!(
                "a client that does not read its results was disconnected (memory_total)"
            );
            end.cancel();
        };
        let held = self
            .state
            .unread(&self.principal, bytes as u64, &self.progress, ends.clone());
        if held.is_none() {
            ends();
        }
        held
    }
}
