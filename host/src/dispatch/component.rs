//! Attempts by a component: each in a sandbox of its own.

use crate::asking::Asker;
use crate::result::{CallError, Captured, Metadata};
use crate::sandbox::AttemptLimits;
use crate::sandbox::context::Context;
use crate::sandbox::run::{self, Prepared};
use crate::sandbox::turns::Spender;
use crate::sandbox::v0_1::types::Invocation;

use super::{Attempted, Attempts, Clock, ending};

/// A component and what its attempts share.
pub(crate) struct Component<'a> {
    pub(crate) prepared: &'a Prepared,
    pub(crate) context: &'a Context,
    pub(crate) invocation: Invocation,
    pub(crate) asker: Asker,
    /// Who is to have turns; nobody where its caller has them.
    pub(crate) spender: Option<Spender<'a>>,
    /// Fuel for all attempts together.
    pub(crate) fuel: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) captured: &'a mut Captured,
}

impl Attempts for Component<'_> {
    async fn attempt(
        &mut self,
        number: u32,
        clock: &Clock,
        metadata: &mut Metadata,
    ) -> Result<Attempted, CallError> {
        self.invocation.attempt = number;
        self.invocation.remaining_ms = clock.remaining_ms();
        let limits = AttemptLimits {
            // What earlier attempts used is gone.
            fuel: self.fuel.saturating_sub(metadata.fuel),
            fuel_total: self.fuel,
            memory_bytes: self.memory_bytes,
        };
        let (ending, usage) = run::attempt(
            self.prepared,
            self.context,
            limits,
            &self.invocation,
            self.spender,
            clock.deadline,
        )
        .await;
        metadata.fuel = metadata.fuel.saturating_add(usage.fuel);
        metadata.peak_memory = metadata.peak_memory.max(usage.peak_memory);
        let result = ending::output_of(
            ending,
            &usage,
            &self.context.limits,
            self.asker,
            &self.context.violations,
            || clock.late(),
        );
        *self.captured = Captured {
            logs: usage.logs,
            stdout: usage.stdout,
            stderr: usage.stderr,
        };
        result
    }
}
