//! The record of one call while it goes through the stages, and the one place in which
//! every call ends: with a result, or by its future being dropped.
//!
//! The stages write into the record as they go, since a future that is dropped returns
//! nothing.

mod approval;
mod logged;
mod told;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolward_ledger::record::{Hex, Invocation};
use toolward_state::StoredReply;
use uuid::Uuid;

use crate::api::cancellation::Cancellation;
use crate::api::event::CallEventKind;
use crate::api::listener::{CallListener, CallStage, FinishedCall};
use crate::api::observer::Canceled;
use crate::api::request::Request;
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, Metadata, Output, Tried};
use crate::api::violations::ViolationKind;
use crate::call_id;
use crate::catalogue::{LoadedDriver, Route, ToolEntry};
use crate::events::CallEvents;
use crate::named::{KeptReply, ReplySource, RunningCall};
use crate::pipeline::validate::RoutedCall;
use crate::recording::{End, RecordedEnd, Rows, recorded_id};
use crate::sandbox::call_scope::CallScope;
use crate::services::Services;
use crate::tape::Taken;

/// The record of a call that has not ended. If it is dropped before
/// [`CallRecord::end`], the call was cancelled.
pub(crate) struct CallRecord<'a> {
    pub(crate) metadata: Metadata,
    pub(crate) captured: Captured,
    stage: CallStage,
    tool: Option<Arc<ToolEntry>>,
    driver: Option<Arc<LoadedDriver>>,
    /// Whether a driver that was picked changes something itself.
    mutating: bool,
    scope: Arc<CallScope>,
    listeners: &'a [Arc<dyn CallListener>],
    events: CallEvents<'a>,
    /// How often drivers tried something of each kind that they were not granted.
    violations: BTreeMap<ViolationKind, u64>,
    /// Whether a person has to approve it.
    needs_approval: bool,
    /// Whether a person who was asked approved it.
    answer: Option<bool>,
    /// Whether an answer that the call brought, and that no request used, is recorded.
    answer_recorded: bool,
    /// Whether it was decided that the call may run.
    decided: bool,
    /// Whether it has been told that the call waits for a slot.
    queued: bool,
    /// Set where the call ends with questions.
    yielded: bool,
    /// Bytes that the last driver returned.
    returned: usize,
    /// Set where calls are recorded.
    rows: Option<Box<Rows<'a>>>,
    /// Set where it is the first call of an id.
    named: Option<RunningCall>,
    started: Instant,
    ended: bool,
}

impl<'a> CallRecord<'a> {
    pub(crate) fn new(request: &Request, services: &'a Services) -> Self {
        let id = match &request.resume {
            Some(resume) => Err(&resume.asked.invocation),
            None => Ok(Uuid::now_v7()),
        };
        let mut record = Self {
            metadata: Metadata {
                invocation: id.map_or_else(String::clone, call_id::text),
                tool: request.tool.as_str().into(),
                ..Metadata::default()
            },
            captured: Captured::default(),
            stage: CallStage::Resolve,
            tool: None,
            driver: None,
            mutating: false,
            scope: request.scope.clone(),
            listeners: &services.listeners,
            events: CallEvents::new(&services.events),
            violations: BTreeMap::new(),
            needs_approval: false,
            answer: None,
            answer_recorded: false,
            decided: false,
            queued: false,
            yielded: false,
            returned: 0,
            rows: services.recording.as_ref().map(|recording| {
                let id = id.map_or_else(
                    |text| recorded_id(text),
                    |id| Invocation::from_bytes(id.into_bytes()),
                );
                Box::new(Rows::new(recording, id, request.rerun_of))
            }),
            named: None,
            started: Instant::now(),
            ended: false,
        };
        record.each_listener(|listener| listener.began());
        record.happens(|| CallEventKind::Planned);
        record
    }

    /// The call enters this stage.
    pub(crate) fn enter(&mut self, stage: CallStage) {
        self.stage = stage;
        // Another driver may be prepared later.
        if stage == CallStage::Admit && !std::mem::replace(&mut self.queued, true) {
            self.happens(|| CallEventKind::Queued);
        }
    }

