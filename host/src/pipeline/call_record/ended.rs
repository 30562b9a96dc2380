//! The end of a call, with a result or by its future being dropped: its last facts, its log line, and all who hear of
//! it. The line has ids, codes and numbers, and nothing that a caller, a driver or a server wrote.

use serde_json::json;
use toolward_state::StoredReply;
use tracing::Level;

use super::CallRecord;
use crate::api::cancellation::Cancellation;
use crate::api::event::{CallEventKind, PrincipalId};
use crate::api::facts::{CALL_LOG, CallFacts};
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, Output};
use crate::events::uuid;
use crate::named::KeptReply;
use crate::recording::RecordedEnd;

impl CallRecord<'_> {
    /// Ends the call with its result; returns the facts and what the driver logged
    /// and printed.
    pub(crate) async fn end(mut self, result: &Result<Output, CallError>) -> (CallFacts, Captured) {
        self.answer_unused().await;
        self.ended = true;
        self.closes(result.as_ref().err(), None);
        self.tell();
        self.ends(result.as_ref().err());
        if let Some(end) = self.record(result.as_ref()) {
            let recorded = end.written.await;
            self.facts.recorded = end.waits.then_some(recorded.is_ok());
            if end.waits && end.keeps_output && recorded.is_ok() {
                self.happens(|| CallEventKind::Persisted);
            }
        }
        self.end_named(Some(result));
        let facts = std::mem::take(&mut self.facts);
        (facts, std::mem::take(&mut self.captured))
    }

    /// Lets other calls of the id go on. The result is kept for them, unless it has questions, or is none.
    fn end_named(&mut self, result: Option<&Result<Output, CallError>>) {
        let Some(named) = self.named.take() else {
            return;
        };
        let asks = |error: &CallError| error.code == ErrorCode::INPUT_REQUIRED;
        let result = result.filter(|result| !result.as_ref().is_err_and(asks));
        let parties = (self.parties.tool.as_ref()).zip(self.parties.route.as_ref());
        let reply = result.zip(parties).and_then(|(result, (tool, route))| {
            Some(StoredReply {
                bytes: KeptReply::write(result, &self.facts)?,
                bundles: [tool.withdrawal.clone(), route.driver.withdrawal.clone()],
            })
        });
        let recorded = self.rows.as_ref().is_some_and(|rows| rows.has_run());
        named.end(recorded, reply);
    }

    /// Records the end of the call.
    fn record(&mut self, result: Result<&Output, &CallError>) -> Option<RecordedEnd> {
        let rows = self.rows.as_mut()?;
        rows.end(&self.parties, &self.facts, self.started.elapsed(), result)
    }

    /// Writes down how the call ends: `error` is why it has no output, `canceled` why it was cancelled.
    fn closes(&mut self, error: Option<&CallError>, canceled: Option<Cancellation>) {
        let elapsed = self.started.elapsed();
        let facts = &mut self.facts;
        facts.milliseconds = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
        facts.cancellation = canceled;
        if let Some(error) = error {
            facts.error = Some(error.code.clone());
            facts.class = Some(error.class);
            facts.limit = error.limit.map(|hit| hit.limit);
            self.failed(&error.code);
        }
    }

    /// Tells log and listeners how the call ends.
    fn tell(&self) {
        self.log();
        self.each_listener(|listener| listener.finished(&self.facts));
    }

    /// Logs how the call ends.
    pub(super) fn log(&self) {
        // All that a call costs while no one reads the line.
        if !tracing::enabled!(target: CALL_LOG, Level::INFO) {
            return;
        }
        let (facts, cost) = (&self.facts, self.cost());
        let class = facts.class.map(|class| json!(class));
        let tool = self.parties.tool.as_ref();
        let route = self.parties.route.as_ref();
        tracing::info!(
            target: CALL_LOG,
            invocation = uuid(&facts.invocation),
            parent = facts.parent.as_deref().map(uuid),
            principal = %PrincipalId::of(&facts.principal),
            tool = tool.map(|tool| &*tool.full_id),
            driver = route.map(|route| route.driver.driver.id.as_str()),
            code = facts.error.as_ref().map_or("ok", |code| code.known()),
            class = class.as_ref().and_then(|class| class.as_str()),
            cancel_reason = facts.cancellation.map(Cancellation::as_str),
            stage = facts.stage.as_str(),
            us = cost.micros,
            attempts = facts.attempts,
            fuel = cost.fuel,
            memory = cost.peak_memory,
            violations = cost.violations,
            mutating = facts.mutating,
            "a call has ended"
        );
    }

    /// The future was dropped, and with it the guest. Tells listeners, log and observer.
    fn cancel(&mut self) {
        let reason = self.parties.scope.cancelled_by();
        let error = CallError::new(
            ErrorCode::CANCELED,
            ErrorClass::Canceled,
            format!("the call was cancelled ({})", reason.as_str()),
        );
        self.closes(Some(&error), Some(reason));
        self.tell();
        self.happens(|| CallEventKind::ResultCreated {
            bytes: 0,
            canceled: Some(reason),
        });
        let cost = self.cost();
        self.happens(|| CallEventKind::Canceled { reason, cost });
        if let Some(said) = self.unused_answer() {
            // Queued, if there is room.
            drop(self.approval_row(said));
        }
        // No one waits here. If the queue is full, the end of a call whose start is recorded waits on: there
        // are no more of them than started rows that got through the same queue.
        let started = self.rows.as_ref().is_some_and(|rows| rows.is_started());
        if let Some(end) = self.record(Err(&error))
            && started
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(end.written);
        }
        self.end_named(None);
        // The observer of the first call also observes nested calls.
        let scope = &self.parties.scope;
        let above = || scope.chain.caller()?.budget.observer.as_ref();
        if let Some(observer) = scope.observer.as_ref().or_else(above) {
            observer.canceled(&self.facts);
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.cancel();
        }
    }
}
