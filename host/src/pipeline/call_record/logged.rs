//! The log line of a call that has ended. It has ids, codes and numbers, and nothing that a caller, a driver or a
//! server wrote.

use serde_json::json;
use tracing::Level;

use super::CallRecord;
use crate::api::cancellation::Cancellation;
use crate::api::event::PrincipalId;
use crate::api::listener::CALL_LOG;
use crate::api::result::CallError;
use crate::events::uuid;

impl CallRecord<'_> {
    /// Logs how the call ends: `error` is why it has no output, `canceled` why it was cancelled.
    pub(super) fn log(&self, error: Option<&CallError>, canceled: Option<Cancellation>) {
        // All that a call costs while nobody reads the line.
        if !tracing::enabled!(target: CALL_LOG, Level::INFO) {
            return;
        }
        let caller = self.scope.chain.caller();
        let class = error.map(|error| json!(error.class));
        let cost = self.cost();
        tracing::info!(
            target: CALL_LOG,
            invocation = uuid(&self.metadata.invocation),
            parent = caller.map(|caller| uuid(&caller.invocation)),
            principal = %PrincipalId::of(&self.scope.principal),
            tool = self.tool.as_ref().map(|tool| &*tool.full_id),
            driver = self.driver.as_ref().map(|driver| driver.driver.id.as_str()),
            code = error.map_or("ok", |error| error.code.known()),
            class = class.as_ref().and_then(|class| class.as_str()),
            cancel_reason = canceled.map(Cancellation::as_str),
            stage = self.stage.as_str(),
            us = cost.micros,
            attempts = self.metadata.attempts,
            fuel = cost.fuel,
            memory = cost.peak_memory,
            violations = cost.violations,
            mutating = self.mutating,
            "a call has ended"
        );
    }
}
