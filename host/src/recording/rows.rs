//! The rows of one call, put together while it goes through the stages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::record::{
    Attempt, Call, Code, Ended, Event, Hex, Invocation, Number, Outcome, Refused, Replayed,
    Started, Word,
};
use toolward_ledger::{Durability, Entry, Error as LedgerError, Given, Pending};

use super::Recording;
use super::payloads::{Body, Kept, detail};
use crate::api::cancellation::Cancellation;
use crate::api::listener::CallStage;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Metadata, Output};
use crate::api::violations::ViolationKind;
use crate::catalogue::{Route, ToolEntry};
use crate::named::{CallName, already_run, other_input};
use crate::sandbox::call_scope::CallScope;

/// What is recorded of one call.
pub(crate) struct Rows<'a> {
    pub(super) recording: &'a Recording,
    pub(super) id: Invocation,
    pub(super) tool: Option<Arc<ToolEntry>>,
    pub(super) route: Option<Arc<Route>>,
    kept: Option<Box<Kept>>,
    /// Whether its `started` row is on the disk, or may get there.
    started: bool,
    /// The id that this row has, if its caller gave one.
    given: Option<Given>,
    /// Whether a person was asked about this call.
    pub(super) asked: bool,
    /// The ledger and the recorded call that the result is from.
    replayed: Option<(Hex<16>, Invocation)>,
    /// The recorded call that this one repeats.
    rerun_of: Option<Invocation>,
    /// Whether a driver was started.
    dispatched: bool,
    /// When the attempt began that runs.
    begun: Option<Instant>,
    attempts: Vec<Attempt>,
    /// Bytes that the driver returned.
    returned: usize,
    violations: BTreeMap<ViolationKind, u64>,
}

/// How a call ended.
pub(crate) struct End<'a> {
    pub(crate) scope: &'a CallScope,
    pub(crate) metadata: &'a Metadata,
    pub(crate) stage: CallStage,
    pub(crate) took: Duration,
    pub(crate) result: Result<&'a Output, &'a CallError>,
    /// Why it was cancelled, if it was.
    pub(crate) canceled: Option<Cancellation>,
}

