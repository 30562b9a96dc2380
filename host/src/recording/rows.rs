//! The rows of one call, built while it goes through the stages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{
    Attempt, Call, Code, Ended, Event, Hex, Invocation, Number, Outcome, Refused, Replayed,
    Started, Word,
};
use toolward_ledger::{Durability, Entry, Error as LedgerError, Given, Pending};

use super::payloads::{RecordedBody, RecordedPayloads, detail};
use super::{RecordedRoute, RecordedTool, Recording};
use crate::api::facts::CallFacts;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Output};
use crate::call_scope::CallScope;
use crate::catalogue::{DriverFacts, ToolFacts};
use crate::named::{CallName, already_run, other_input};

/// The parties of a call: its principal, its tool, and the driver that was picked last.
pub(crate) struct Parties {
    pub(crate) scope: Arc<CallScope>,
    pub(crate) tool: Option<Arc<ToolFacts>>,
    pub(crate) route: Option<Arc<DriverFacts>>,
}

impl Parties {
    pub(super) fn recorded_tool(&self) -> Option<&RecordedTool> {
        self.tool.as_ref()?.recorded.as_ref()
    }

    pub(super) fn recorded_route(&self) -> Option<&RecordedRoute> {
        self.route.as_ref()?.recorded.as_ref()
    }
}

/// The rows of one call.
pub(crate) struct CallRows<'a> {
    pub(super) recording: &'a Recording,
    pub(super) id: Invocation,
    pub(crate) kept: Option<RecordedPayloads>,
    /// Whether its `started` row is on the disk or may still be written.
    pub(crate) started: bool,
    /// The id in the `started` row, if the caller gave one.
    given: Option<Given>,
    /// Whether a person was asked about this call.
    pub(super) asked: bool,
    /// The ledger that replayed results come from.
    replayed: Option<Hex<16>>,
    /// Whether a driver was started.
    dispatched: bool,
    /// When the running attempt started.
    begun: Option<Instant>,
    attempts: Vec<Attempt>,
}

/// The row with the end of a call.
pub(crate) struct RecordedEnd {
    /// Completes once the row is queued or, if the call `waits`, on the disk.
    pub(crate) written: Pending,
    /// Whether the row must be on the disk, so that the call waits for it.
    pub(crate) waits: bool,
    /// Whether bytes of the output are kept with it.
    pub(crate) keeps_output: bool,
}

impl<'a> CallRows<'a> {
    pub(crate) fn new(recording: &'a Recording, id: Invocation, replayed: Option<Hex<16>>) -> Self {
        Self {
            recording,
            id,
            kept: None,
            started: false,
            given: None,
            asked: false,
            replayed,
            dispatched: false,
            begun: None,
            // Most calls make one attempt.
            attempts: Vec::with_capacity(1),
        }
    }

    pub(crate) fn starts(&mut self) {
        self.dispatched = true;
        self.begun = Some(Instant::now());
    }

    pub(crate) fn attempted(&mut self, call: &Parties, error: Option<&ErrorCode>) {
        let driver = call.recorded_route();
        let driver = driver.and_then(|route| Some(route.part.as_ref()?.id.clone()));
        if let (Some(begun), Some(driver)) = (self.begun.take(), driver) {
            self.attempts.push(Attempt {
                code: error.and_then(code),
                driver,
                us: micros(begun.elapsed()),
            });
        }
    }

    /// Notes that the result of the last attempt was not accepted.
    pub(crate) fn attempt_failed(&mut self, error: &ErrorCode) {
        if let Some(last) = self.attempts.last_mut() {
            last.code = code(error);
        }
    }

    /// Whether the start of the call must be recorded. No row is needed for a call that changes
    /// nothing, or whose start was recorded for an earlier driver.
    ///
    /// A call with an id from its caller also needs the row if only its nested calls change
    /// something, since the row stores the id.
    pub(crate) fn must_start(&self, call: &Parties, has_name: bool) -> bool {
        let starts = |route: &Arc<DriverFacts>| route.writes || has_name && route.changes;
        !self.started && call.route.as_ref().is_some_and(starts)
    }

