//! Attempts by a component: each in a sandbox of its own.

use super::attempts::{Attempt, Attempts};
use super::clock::Clock;
use super::outcome;
use super::outcome::Attempted;
use crate::api::result::Captured;
use crate::elicitation::Asker;
use crate::sandbox::AttemptLimits;
use crate::sandbox::context::Context;
use crate::sandbox::run::{self, AttemptOutcome, Instance, PreparedCall};
use crate::sandbox::tools::SlotCell;
use crate::sandbox::turns::Spender;

/// A call of a component and what its attempts share.
pub(crate) struct Component<'a> {
    pub(crate) call: PreparedCall<'a>,
    pub(crate) context: &'a Context,
    pub(crate) asker: Asker,
    /// Whose account pays for its turns; `None` for a nested call, which runs in its
    /// caller's turns.
    pub(crate) spender: Option<Spender<'a>>,
    /// Has the memory of the call.
    pub(crate) slot: &'a SlotCell,
    /// Fuel for all attempts together.
    pub(crate) fuel: u64,
    /// Whether the instance of an attempt that succeeds may be dropped after the reply.
    pub(crate) keeps_instance: bool,
    pub(crate) kept_instance: Option<Instance>,
}

/// Longer outputs are checked and redacted after the guest's memory is gone.
const SHORT_OUTPUT_BYTES: usize = 16 << 10;

impl Attempts for Component<'_> {
    async fn attempt(&mut self, number: u32, clock: &Clock, spent: u64) -> Attempt {
        self.call.set_attempt(number, clock.remaining_ms());
        let limits = AttemptLimits {
            // Earlier attempts have used up a part of the budget.
            fuel: self.fuel.saturating_sub(spent),
            fuel_total: self.fuel,
            memory_bytes: self.context.limits.memory_bytes,
        };
        let (ended, mut usage, instance) = run::attempt(
            &self.call,
            self.context,
            limits,
            (self.spender, self.slot.memory()),
            clock.deadline,
        )
        .await;
        let failing = matches!(ended, AttemptOutcome::Trapped(_));
        // The end of what it said is quoted, and cut for that.
        if failing && let Some(redactor) = self.context.secrets.redactor() {
            redactor.text(&mut usage.stderr);
            if let Some(last) = usage.logs.last_mut() {
                redactor.record(last);
            }
        }
        let result = outcome::output_of(
            ended,
            &usage,
            &self.context.limits,
            self.asker,
            &self.context.violations,
            || clock.late(),
        );
        // That of a failed attempt is dropped here: the call gives up its slot before it tries again.
        let is_kept = match &result {
            Ok(Attempted::Done(output)) => {
                output.content.is_empty() && output.structured.len() <= SHORT_OUTPUT_BYTES
            }
            Ok(Attempted::Asks(_)) | Err(_) => false,
        };
        self.kept_instance = instance.filter(|_| is_kept && self.keeps_instance);
        Attempt {
            result,
            claimed: false,
            dispatched: true,
            failing,
            fuel: usage.fuel,
            peak_memory: usage.peak_memory,
            captured: Captured {
                logs: usage.logs,
                stdout: usage.stdout,
                stderr: usage.stderr,
            },
        }
    }
}
