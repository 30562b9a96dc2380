//! Entries: what a process asks the ledger to record. The writer makes records of them.

use std::sync::Arc;
use std::time::SystemTime;

use crate::payload::PayloadKind;
#[cfg(feature = "sqlite")]
use crate::record::{Abandoned, NOT_DISPATCHED};
use crate::record::{
    Code, Content, Event, Gap, Hash, Hex, Invocation, Number, RecordRef, Session, Tool,
};

/// Stands where a record has its session, which is the writer's to say.
pub(crate) const NO_SESSION: Session = Hex([0; 16]);

/// An event to record, with what the record only commits to.
///
/// The writer fills in who it was about, by a random id, and the commitments. What the event has there is
/// overwritten.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) at: Number,
    pub(crate) event: Event,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) payloads: Vec<(PayloadKind, Vec<u8>)>,
    pub(crate) given: Option<Given>,
    pub(crate) matters: bool,
    /// Whether person and commitments are filled in.
    pub(crate) prepared: bool,
}

impl Entry {
    /// An event that happens now.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self {
            at: now(),
            event,
            principal: None,
            payloads: Vec::new(),
            given: None,
            matters: false,
            prepared: false,
        }
    }

    /// What happened.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// When it happened, in microseconds since 1970.
    #[must_use]
    pub fn at(mut self, at: Number) -> Self {
        self.at = at;
        self
    }

    /// On whose behalf.
    #[must_use]
    pub fn principal(mut self, name: impl Into<Arc<str>>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Adds a payload. It is kept if the ledger keeps such ones; the record has its size in any case.
    #[must_use]
    pub fn payload(mut self, kind: PayloadKind, bytes: Vec<u8>) -> Self {
        self = self.size(kind, bytes.len() as u64);
        if content_mut(&mut self.event, kind).is_some() {
            self.payloads.push((kind, bytes));
        }
        self
    }

    /// Says how large a payload is that is not given.
    #[must_use]
    pub fn size(mut self, kind: PayloadKind, bytes: u64) -> Self {
        if let Some(content) = content_mut(&mut self.event, kind) {
            *content = Some(Content {
                commitment: None,
                size: Number::from(bytes),
            });
        }
        self
    }

    /// The call changes something, or a person was asked about it.
    #[must_use]
    pub fn matters(mut self) -> Self {
        self.matters = true;
        self
    }

    /// The id that the caller gave the call. A start is refused if it was given before. The end of a call that did
    /// not run, and has the same id, frees it.
    #[must_use]
    pub fn given(mut self, given: Given) -> Self {
        self.given = Some(given);
        self
    }

    /// What takes back a start that is written after its caller gave up.
    #[cfg(feature = "sqlite")]
    pub(crate) fn not_dispatched(&self) -> Option<Self> {
        let Event::Started(body) = &self.event else {
            return None;
        };
        let mut entry = Self::new(Event::Abandoned(Abandoned {
            invocation: body.invocation,
            of: NO_SESSION,
            why: Code::parse(NOT_DISPATCHED).ok(),
        }));
        entry.given.clone_from(&self.given);
        Some(entry)
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let payloads: usize = self
            .payloads
            .iter()
            .map(|(_, bytes)| bytes.len() + 32)
            .sum();
        let call = self.event.call().map_or(0, |call| {
            64 * (call.mutates.len() + call.rejected.len() + call.rules.len())
        });
        let outcome = self.event.outcome().map_or(0, |outcome| {
            64 * (outcome.attempts.len() + outcome.violations.len())
        });
        let codes = match &self.event {
            Event::RefusedMore(body) => 96 * body.codes.len(),
            _ => 0,
        };
        1024 + call
            + outcome
            + codes
            + payloads
            + self.principal.as_ref().map_or(0, |name| name.len())
    }

    pub(crate) fn record(&self, session: Session) -> RecordRef<'_> {
        RecordRef {
            at: self.at,
            session,
            event: &self.event,
        }
    }
}

/// What the event has of this payload.
pub(crate) fn content_mut(event: &mut Event, kind: PayloadKind) -> Option<&mut Option<Content>> {
    match kind {
        PayloadKind::Input => event.call_mut().map(|call| &mut call.input),
        PayloadKind::Context => event.call_mut().map(|call| &mut call.context),
        PayloadKind::Output => event.outcome_mut().map(|outcome| &mut outcome.output),
        PayloadKind::Detail => event.outcome_mut().map(|outcome| &mut outcome.detail),
    }
}

/// An id that a caller gave a call. It is known to this principal and tool only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Who gave it.
    pub principal: Arc<str>,
    /// The tool, by its major version.
    pub tool: Tool,
    /// The id.
    pub id: Invocation,
    /// A digest of the input.
    pub input: Hash,
}

/// What is known of an id that was given before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Whether it was given with the same input.
    pub same_input: bool,
}

/// Rows that could not be written.
#[derive(Clone, Debug)]
pub(crate) struct MissingRows {
    pub(crate) count: u64,
    pub(crate) since: Number,
    pub(crate) why: &'static str,
}

impl MissingRows {
    pub(crate) fn gap(&self) -> Option<Gap> {
        Some(Gap {
            missing: Number::from(self.count),
            since: self.since,
            why: Code::parse(self.why).ok()?,
        })
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> Number {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Number::from(u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX))
}
