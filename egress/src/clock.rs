//! The time limits of one request: its own, the call's deadline, and the guest's
//! shorter ones.

use std::time::{Duration, Instant};

use crate::error::{Stage, Timeout};

/// Timeouts that the guest asks for; they can only shorten its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, the name's resolution and TLS included.
    pub connect: Option<Duration>,
    /// From then to the response's head.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the response's body.
    pub between_bytes: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// When the request times out, whatever its stage.
    until: Instant,
    /// When the call ends.
    deadline: Instant,
    pub(crate) timeouts: Timeouts,
}

impl Clock {
    pub(crate) fn start(request: Duration, deadline: Instant, timeouts: Timeouts) -> Clock {
        let now = Instant::now();
        let until = now.checked_add(request).unwrap_or(deadline).min(deadline);
        Clock {
            until,
            deadline,
            timeouts,
        }
    }

    /// The end of a stage that begins now.
    pub(crate) fn end(&self, own: Option<Duration>) -> Instant {
        own.and_then(|own| Instant::now().checked_add(own))
            .map_or(self.until, |end| end.min(self.until))
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn timeout(&self, stage: Stage) -> Timeout {
        let deadline = Instant::now() >= self.deadline;
        Timeout { stage, deadline }
    }

    /// Runs `future` until `end`. The caller pins it: moved in here, it would occupy
    /// its space in the caller's future twice.
    pub(crate) async fn within<T>(
        &self,
        end: Instant,
        stage: Stage,
        future: impl Future<Output = T> + Unpin,
    ) -> Result<T, Timeout> {
        // A timer that is due still lets a future finish that is ready: a
        // runtime kept busy by guests must not stretch the time.
        if Instant::now() >= end {
            return Err(self.timeout(stage));
        }
        tokio::time::timeout_at(end.into(), future)
            .await
            .map_err(|_| self.timeout(stage))
    }
}
