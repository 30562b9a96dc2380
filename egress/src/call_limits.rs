//! What one call may use.

use std::time::{Duration, Instant};

/// What one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Requests in flight: from [`crate::Call::send`] to the end of the response's body.
    pub requests_at_once: u32,
    /// Requests in all, refused ones included.
    pub requests_total: u64,
    /// Bytes of one request body.
    pub request_body_bytes: u64,
    /// Bytes of one response body.
    pub response_body_bytes: u64,
    /// Bytes of all heads and bodies, both ways.
    pub total_bytes: u64,
    /// Bytes of a request's head, and of a response's; of the latter, 64 KiB at
    /// most.
    pub header_bytes: u64,
    /// From [`crate::Call::send`] to the end of the response's body.
    pub request_timeout: Duration,
    /// When the call is over.
    pub deadline: Instant,
}

impl CallLimits {
    /// The default limits, for a call that is over at `deadline`.
    #[must_use]
    pub fn until(deadline: Instant) -> CallLimits {
        const MIB: u64 = 1 << 20;
        CallLimits {
            requests_at_once: 16,
            requests_total: 1000,
            request_body_bytes: 16 * MIB,
            response_body_bytes: 16 * MIB,
            total_bytes: 256 * MIB,
            header_bytes: 64 << 10,
            request_timeout: Duration::from_secs(60),
            deadline,
        }
    }
}
