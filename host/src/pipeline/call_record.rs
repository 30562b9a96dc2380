//! The record of one call while it goes through the stages. Every call ends here, with a result or
//! because its future is dropped. The record writes the call's facts, and passes them to listeners,
//! readers of events, the log and the ledger.
//!
//! The stages before dispatch return their results, and the host writes them down after each stage.
//! Dispatch writes the result of each attempt itself. So the record has all attempts even if the
//! call's future is dropped before dispatch returns.

mod told;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use toolward_ledger::record::Invocation;
use toolward_sandbox::invocation::CallEnd;
use toolward_sandbox::violations::RecordedViolations;
use uuid::Uuid;

use crate::api::event::CallEventKind;
use crate::api::facts::{CallFacts, CallListener, CallStage, Tried};
use crate::api::request::Request;
use crate::api::result::{CallError, Captured, ErrorCode, Origin};
use crate::catalogue::{DriverFacts, ToolFacts};
use crate::elicitation::Spent;
use crate::events::CallEvents;
use crate::executor::{AttemptReport, ResultSource};
use crate::named::{ReplySource, RunningCall};
use crate::pipeline::validate::RoutedCall;
use crate::recording::{CallRows, Parties, micros, recorded_id};
use crate::services::Services;

/// The record of a call that has not ended. If it is dropped before
/// [`CallRecord::end`], the call was cancelled.
pub(crate) struct CallRecord<'a> {
    pub(crate) facts: CallFacts,
    pub(crate) captured: Captured,
    parties: Parties,
    listeners: &'a [Arc<dyn CallListener>],
    events: CallEvents<'a>,
    /// Whether an unused answer that the call brought has been recorded.
    answer_recorded: bool,
    /// Whether policy or a person has decided that the call may run.
    decided: bool,
    /// Whether an event has reported that the call waits for a slot.
    queued: bool,
    /// Set if the call ends with questions.
    yielded: bool,
    /// Set if calls are recorded.
    rows: Option<Box<CallRows<'a>>>,
    /// Set if this is the first call with its id.
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
        let caller = request.scope.chain.caller();
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut record = Self {
            facts: CallFacts {
                invocation: id.map_or_else(String::clone, text),
                tool: request.tool.as_str().into(),
                principal: request.scope.principal.clone(),
                parent: caller.map(|caller| caller.invocation.clone()),
                called_by: request.scope.chain.names(),
                started: micros(since_1970).get(),
                ..CallFacts::default()
            },
            captured: Captured::default(),
            parties: Parties {
                scope: request.scope.clone(),
                tool: None,
                route: None,
            },
            listeners: &services.listeners,
            events: CallEvents::new(&services.events),
            answer_recorded: false,
            decided: false,
            queued: false,
            yielded: false,
            rows: services.recording.as_ref().map(|recording| {
                let id = id.map_or_else(
                    |text| recorded_id(text),
                    |id| Invocation::from_bytes(id.into_bytes()),
                );
                let tape = services.tape.as_ref();
                let ledger = tape.map(|tape| tape.ledger);
                Box::new(CallRows::new(recording, id, ledger))
            }),
            named: None,
            started: Instant::now(),
            ended: false,
        };
        record.each_listener(|listener| listener.began());
        record.happens(|| CallEventKind::Planned);
        record
    }

    /// Notes that the call enters this stage.
    pub(crate) fn enter(&mut self, stage: CallStage) {
        self.facts.stage = stage;
        // The event is sent once, although the call may enter this stage again with another driver.
        if stage == CallStage::Admit && !std::mem::replace(&mut self.queued, true) {
            self.happens(|| CallEventKind::Queued);
        }
    }

    /// Notes that the tool was found.
    pub(crate) fn resolved(&mut self, tool: &Arc<ToolFacts>) {
        let facts = &mut self.facts;
        facts.tool.clone_from(&tool.full_id);
        facts.tool_id = Some(tool.major_id.clone());
        facts.tool_bundle = Some(tool.bundle.clone());
        facts.publisher = Some(tool.publisher.clone());
        self.parties.tool = Some(tool.clone());
        self.events.resolved();
        self.happens(|| CallEventKind::Selected);
    }

    /// Notes that the call is valid and has a driver.
    pub(crate) fn validated(&mut self, call: &mut RoutedCall) {
        if let Some(rows) = &mut self.rows {
            rows.kept = call.extensions.take();
        }
        self.picked(&call.route);
        self.happens(|| CallEventKind::ArgumentsReady);
    }

    /// Notes that this is the first call with the id that its caller gave it.
    pub(crate) fn named(&mut self, mut running: RunningCall, route: &DriverFacts) {
        running.changes = route.changes;
        self.named = Some(running);
    }

    /// Fails if the call may change something, and the ledger shows that a call with the same id
    /// has run.
    pub(crate) async fn may_run(&self) -> Result<(), CallError> {
        match (&self.rows, &self.named) {
            (Some(rows), Some(named)) if named.changes => rows.may_run(&named.name).await,
            _ => Ok(()),
        }
    }

    /// Notes that the call gets the reply of an earlier call.
    pub(crate) fn repeats(&mut self, source: ReplySource) {
        let facts = &mut self.facts;
        facts.repeats = Some(source.invocation);
        facts.driver = source.driver;
        facts.driver_publisher = source.driver_publisher;
        facts.bundle = source.bundle;
        facts.origin = source.origin;
    }

    /// Whether the start of the call must be recorded.
    pub(crate) fn must_start(&self) -> bool {
        let has_name = self.named.is_some();
        (self.rows.as_ref()).is_some_and(|rows| rows.must_start(&self.parties, has_name))
    }

    /// Notes that the call is about to run. If it changes something, waits until its start is
    /// recorded.
    pub(crate) async fn start(&mut self) -> Result<(), CallError> {
        let Some(rows) = &mut self.rows else {
            return Ok(());
        };
        let name = self.named.as_ref().map(|named| &*named.name);
        rows.start(&self.parties, name).await
    }

    /// Notes that an attempt has ended. Returns its end, and the origin of its output if a person
    /// gave it.
    pub(crate) fn attempted(&mut self, report: AttemptReport) -> (CallEnd, Option<Origin>) {
        let facts = &mut self.facts;
        facts.fuel = facts.fuel.saturating_add(report.fuel);
        facts.peak_memory = facts.peak_memory.max(report.peak_memory);
        self.captured = report.captured;
        if let Some(rows) = &mut self.rows {
            let error = match &report.end {
                CallEnd::Failed(error) => Some(&error.code),
                CallEnd::Done(_) | CallEnd::Asks(_) => None,
            };
            rows.attempted(&self.parties, error);
        }
        let origin = match report.source {
            ResultSource::Record(replayed) => {
                facts.replayed = Some(*replayed);
                return (report.end, None);
            }
            ResultSource::Person => Some(Origin::Person),
            ResultSource::Driver => None,
        };
        if let CallEnd::Done(output) = &report.end {
            facts.output_bytes = output.structured.len() as u64;
        }
        (report.end, origin)
    }

    /// Notes that the result of the last attempt was accepted, and takes this much memory.
    pub(crate) fn accepted(&mut self, memory: u64, origin: Option<Origin>) {
        let facts = &mut self.facts;
        facts.peak_memory = facts.peak_memory.max(memory);
        facts.origin = origin.or(facts.origin);
    }

    /// Notes that the result of the last attempt was not accepted.
    pub(crate) fn attempt_failed(&mut self, error: &CallError) {
        if let Some(rows) = &mut self.rows {
            rows.attempt_failed(&error.code);
        }
    }

    /// Notes that secrets were removed from this many texts of the result.
    pub(crate) fn redacted(&mut self, texts: u64) {
        if texts > 0 {
            self.happens(|| CallEventKind::Redacted { texts });
        }
    }

    /// Notes that the call ends with this many questions.
    pub(crate) fn yields(&mut self, questions: usize) {
        self.yielded = true;
        let questions = questions as u64;
        self.happens(|| CallEventKind::Yielded { questions });
    }

    /// Notes the violations of the drivers.
    pub(crate) fn violated(&mut self, found: RecordedViolations) {
        let facts = &mut self.facts;
        facts.violations = found.first;
        facts.violations_total = found.total;
        facts.violations_by_kind = found.own;
    }

    /// Notes that the driver was picked, as the first or after another driver.
    pub(crate) fn picked(&mut self, route: &Arc<DriverFacts>) {
        if let Some(named) = &mut self.named {
            named.changes |= route.changes;
        }
        let facts = &mut self.facts;
        // Most calls try one driver.
        facts.tried.reserve_exact(1);
        facts.tried.push(Tried {
            driver: route.id.clone(),
            driver_publisher: route.publisher.clone(),
            bundle: route.bundle.clone(),
            attempts: 0,
            error: None,
        });
        facts.driver = Some(route.id.clone());
        facts.driver_publisher = Some(route.publisher.clone());
        facts.bundle = Some(route.bundle.clone());
        facts.mutating |= route.writes;
        self.parties.route = Some(route.clone());
    }

    /// Notes that the current driver is started once more. `runs` is false if a recorded result is
    /// returned instead.
    pub(crate) fn starts(&mut self, runs: bool) {
        if !runs {
            return;
        }
        let attempts = &mut self.facts.attempts;
        *attempts = attempts.saturating_add(1);
        if let Some(last) = self.facts.tried.last_mut() {
            last.attempts = last.attempts.saturating_add(1);
        }
        if let Some(rows) = &mut self.rows {
            rows.starts();
        }
        if let Some(named) = &mut self.named {
            named.dispatched = true;
        }
        if let Some(route) = &self.parties.route {
            self.each_listener(|listener| listener.driver_started(&route.declaration.kind));
        }
        let (driver, attempt) = (self.parties.route.clone(), self.facts.attempts);
        self.happens(|| CallEventKind::Started {
            driver: driver.map_or_else(String::new, |route| route.id.to_string()),
            attempt,
        });
    }

    /// Notes the consumption of a resumed call before its questions. The attempt that asked
    /// continues: it is left out here, and counted when it is started again.
    pub(crate) fn resumes(&mut self, spent: Spent) {
        let attempts = spent.attempts.saturating_sub(1);
        self.facts.fuel = spent.fuel;
        self.facts.attempts = attempts;
        if let Some(last) = self.facts.tried.last_mut() {
            last.attempts = attempts;
        }
    }

    /// How often drivers were started before the current driver was picked.
    pub(crate) fn earlier_attempts(&self) -> u32 {
        let last = self.facts.tried.last();
        let own = last.map_or(0, |last| last.attempts);
        self.facts.attempts.saturating_sub(own)
    }

    /// Notes that the current driver did not serve the call.
    pub(crate) fn failed(&mut self, error: &ErrorCode) {
        if let Some(last) = self.facts.tried.last_mut() {
            last.error = Some(error.clone());
        }
    }

    fn each_listener(&self, tell: impl Fn(&dyn CallListener)) {
        for listener in self.listeners {
            // A panic in one listener must not fail the call or hide it from other listeners.
            if catch_unwind(AssertUnwindSafe(|| tell(&**listener))).is_err() {
                tracing::error!("a listener for calls panicked");
            }
        }
    }
}

/// The text of an id, in lower case.
fn text(id: Uuid) -> String {
    let mut text = Uuid::encode_buffer();
    id.hyphenated().encode_lower(&mut text).to_owned()
}
