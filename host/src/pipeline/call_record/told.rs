//! The reports of a call's record: events at each step, the record of a person's approval, and the
//! end of the call with its last facts, its log line and its listeners. A call ends with a result
//! or because its future is dropped. The log line has ids, codes and numbers, and no text of a
//! caller, a driver or a server.

use serde_json::json;
use toolward_ledger::Pending;
use toolward_ledger::record::{Answer, ApprovalEvent};
use toolward_state::StoredReply;
use tracing::Level;

use super::CallRecord;
use crate::api::approval::{ApprovalRequest, Approver, Verdict};
use crate::api::event::{CallCost, CallDecision, CallEventKind, PrincipalId};
use crate::api::facts::{CALL_LOG, CallFacts, CallStage, Cancellation};
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, Origin, Output};
use crate::events::{ProgressEvents, uuid};
use crate::named::KeptReply;
use crate::recording::{ApprovalStep, RecordedEnd};

impl CallRecord<'_> {
    /// Sends an event, if it has readers.
    pub(super) fn happens(&mut self, kind: impl FnOnce() -> CallEventKind) {
        self.events
            .tell(&self.facts, &self.parties.scope.native, kind);
    }

    /// Returns a sender of the guest's progress; `None` without readers of events.
    pub(crate) fn progress(&mut self) -> Option<ProgressEvents> {
        self.events
            .progress(&self.facts, &self.parties.scope.native)
    }

    /// Notes that neither policy nor a person denied the call. `asked` is true if the call needed
    /// an approval.
    pub(crate) fn approved(&mut self, asked: bool) {
        self.decided = true;
        let decision = match asked {
            true => CallDecision::Approved,
            false => CallDecision::Allowed,
        };
        self.happens(|| CallEventKind::PermissionDecided { decision });
    }

    /// Sends the events of the call's end.
    fn ends(&mut self, error: Option<&CallError>) {
        if self.yielded {
            return;
        }
        let unfit = [
            ErrorClass::SchemaValidationFailed,
            ErrorClass::InvalidArguments,
        ];
        let invalid = error.filter(|error| unfit.contains(&error.class));
        if let Some(code) = invalid.map(|error| error.code.known())
            && self.facts.stage == CallStage::Validate
        {
            self.happens(|| CallEventKind::ValidationFailed { code });
        }
        // If the approval is pending, a person may still answer.
        let answered = error.is_some_and(|error| error.code != ErrorCode::APPROVAL_PENDING);
        let deciding = matches!(self.facts.stage, CallStage::Authorise | CallStage::Approve);
        if answered && deciding && !self.decided {
            let decision = CallDecision::Denied;
            self.happens(|| CallEventKind::PermissionDecided { decision });
        }
        if error.is_some_and(|error| error.class == ErrorClass::PartialFailure) {
            self.happens(|| CallEventKind::PartialResult);
        }
        let bytes = match error {
            None => self.facts.output_bytes,
            Some(_) => 0,
        };
        self.happens(|| CallEventKind::ResultCreated {
            bytes,
            canceled: None,
        });
        let cost = self.cost();
        self.happens(|| match error {
            None => CallEventKind::Succeeded(cost),
            Some(error) if error.origin == Origin::Host && error.code == ErrorCode::TIMEOUT => {
                CallEventKind::TimedOut(cost)
            }
            Some(error) => CallEventKind::Failed {
                code: error.code.known(),
                class: error.class,
                cost,
            },
        });
    }

    fn cost(&self) -> CallCost {
        let micros = self.started.elapsed().as_micros();
        CallCost {
            micros: u64::try_from(micros).unwrap_or(u64::MAX),
            fuel: self.facts.fuel,
            peak_memory: self.facts.peak_memory,
            violations: self.facts.violations_total,
        }
    }

    /// Lets the approver ask a person. Records the question once the approver reports it, and then
    /// the verdict.
    pub(crate) async fn asks(
        &mut self,
        approver: &dyn Approver,
        request: &ApprovalRequest,
    ) -> Verdict {
        let marks = &request.marks;
        let mut asking = approver.ask(request);
        let at_once = tokio::select! {
            biased;
            () = marks.asked() => None,
            verdict = &mut asking => Some(verdict),
        };
        if let Some(earlier) = marks.expired() {
            let expired = (ApprovalEvent::Expired, None, Some(&earlier));
            self.says(expired).await;
        }
        if marks.is_asked() || at_once.as_ref().is_some_and(Verdict::is_asked_now) {
            self.answer_unused().await;
            self.happens(|| CallEventKind::PermissionRequested);
            self.says((ApprovalEvent::Asked, None, None)).await;
        }
        let verdict = match at_once {
            Some(verdict) => verdict,
            None => asking.await,
        };
        self.answered(&verdict).await;
        verdict
    }

    /// Records the verdict.
    async fn answered(&mut self, verdict: &Verdict) {
        let kept = match verdict {
            Verdict::ApprovedFor(kept) => Some(kept),
            Verdict::Answered { remembered, .. } => remembered.as_ref(),
            _ => None,
        };
        let (event, answer) = match verdict {
            Verdict::Approved
            | Verdict::ApprovedFor(_)
            | Verdict::Answered { approved: true, .. } => {
                (ApprovalEvent::Answered, Some(Answer::Approved))
            }
            Verdict::Denied(_) | Verdict::Answered { .. } => {
                (ApprovalEvent::Answered, Some(Answer::Denied))
            }
            Verdict::Unanswered => (ApprovalEvent::Expired, None),
            Verdict::Withdrawn => (ApprovalEvent::Revoked, None),
            Verdict::Remembered(_) | Verdict::Unavailable | Verdict::Later => {
                self.facts.approval = None;
                if let Some(rows) = &mut self.rows {
                    rows.not_asked(verdict);
                }
                return;
            }
        };
        let approved = answer == Some(Answer::Approved);
        self.facts.approval = Some(approved);
        let kept = kept.filter(|_| approved);
        self.says((event, answer, kept)).await;
        if kept.is_some() {
            self.says((ApprovalEvent::Remembered, None, kept)).await;
        }
    }

    /// Records a person's answer that the call brought but that no request used: the call's effects
    /// have changed, it needs no approval any more, or it ended before it asked. The answer is
    /// recorded before the call's next row.
    pub(crate) async fn answer_unused(&mut self) {
        if let Some(said) = self.unused_answer() {
            // Boxed, so that the futures of other calls do not contain it.
            Box::pin(self.says(said)).await;
        }
    }

    /// Returns the unused answer, but only once.
    fn unused_answer(&mut self) -> Option<ApprovalStep<'static>> {
        if self.answer_recorded
            || self.parties.scope.chain.caller().is_some()
            || self.rows.is_none()
        {
            return None;
        }
        let answer = match self.parties.scope.approver.as_ref()?.unused_answer()? {
            Verdict::Answered { approved: true, .. } => Answer::Approved,
            Verdict::Answered { .. } => Answer::Denied,
            _ => return None,
        };
        self.answer_recorded = true;
        Some((ApprovalEvent::Answered, Some(answer), None))
    }

    /// Adds a row to the queue, before all later rows of the call. Waits only while the queue is
    /// full.
    async fn says(&mut self, said: ApprovalStep<'_>) {
        if let Some(row) = self.approval_row(said) {
            // The ledger counts lost rows.
            let _ = row.await;
        }
    }

    fn approval_row(&mut self, said: ApprovalStep<'_>) -> Option<Pending> {
        let rows = self.rows.as_mut()?;
        Some(rows.approval(&self.parties, said))
    }

    /// Ends the call with its result; returns the facts, and the driver's logs and captured output.
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

    /// Lets other calls with the same id continue. The result is kept for them, unless the call
    /// ended with questions or without a result.
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
                bundles: [tool.withdrawal.clone(), route.withdrawal.clone()],
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

    /// Writes the end of the call to its facts. `error` is why it has no output, `canceled` why it
    /// was cancelled.
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

    /// Reports the call's end to listeners and log.
    fn tell(&self) {
        self.each_listener(|listener| listener.finished(&self.facts));
        // While no one reads the log line, a call costs only this check.
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
            driver = route.map(|route| &*route.id),
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

    /// Ends a call whose future, and with it the guest, was dropped. Reports the end to listeners,
    /// log, events, ledger and observer.
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
            // The row is queued if the queue has room.
            drop(self.approval_row(said));
        }
        // Nothing waits here. If the queue is full and the call's start is recorded, a task waits
        // to write the call's end. The start was recorded through the same queue, so there is at
        // most one such task for each recorded start.
        let started = self.rows.as_ref().is_some_and(|rows| rows.started);
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
