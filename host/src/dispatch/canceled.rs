//! The ending of a call that nobody waits for any more: its future is dropped, and with it the guest. A reply
//! could be given to nobody; whoever observes the call is told, and the log has a line.

use std::sync::Arc;
use std::time::Instant;

use crate::observer::{Canceled, Observer};
use crate::request::Request;
use crate::result::{CallError, ErrorClass, ErrorCode, Metadata};

/// A call that has not ended. Dropped before [`Running::ended`], it was cancelled.
pub(crate) struct Running {
    pub(crate) metadata: Metadata,
    started: Instant,
    observer: Option<Arc<dyn Observer>>,
    called_by: Vec<String>,
    ended: bool,
}

impl Running {
    /// A call that begins. The observer of a call that a tool makes is that of the first caller.
    pub(crate) fn new(request: &Request, metadata: Metadata) -> Self {
        let of_root = || request.lineage.caller()?.root.observer.clone();
        Self {
            metadata,
            started: Instant::now(),
            observer: request.observer.clone().or_else(of_root),
            called_by: request.lineage.names(),
            ended: false,
        }
    }

    /// The call has a result: what was called, and what it took.
    pub(crate) fn ended(mut self) -> Metadata {
        self.ended = true;
        self.measured()
    }

    fn measured(&mut self) -> Metadata {
        let milliseconds = (self.started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
        Metadata {
            milliseconds,
            ..std::mem::take(&mut self.metadata)
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let metadata = self.measured();
        let error = CallError::new(
            ErrorCode::CANCELED,
            ErrorClass::Canceled,
            "the call was cancelled: nobody waits for it any more",
        );
        tracing::info!(
            invocation = metadata.invocation,
            tool = metadata.tool,
            code = error.code.as_str(),
            milliseconds = metadata.milliseconds,
            "a call was cancelled"
        );
        if let Some(observer) = self.observer.take() {
            observer.canceled(&Canceled {
                error,
                metadata,
                called_by: std::mem::take(&mut self.called_by),
            });
        }
    }
}