    /// The tool was found.
    pub(crate) fn resolved(&mut self, tool: &Arc<ToolEntry>) {
        self.metadata.tool.clone_from(&tool.full_id);
        self.metadata.publisher = Some(tool.publisher.clone());
        self.tool = Some(tool.clone());
        if let Some(rows) = &mut self.rows {
            rows.resolved(tool);
        }
        self.events.resolved();
        self.happens(|| CallEventKind::Selected);
    }

    /// The call is valid, and has a driver.
    pub(crate) fn validated(&mut self, call: &mut RoutedCall) {
        if let Some(rows) = &mut self.rows {
            rows.validated(call.kept.take());
        }
        self.picked(&call.route);
        self.happens(|| CallEventKind::ArgumentsReady);
    }

    /// It is the first call of the id that its caller gave it.
    pub(crate) fn named(&mut self, mut running: RunningCall, route: &Route) {
        running.changes = route.changes;
        self.named = Some(running);
    }

    /// Whether the id of a call that may change something ran in another process, as far as that is known.
    pub(crate) async fn may_run(&self) -> Result<(), CallError> {
        match (&self.rows, &self.named) {
            (Some(rows), Some(named)) if named.changes => rows.may_run(named.name()).await,
            _ => Ok(()),
        }
    }

    /// It gets the reply of an earlier call.
    pub(crate) fn repeats(&mut self, source: ReplySource) {
        let metadata = &mut self.metadata;
        metadata.repeats = Some(source.invocation);
        metadata.driver = source.driver;
        metadata.driver_publisher = source.driver_publisher;
        metadata.bundle = source.bundle;
        metadata.origin = source.origin;
    }

    /// Whether it has to be recorded that the call is about to run.
    pub(crate) fn must_start(&self) -> bool {
        let has_name = self.named.is_some();
        (self.rows.as_ref()).is_some_and(|rows| rows.must_start(has_name))
    }