    /// Waits until the start of the call is on the disk, if it [must be
    /// recorded](Self::must_start).
    pub(crate) async fn start(
        &mut self,
        call: &Parties,
        name: Option<&CallName>,
    ) -> Result<(), CallError> {
        if !self.must_start(call, name.is_some()) {
            return Ok(());
        }
        let event = Event::Started(Box::new(Started {
            call: self.call(call),
            invocation: self.id,
        }));
        let mut entry = self.with_inputs(entry(event, &call.scope)).matters();
        if let Some(name) = name {
            let given = name.given()?;
            self.given = Some(given.clone());
            entry = entry.given(given);
        }
        // The row counts as written until it is known that it was not.
        self.started = true;
        let recorder = &self.recording.recorder;
        let Err(error) = recorder.append(entry, Durability::Disk).await else {
            return Ok(());
        };
        self.started = false;
        if let LedgerError::Given { same_input } = error {
            return Err(repeated(same_input));
        }
        tracing::error!(code = error.code(), %error, "a call can't be recorded");
        Err(unrecorded())
    }

    /// Fails if the ledger has the id already. If the ledger can't answer, [`Self::start`] checks
    /// the id.
    pub(crate) async fn may_run(&self, name: &CallName) -> Result<(), CallError> {
        match self.recording.recorder.given(name.given()?).await {
            Err(LedgerError::Given { same_input }) => Err(repeated(same_input)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Records the end of the call.
    pub(crate) fn end(
        &mut self,
        call: &Parties,
        facts: &CallFacts,
        took: Duration,
        result: Result<&Output, &CallError>,
    ) -> Option<RecordedEnd> {
        let error = result.err();
        self.attempted(call, error.map(|error| &error.code));
        let invocation = self.id;
        let outcome = self.outcome(facts, took, error)?;
        let replayed = facts.replayed.as_ref().zip(self.replayed);
        let event = if let Some((replayed, ledger)) = replayed {
            Event::Replayed(Box::new(Replayed {
                call: self.call(call),
                invocation,
                ledger,
                of: recorded_id(&replayed.invocation),
                outcome,
            }))
        } else if self.started || self.dispatched || facts.repeats.is_some() {
            Event::Ended(Box::new(Ended {
                // The `started` row has it already.
                call: (!self.started).then(|| self.call(call)),
                invocation,
                outcome,
            }))
        } else {
            Event::Refused(Box::new(Refused {
                call: self.call(call),
                invocation,
                outcome,
            }))
        };
        let matters = self.started || self.asked;
        let mut entry = self.with_inputs(entry(event, &call.scope));
        if matters {
            entry = entry.matters();
        }
        if let Some(given) = self.given.take_if(|_| self.started && !self.dispatched) {
            // No driver was started, so the call may be made again. In a row of an end, this frees
            // the id.
            entry = entry.given(given);
        }
        let recorder = &*self.recording.recorder;
        let mut keeps_output = false;
        if let (Ok(output), Some(tool), Some(kept), None) =
            (result, &call.tool, &self.kept, &facts.repeats)
        {
            let returned = usize::try_from(facts.output_bytes).unwrap_or(usize::MAX);
            let body = kept.output(recorder, matters, tool, (output, returned));
            keeps_output = matches!(body, RecordedBody::Bytes(_));
            entry = body.into(entry, PayloadKind::Output);
        }
        let detail = detail(
            (recorder, matters),
            (self.kept.as_ref(), call.tool.as_deref()),
            (&facts.tool, error),
            &facts.violations,
        );
        if let Some(detail) = detail {
            entry = detail.into(entry, PayloadKind::Detail);
        }
        let waits = self.started && self.recording.waits_for_end;
        let durability = match waits {
            true => Durability::Disk,
            false => Durability::Queued,
        };
        Some(RecordedEnd {
            written: recorder.append(entry, durability),
            waits,
            keeps_output,
        })
    }

    /// Whether the call started and a row records that.
    pub(crate) fn has_run(&self) -> bool {
        self.started && self.dispatched
    }

    /// Adds input and context to the first row of the call.
    fn with_inputs(&mut self, mut entry: Entry) -> Entry {
        let Some(kept) = &mut self.kept else {
            return entry;
        };
        let input = (kept.input.take(), PayloadKind::Input);
        for (body, kind) in [input, (kept.context.take(), PayloadKind::Context)] {
            if let Some(body) = body {
                entry = body.into(entry, kind);
            }
        }
        entry
    }

    fn call(&self, call: &Parties) -> Call {
        let (tool, route) = (call.recorded_tool(), call.recorded_route());
        let caller = call.scope.chain.caller();
        let skipped = self.kept.iter().flat_map(|kept| &kept.rejected);
        let unserved = tool.into_iter().flat_map(|tool| &tool.unserved);
        Call {
            context: None,
            cut: Number::default(),
            driver: route.and_then(|route| route.part.clone()),
            input: None,
            mutates: tool.map(|tool| tool.mutates.clone()).unwrap_or_default(),
            native: match &self.kept {
                Some(kept) => kept.native.clone(),
                None => call.scope.native.clone(),
            },
            parent: caller.map(|caller| recorded_id(&caller.invocation)),
            person: None,
            policy: self.recording.policy,
            rejected: skipped.chain(unserved).cloned().collect(),
            rerun_of: None,
            root: caller.map(|caller| recorded_id(&caller.root)),
            rules: route.map(|route| route.rules.clone()).unwrap_or_default(),
            surface: tool.and_then(|tool| tool.surface),
            tool: tool.and_then(|tool| tool.part.clone()),
        }
    }

    fn outcome(
        &mut self,
        facts: &CallFacts,
        took: Duration,
        error: Option<&CallError>,
    ) -> Option<Outcome> {
        let violations = facts.violations_by_kind.iter().filter_map(|(kind, count)| {
            let kind = Word::parse(kind.as_str()).ok()?;
            Some((kind, Number::from(*count)))
        });
        Some(Outcome {
            attempts: std::mem::take(&mut self.attempts),
            cancel_reason: (facts.cancellation)
                .and_then(|reason| Word::parse(reason.as_str()).ok()),
            class: facts.class.as_ref().and_then(word),
            code: facts.error.as_ref().and_then(code),
            cut: Number::default(),
            detail: None,
            fuel: Number::from(facts.fuel),
            late: false,
            limit: facts
                .limit
                .and_then(|limit| Word::parse(limit.as_str()).ok()),
            memory: Number::from(facts.peak_memory),
            origin: match (error, facts.origin) {
                (Some(error), _) => word(&error.origin),
                (None, origin) => origin.and_then(|origin| word(&origin)),
            },
            output: None,
            repeats: (facts.repeats.as_deref()).map(recorded_id),
            stage: Word::parse(facts.stage.as_str()).ok()?,
            us: micros(took),
            violations: violations.collect(),
        })
    }
}

pub(super) fn entry(event: Event, scope: &CallScope) -> Entry {
    Entry::new(event).principal(&*scope.principal)
}

/// An invocation's id; a nil id if the text is not one. The host made the id, but the id of a
/// resumed call comes back from its caller.
pub(crate) fn recorded_id(invocation: &str) -> Invocation {
    let nil = Invocation::from_bytes([0; 16]);
    Invocation::parse(invocation).unwrap_or(nil)
}

fn code(code: &ErrorCode) -> Option<Code> {
    Code::parse(code.as_str()).ok()
}

/// The name that serde gives to a variant.
fn word(variant: &impl Serialize) -> Option<Word> {
    let value = serde_json::to_value(variant).ok()?;
    Word::parse(value.as_str()?).ok()
}

pub(crate) fn micros(duration: Duration) -> Number {
    Number::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn repeated(same_input: bool) -> CallError {
    match same_input {
        true => already_run(),
        false => other_input(),
    }
}

fn unrecorded() -> CallError {
    let class = ErrorClass::DependencyUnavailable;
    let message = "the call can't be recorded, and was not made";
    let mut error = CallError::new(ErrorCode::UNRECORDED, class, message);
    error.retryable = true;
    error.with_hint("the host's log says why; calls that change nothing go on")
}