/// The row with the end of a call.
pub(crate) struct RecordedEnd {
    /// Answers once it is written.
    pub(crate) written: Pending<()>,
    /// Whether that is on the disk, and the call waits for it.
    pub(crate) waits: bool,
    /// Whether bytes of the output are kept with it.
    pub(crate) keeps_output: bool,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        id: Invocation,
        rerun_of: Option<Invocation>,
    ) -> Self {
        Self {
            recording,
            id,
            tool: None,
            route: None,
            kept: None,
            started: false,
            given: None,
            asked: false,
            replayed: None,
            rerun_of,
            dispatched: false,
            begun: None,
            // Most calls have one.
            attempts: Vec::with_capacity(1),
            returned: 0,
            violations: BTreeMap::new(),
        }
    }

    pub(crate) fn resolved(&mut self, tool: &Arc<ToolEntry>) {
        self.tool = Some(tool.clone());
    }

    pub(crate) fn validated(&mut self, kept: Option<Box<Kept>>) {
        self.kept = kept;
    }

    pub(crate) fn picked(&mut self, route: &Arc<Route>) {
        self.route = Some(route.clone());
    }

    pub(crate) fn replayed(&mut self, ledger: Hex<16>, of: Invocation) {
        self.replayed = Some((ledger, of));
    }

    pub(crate) fn starts(&mut self) {
        self.dispatched = true;
        self.begun = Some(Instant::now());
    }

    pub(crate) fn attempted(&mut self, error: Option<&ErrorCode>) {
        let driver = self.route.as_ref().and_then(|route| {
            let part = route.recorded.as_ref()?.part.as_ref();
            Some(part?.id.clone())
        });
        if let (Some(begun), Some(driver)) = (self.begun.take(), driver) {
            self.attempts.push(Attempt {
                code: error.and_then(code),
                driver,
                us: micros(begun.elapsed()),
            });
        }
    }

    /// What the last attempt returned was not accepted.
    pub(crate) fn attempt_failed(&mut self, error: &ErrorCode) {
        if let Some(last) = self.attempts.last_mut() {
            last.code = code(error);
        }
    }

    pub(crate) fn returned(&mut self, bytes: usize) {
        self.returned = bytes;
    }

    pub(crate) fn violated(&mut self, violations: BTreeMap<ViolationKind, u64>) {
        self.violations = violations;
    }

    /// Whether the driver that was picked changes something itself.
    fn writes(&self) -> bool {
        self.route.as_ref().is_some_and(|route| route.writes)
    }

    /// Whether it has to be recorded that the call starts. Calls that change nothing, and those that were recorded for
    /// an earlier driver, need no row.
    ///
    /// A call with an id of its caller needs one also where only the tools that it calls change something: the row is
    /// what knows the id.
    pub(crate) fn must_start(&self, has_name: bool) -> bool {
        let reaches = || self.route.as_ref().is_some_and(|route| route.changes);
        !self.started && (self.writes() || has_name && reaches())
    }

    /// Waits until it is on the disk that the call starts, where it [has to be](Self::must_start).
    pub(crate) async fn start(
        &mut self,
        scope: &CallScope,
        name: Option<&CallName>,
    ) -> Result<(), CallError> {
        if !self.must_start(name.is_some()) {
            return Ok(());
        }
        let event = Event::Started(Box::new(Started {
            call: self.call(scope),
            invocation: self.id,
        }));
        let mut entry = self.with_inputs(entry(event, scope)).matters();
        if let Some(name) = name {
            let given = name.given()?;
            self.given = Some(given.clone());
            entry = entry.given(given);
        }
        // Until it is known that the row was not written, it may be.
        self.started = true;
        match self
            .recording
            .recorder
            .append(entry, Durability::Disk)
            .await
        {
            Ok(()) => Ok(()),
            Err(LedgerError::Given { same_input }) => {
                self.started = false;
                Err(repeated(same_input))
            }
            Err(error) => {
                self.started = false;
                tracing::error!(code = error.code(), %error, "a call can't be recorded");
                Err(unrecorded())
            }
        }
    }

    /// Whether the ledger does not have the id yet. Where it can't say, `start` will.
    pub(crate) async fn may_run(&self, name: &CallName) -> Result<(), CallError> {
        match self.recording.recorder.given(name.given()?).await {
            Ok(Some(known)) => Err(repeated(known.same_input)),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Records the end of the call.
    pub(crate) fn end(&mut self, end: &End<'_>) -> Option<RecordedEnd> {
        let error = end.result.err();
        self.attempted(error.map(|error| &error.code));
        let invocation = self.id;
        let outcome = self.outcome(end)?;
        let event = match (self.replayed, self.started, self.dispatched) {
            (Some((ledger, of)), ..) => Event::Replayed(Box::new(Replayed {
                call: self.call(end.scope),
                invocation,
                ledger,
                of,
                outcome,
            })),
            (None, true, _) => Event::Ended(Box::new(Ended {
                call: None,
                invocation,
                outcome,
            })),
            (None, false, dispatched) if dispatched || end.metadata.repeats.is_some() => {
                Event::Ended(Box::new(Ended {
                    call: Some(self.call(end.scope)),
                    invocation,
                    outcome,
                }))
            }
            (None, false, _) => Event::Refused(Box::new(Refused {
                call: self.call(end.scope),
                invocation,
                outcome,
            })),
        };
        let matters = self.started || self.asked;
        let mut entry = self.with_inputs(entry(event, end.scope));
        if matters {
            entry = entry.matters();
        }
        if let Some(given) = self.given.take_if(|_| self.started && !self.dispatched) {
            // The call may be made again.
            entry = entry.given(given);
        }
        let recorder = &*self.recording.recorder;
        let mut keeps_output = false;
        if let (Ok(output), Some(tool), Some(kept), None) =
            (end.result, &self.tool, &self.kept, &end.metadata.repeats)
        {
            let body = kept.output(recorder, matters, tool, (output, self.returned));
            keeps_output = matches!(body, Body::Bytes(_));
            entry = body.into(entry, PayloadKind::Output);
        }
        let detail = detail(
            (recorder, matters),
            (self.kept.as_deref(), self.tool.as_deref()),
            (&end.metadata.tool, error),
            &end.metadata.violations,
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

    /// Whether the end belongs to a row that says that the call started.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    /// Whether a row says that the call started, and it did.
    pub(crate) fn has_run(&self) -> bool {
        self.started && self.dispatched
    }

    /// Adds input and context to the first row of the call.
    fn with_inputs(&mut self, mut entry: Entry) -> Entry {
        let Some(kept) = &mut self.kept else {
            return entry;
        };
        if let Some(body) = kept.input.take() {
            entry = body.into(entry, PayloadKind::Input);
        }
        if let Some(body) = kept.context.take() {
            entry = body.into(entry, PayloadKind::Context);
        }
        entry
    }

    fn call(&self, scope: &CallScope) -> Call {
        let tool = self.tool.as_ref().and_then(|tool| tool.recorded.as_ref());
        let route = self.route.as_ref();
        let route = route.and_then(|route| route.recorded.as_ref());
        let caller = scope.chain.caller();
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
                None => scope.native.clone(),
            },
            parent: caller.map(|caller| recorded_id(&caller.invocation)),
            person: None,
            policy: self.recording.policy,
            rejected: skipped.chain(unserved).cloned().collect(),
            rerun_of: self.rerun_of,
            root: caller.map(|caller| recorded_id(&caller.root)),
            rules: route.map(|route| route.rules.clone()).unwrap_or_default(),
            surface: tool.and_then(|tool| tool.surface),
            tool: tool.and_then(|tool| tool.part.clone()),
        }
    }

    fn outcome(&mut self, end: &End<'_>) -> Option<Outcome> {
        let stage = Word::parse(end.stage.as_str()).ok()?;
        let error = end.result.err();
        let violations = std::mem::take(&mut self.violations).into_iter();
        let violations = violations.filter_map(|(kind, count)| {
            let kind = Word::parse(kind.as_str()).ok()?;
            Some((kind, Number::from(count)))
        });
        Some(Outcome {
            attempts: std::mem::take(&mut self.attempts),
            cancel_reason: (end.canceled).and_then(|reason| Word::parse(reason.as_str()).ok()),
            class: error.and_then(|error| word(&error.class)),
            code: error.and_then(|error| code(&error.code)),
            cut: Number::default(),
            detail: None,
            fuel: Number::from(end.metadata.fuel),
            late: false,
            limit: error
                .and_then(|error| error.limit)
                .and_then(|hit| Word::parse(hit.limit.as_str()).ok()),
            memory: Number::from(end.metadata.peak_memory),
            origin: match (error, end.metadata.origin) {
                (Some(error), _) => word(&error.origin),
                (None, origin) => origin.and_then(|origin| word(&origin)),
            },
            output: None,
            repeats: (end.metadata.repeats.as_deref()).map(recorded_id),
            stage,
            us: micros(end.took),
            violations: violations.collect(),
        })
    }
}

pub(super) fn entry(event: Event, scope: &CallScope) -> Entry {
    Entry::new(event).principal(scope.principal.as_str())
}

/// An invocation's id. It is the host's own, but one that resumes comes back from its caller.
pub(crate) fn recorded_id(invocation: &str) -> Invocation {
    let nil = Invocation::from_bytes([0; 16]);
    Invocation::parse(invocation).unwrap_or(nil)
}

fn code(code: &ErrorCode) -> Option<Code> {
    Code::parse(code.as_str()).ok()
}

/// A word that serde knows a variant by.
fn word(variant: &impl Serialize) -> Option<Word> {
    let value = serde_json::to_value(variant).ok()?;
    Word::parse(value.as_str()?).ok()
}

pub(super) fn micros(duration: Duration) -> Number {
    Number::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn repeated(same_input: bool) -> CallError {
    match same_input {
        true => already_run(),
        false => other_input(),
    }
}

fn unrecorded() -> CallError {
    let mut error = CallError::new(
        ErrorCode::UNRECORDED,
        ErrorClass::DependencyUnavailable,
        "the call can't be recorded, and was not made",
    )
    .with_hint("the host's log says why; calls that change nothing go on");
    error.retryable = true;
    error
}