    /// The call is about to run: where it changes something, waits until that is recorded.
    pub(crate) async fn start(&mut self) -> Result<(), CallError> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let name = self.named.as_ref().map(|named| &**named.name());
        rows.start(&self.scope, name).await
    }

    /// An attempt has ended.
    pub(crate) fn attempted(&mut self, error: Option<&CallError>) {
        if let Some(rows) = &mut self.rows {
            rows.attempted(error.map(|error| &error.code));
        }
    }

    /// What the last attempt returned was not accepted.
    pub(crate) fn attempt_failed(&mut self, error: &CallError) {
        if let Some(rows) = &mut self.rows {
            rows.attempt_failed(&error.code);
        }
    }

    /// The driver returned so many bytes.
    pub(crate) fn returned(&mut self, bytes: usize) {
        if let Some(rows) = &mut self.rows {
            rows.returned(bytes);
        }
        self.returned = bytes;
    }

    /// Bytes of secrets were taken out of so many texts of the result.
    pub(crate) fn redacted(&mut self, texts: u64) {
        if texts > 0 {
            self.happens(|| CallEventKind::Redacted { texts });
        }
    }

    /// The call ends with so many questions.
    pub(crate) fn yields(&mut self, questions: usize) {
        self.yielded = true;
        let questions = questions as u64;
        self.happens(|| CallEventKind::Yielded { questions });
    }

    /// How often the drivers tried something of each kind that they were not granted.
    pub(crate) fn violated(&mut self, violations: BTreeMap<ViolationKind, u64>) {
        if !self.listeners.is_empty() {
            self.violations.clone_from(&violations);
        }
        if let Some(rows) = &mut self.rows {
            rows.violated(violations);
        }
    }

    /// The driver was picked, first or after another one.
    pub(crate) fn picked(&mut self, route: &Arc<Route>) {
        if let Some(rows) = &mut self.rows {
            rows.picked(route);
        }
        if let Some(named) = &mut self.named {
            named.changes |= route.changes;
        }
        let driver = &route.driver;
        // Most calls try one driver.
        self.metadata.tried.reserve_exact(1);
        self.metadata.tried.push(Tried {
            driver: driver.id.clone(),
            driver_publisher: driver.publisher.clone(),
            bundle: driver.bundle.clone(),
            attempts: 0,
            error: None,
        });
        self.metadata.driver = Some(driver.id.clone());
        self.metadata.driver_publisher = Some(driver.publisher.clone());
        self.metadata.bundle = Some(driver.bundle.clone());
        self.driver = Some(driver.clone());
        self.mutating |= route.writes;
    }

    /// The call is answered from a tape.
    pub(crate) fn replayed(&mut self, taken: &Taken, ledger: Hex<16>) {
        self.metadata.replayed = Some(taken.replayed.clone());
        if let Some(rows) = &mut self.rows {
            rows.replayed(ledger, taken.of);
        }
    }

    /// The driver that was picked last is started once more.
    pub(crate) fn starts(&mut self) {
        let attempts = &mut self.metadata.attempts;
        *attempts = attempts.saturating_add(1);
        if let Some(last) = self.metadata.tried.last_mut() {
            last.attempts = last.attempts.saturating_add(1);
        }
        if let Some(rows) = &mut self.rows {
            rows.starts();
        }
        if let Some(named) = &mut self.named {
            named.dispatched = true;
        }
        if let Some(driver) = &self.driver {
            self.each_listener(|listener| listener.driver_started(&driver.driver.kind));
        }
        self.tells_start();
    }

    /// A call that resumes has started its driver so often before.
    pub(crate) fn resumes(&mut self, attempts: u32) {
        self.metadata.attempts = attempts;
        if let Some(last) = self.metadata.tried.last_mut() {
            last.attempts = attempts;
        }
    }

    /// How often drivers were started before the one that was picked last.
    pub(crate) fn earlier_attempts(&self) -> u32 {
        let last = self.metadata.tried.last();
        let own = last.map_or(0, |last| last.attempts);
        self.metadata.attempts.saturating_sub(own)
    }

    /// The driver that was picked last did not serve the call.
    pub(crate) fn failed(&mut self, error: &ErrorCode) {
        if let Some(last) = self.metadata.tried.last_mut() {
            last.error = Some(error.clone());
        }
    }

    /// Ends the call with its result; returns the metadata and what the driver logged
    /// and printed.
    pub(crate) async fn end(mut self, result: &Result<Output, CallError>) -> (Metadata, Captured) {
        self.answer_unused().await;
        self.ended = true;
        self.measure();
        if let Err(error) = result {
            self.failed(&error.code);
        }
        self.tell(result.as_ref().err(), None);
        self.ends(result.as_ref());
        if let Some(end) = self.record(result.as_ref(), None) {
            let recorded = end.written.await;
            self.metadata.recorded = end.waits.then_some(recorded.is_ok());
            if end.waits && end.keeps_output && recorded.is_ok() {
                self.happens(|| CallEventKind::Persisted);
            }
        }
        self.end_named(Some(result));
        let metadata = std::mem::take(&mut self.metadata);
        (metadata, std::mem::take(&mut self.captured))
    }

    /// Lets other calls of the id go on. The result is kept for them, unless it has questions, or is none.
    fn end_named(&mut self, result: Option<&Result<Output, CallError>>) {
        let Some(named) = self.named.take() else {
            return;
        };
        let asks = |error: &CallError| error.code == ErrorCode::INPUT_REQUIRED;
        let result = result.filter(|result| !result.as_ref().is_err_and(asks));
        let parts = (self.tool.as_ref()).zip(self.driver.as_ref());
        let reply = result.zip(parts).and_then(|(result, (tool, driver))| {
            Some(StoredReply {
                bytes: KeptReply::write(result, &self.metadata)?,
                bundles: [tool.withdrawal.clone(), driver.withdrawal.clone()],
            })
        });
        let recorded = self.rows.as_ref().is_some_and(|rows| rows.has_run());
        named.end(recorded, reply);
    }

    /// Records the end of the call.
    fn record(
        &mut self,
        result: Result<&Output, &CallError>,
        canceled: Option<Cancellation>,
    ) -> Option<RecordedEnd> {
        let rows = self.rows.as_mut()?;
        rows.end(&End {
            scope: &self.scope,
            metadata: &self.metadata,
            stage: self.stage,
            took: self.started.elapsed(),
            result,
            canceled,
        })
    }

    fn measure(&mut self) {
        let elapsed = self.started.elapsed();
        self.metadata.milliseconds = (elapsed.as_secs_f64() * 1e6).round() / 1e3;
    }

    /// Tells log and listeners how the call ends.
    fn tell(&self, error: Option<&CallError>, canceled: Option<Cancellation>) {
        self.log(error, canceled);
        if self.listeners.is_empty() {
            return;
        }
        let finished = self.finished(error, canceled);
        self.each_listener(|listener| listener.finished(&finished));
    }

    fn each_listener(&self, tell: impl Fn(&dyn CallListener)) {
        for listener in self.listeners {
            // A panic in one listener must not fail the call or keep it from the
            // others.
            if catch_unwind(AssertUnwindSafe(|| tell(&**listener))).is_err() {
                tracing::error!("a listener for calls panicked");
            }
        }
    }

    fn finished(
        &self,
        error: Option<&CallError>,
        cancellation: Option<Cancellation>,
    ) -> FinishedCall {
        let (tool, driver) = (self.tool.as_deref(), self.driver.as_deref());
        let caller = self.scope.chain.caller();
        let duration = self.started.elapsed();
        let now = SystemTime::now();
        FinishedCall {
            invocation: self.metadata.invocation.clone(),
            parent: caller.map(|caller| caller.invocation.clone()),
            depth: caller.map_or(0, |caller| caller.names.len()),
            principal: self.scope.principal.clone(),
            tool: tool.map(|tool| tool.major_id.clone()),
            bundle: tool.map(|tool| tool.bundle.clone()),
            driver: driver.map(|driver| driver.driver.id.to_string()),
            driver_bundle: driver.map(|driver| driver.bundle.to_string()),
            error: error.map(|error| error.code.clone()),
            class: error.map(|error| error.class),
            cancellation,
            limit: error.and_then(|error| Some(error.limit?.limit)),
            mutating: self.mutating,
            approval: self.answer,
            violations_by_kind: self.violations.clone(),
            stage: self.stage,
            attempts: self.metadata.attempts,
            tried: self.metadata.tried.clone(),
            fuel: self.metadata.fuel,
            peak_memory: self.metadata.peak_memory,
            violations: self.metadata.violations_total,
            started: now.checked_sub(duration).unwrap_or(now),
            duration,
        }
    }

    /// The future was dropped, and with it the guest. Tells listeners, log and observer.
    fn cancel(&mut self) {
        self.measure();
        self.failed(&ErrorCode::CANCELED);
        let reason = self.scope.cancelled_by();
        let error = CallError::new(
            ErrorCode::CANCELED,
            ErrorClass::Canceled,
            format!("the call was cancelled ({})", reason.as_str()),
        );
        self.tell(Some(&error), Some(reason));
        self.happens(|| CallEventKind::ResultCreated {
            bytes: 0,
            canceled: Some(reason),
        });
        let cost = self.cost();
        self.happens(|| CallEventKind::Canceled { reason, cost });
        if let Some(said) = self.unused_answer() {
            // Queued, where there is room.
            drop(self.approval_row(said));
        }
        // Nobody waits here. Where the queue is full, the end of a call whose start is recorded goes on to wait: there
        // are no more of them than started rows that got through the same queue.
        let started = self.rows.as_ref().is_some_and(|rows| rows.is_started());
        if let Some(end) = self.record(Err(&error), Some(reason))
            && started
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(end.written);
        }
        self.end_named(None);
        let metadata = std::mem::take(&mut self.metadata);
        // The observer of the first call also observes those that tools make.
        let chain = &self.scope.chain;
        let above = || chain.caller()?.budget.observer.as_ref();
        if let Some(observer) = self.scope.observer.as_ref().or_else(above) {
            observer.canceled(&Canceled {
                error,
                reason,
                metadata,
                called_by: chain.names(),
            });
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
