//! What the host itself holds for an attempt, in the memory of all calls.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;
use toolward_contract::json::{self as strict, JsonError, JsonErrorKind};
use toolward_sandbox::limits::MemoryBudget as _;

use super::limits;
use crate::admission::MemoryLease;
use crate::api::result::CallError;
use crate::imports::SlotCell;

/// The memory of one call: its part of the memory of all, and its limit.
#[derive(Debug, Clone)]
pub(crate) struct AttemptMemory {
    lease: Option<Arc<MemoryLease>>,
    limit: u64,
}

impl AttemptMemory {
    pub(crate) fn of(slot: &SlotCell, limit: u64) -> Self {
        Self {
            lease: slot.memory(),
            limit,
        }
    }

    /// Covers `used` bytes. Returns how many are covered.
    pub(crate) fn cover(&self, used: u64) -> Result<u64, CallError> {
        let Some(lease) = &self.lease else {
            return Ok(self.limit);
        };
        let covered = lease.cover(used.min(self.limit), self.limit);
        covered.map_err(limits::over)
    }

    /// Parses a text while `held` bytes are in memory, the text's own included. Returns the
    /// memory that the value takes, too.
    pub(crate) fn parse(
        &self,
        text: &[u8],
        json: &strict::Limits,
        held: u64,
    ) -> Result<Result<(Value, u64), JsonError>, CallError> {
        let most = self.limit.saturating_sub(held);
        let mut room = self.cover(held)?.saturating_sub(held).min(most);
        loop {
            let mut left = room;
            match strict::parse_within(text, json, &mut left) {
                Err(error) if error.kind == JsonErrorKind::TooMuchMemory && room < most => {
                    // What was leased before it was known how much the values take would be
                    // too much for nearly all texts.
                    let more = held.saturating_add(room.saturating_mul(2).max(1));
                    room = self.cover(more)?.saturating_sub(held).min(most);
                }
                parsed => return Ok(parsed.map(|value| (value, room.saturating_sub(left)))),
            }
        }
    }

    /// Drives a future until the call has to end for others.
    pub(crate) async fn until_ended<F: Future + Unpin>(
        &self,
        mut future: F,
    ) -> Result<F::Output, CallError> {
        poll_fn(|context| {
            let polled = Pin::new(&mut future).poll(context);
            if polled.is_pending()
                && let Some(lease) = &self.lease
                && let Poll::Ready(exceeded) = lease.poll_ended(context)
            {
                return Poll::Ready(Err(limits::over(exceeded)));
            }
            polled.map(Ok)
        })
        .await
    }
}
