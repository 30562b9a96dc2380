//! The interface for recording: the entries that a process asks the ledger to record; the recorder,
//! which is a [`Writer`](crate::Writer) in this process or a connection to a writer in another
//! process; and the recorder's answers, which may come later.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use futures_channel::oneshot;

use crate::error::Error;
use crate::payload::PayloadKind;
#[cfg(feature = "sqlite")]
use crate::record::{Abandoned, Call, Code, NOT_DISPATCHED, Outcome};
use crate::record::{Content, Event, Hash, Hex, Invocation, Number, Session, Tool};

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the row is on the disk.
    Disk,
    /// Once the row is in the queue. It is usually written within 40 ms.
    Queued,
}

/// Records calls.
pub trait Recorder: Send + Sync {
    /// Records an entry. The entry is in the queue when this returns, unless the queue is full. In
    /// this case, it enters the queue only if the answer is awaited.
    fn append(&self, entry: Entry, durability: Durability) -> Pending;

    /// Answers once all entries that were appended before are on the disk.
    fn flush(&self) -> Pending;

    /// Answers with [`Error::Given`] if the id was given before, by this principal for this tool.
    fn given(&self, given: Given) -> Pending;

    /// The size up to which a payload of this kind is kept, in bytes; 0 if none is kept.
    /// `matters` is [`Entry::matters`]. For a longer payload, give only the size
    /// ([`Entry::size`]).
    fn keeps(&self, kind: PayloadKind, matters: bool) -> usize {
        let _ = (kind, matters);
        usize::MAX
    }
}

/// An answer of a [`Recorder`](crate::Recorder), which may come later. The request is carried out
/// even if the answer is not awaited, provided that the queue had room for it.
pub struct Pending(Inner);

enum Inner {
    Ready(Option<Result<(), Error>>),
    Later(Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>),
}

impl Pending {
    /// An answer that is available now.
    pub fn ready(answer: Result<(), Error>) -> Self {
        Self(Inner::Ready(Some(answer)))
    }

    /// An answer that a future returns.
    pub fn later(future: impl Future<Output = Result<(), Error>> + Send + 'static) -> Self {
        Self(Inner::Later(Box::pin(future)))
    }

    /// The same answer, but with the error of `why` in place of [`Error::Closed`]. `why` is called
    /// when the answer comes, and returns `None` if the reason is unknown.
    pub(crate) fn closed_because(
        self,
        why: impl FnOnce() -> Option<Error> + Send + 'static,
    ) -> Self {
        let named = |error| match error {
            Error::Closed => why().unwrap_or(Error::Closed),
            error => error,
        };
        match self.0 {
            Inner::Ready(Some(Err(error))) => Self::ready(Err(named(error))),
            Inner::Ready(_) => self,
            Inner::Later(answer) => Self::later(async move { answer.await.map_err(named) }),
        }
    }

    /// Blocks the thread until the answer comes.
    ///
    /// # Errors
    /// The error of the answer.
    pub fn wait(self) -> Result<(), Error> {
        self.wait_until(None).unwrap_or(Err(Error::Closed))
    }

    /// Blocks the thread until the answer comes; returns `None` if it does not come before `until`.
    pub(crate) fn wait_until(self, until: Option<Instant>) -> Option<Result<(), Error>> {
        if let Self(Inner::Ready(answer)) = self {
            return Some(answer.unwrap_or(Err(Error::Closed)));
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut pending = pin!(self);
        loop {
            if let Poll::Ready(answer) = pending.as_mut().poll(&mut context) {
                return Some(answer);
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => std::thread::park(),
                Some(Duration::ZERO) => return None,
                Some(left) => std::thread::park_timeout(left),
            }
        }
    }
}

impl Future for Pending {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(answer) => Poll::Ready(answer.take().unwrap_or(Err(Error::Closed))),
            Inner::Later(future) => future.as_mut().poll(context),
        }
    }
}

toolward_support::opaque!(Pending);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The sending half of a [`Pending`] answer.
pub(crate) struct AnswerSender(oneshot::Sender<Result<(), Error>>);

impl AnswerSender {
    pub(crate) fn send(self, answer: Result<(), Error>) {
        // The caller may have stopped waiting.
        let _ = self.0.send(answer);
    }
}

/// An answer that comes later. It becomes [`Error::Closed`] if the sender is dropped.
pub(crate) fn channel() -> (AnswerSender, Pending) {
    let (reply, answer) = oneshot::channel();
    let answer = async move { answer.await.unwrap_or(Err(Error::Closed)) };
    (AnswerSender(reply), Pending::later(answer))
}

/// A placeholder for the session of a record. The writer fills in the session.
pub(crate) const NO_SESSION: Session = Hex([0; 16]);

/// An event to record, and its payloads. The record has only their sizes and commitments.
///
/// The writer sets the event's person (a random id) and its commitments, even if the event already
/// has some.
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
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Sets when it happened, in microseconds since 1970.
    #[must_use]
    pub fn at(mut self, at: Number) -> Self {
        self.at = at;
        self
    }

    /// Sets the principal on whose behalf it happened.
    #[must_use]
    pub fn principal(mut self, name: impl Into<Arc<str>>) -> Self {
        self.principal = Some(name.into());
        self
    }

    /// Adds a payload. It is kept if the ledger keeps such payloads. The record has its size in any
    /// case. Does nothing if the event has no field for the payload.
    #[must_use]
    pub fn payload(mut self, kind: PayloadKind, bytes: Vec<u8>) -> Self {
        self = self.size(kind, bytes.len() as u64);
        if content_mut(&mut self.event, kind).is_some() {
            self.payloads.push((kind, bytes));
        }
        self
    }

    /// Sets the size of a payload that is not given.
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

    /// Notes that the call changes something, or that a person was asked about it.
    #[must_use]
    pub fn matters(mut self) -> Self {
        self.matters = true;
        self
    }

    /// Sets the id that the caller gave the call. If the entry is a start, it is refused if the id
    /// was given before. If the entry is an end, it frees the id, so set the id on an end only if
    /// the call did not run.
    #[must_use]
    pub fn given(mut self, given: Given) -> Self {
        self.given = Some(given);
        self
    }

    /// The entry that revokes this start, for use if the start is written after its caller gave up;
    /// `None` if the entry is not a start.
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

    /// About how many bytes of memory the entry takes.
    pub(crate) fn weight(&self) -> usize {
        let payloads: usize = self
            .payloads
            .iter()
            .map(|(_, bytes)| bytes.len() + 32)
            .sum();
        let name = self.principal.as_ref().map_or(0, |name| name.len());
        1024 + self.list_weight() + payloads + name
    }

    /// About how many bytes the items of its lists take, in memory or in a line.
    pub(crate) fn list_weight(&self) -> usize {
        let call = self.event.call().map_or(0, |call| {
            64 * (call.mutates.len() + 2 * call.rejected.len() + call.rules.len())
        });
        let outcome = self.event.outcome().map_or(0, |outcome| {
            64 * (outcome.attempts.len() + outcome.violations.len())
        });
        let others = match &self.event {
            Event::Opened(body) => 64 * body.bundles.len(),
            Event::RefusedMore(body) => 96 * body.codes.len(),
            _ => 0,
        };
        call + outcome + others
    }
}

/// The event's field for this payload.
pub(crate) fn content_mut(event: &mut Event, kind: PayloadKind) -> Option<&mut Option<Content>> {
    let (call, outcome) = event.parts_mut();
    match kind {
        PayloadKind::Input => call.map(|call| &mut call.input),
        PayloadKind::Context => call.map(|call| &mut call.context),
        PayloadKind::Output => outcome.map(|outcome| &mut outcome.output),
        PayloadKind::Detail => outcome.map(|outcome| &mut outcome.detail),
    }
}

/// The field for this payload in the records of a call.
#[cfg(feature = "sqlite")]
pub(crate) fn content<'r>(
    call: Option<&'r Call>,
    outcome: Option<&'r Outcome>,
    kind: PayloadKind,
) -> Option<&'r Content> {
    match kind {
        PayloadKind::Input => call?.input.as_ref(),
        PayloadKind::Context => call?.context.as_ref(),
        PayloadKind::Output => outcome?.output.as_ref(),
        PayloadKind::Detail => outcome?.detail.as_ref(),
    }
}

/// An id that a caller gave a call. It is valid only for this principal and tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The principal that gave it.
    pub principal: Arc<str>,
    /// The tool, by its major version.
    pub tool: Tool,
    /// The id.
    pub id: Invocation,
    /// A digest of the input.
    pub input: Hash,
}

/// The current time in microseconds since 1970.
pub(crate) fn now() -> Number {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Number::from(micros(since.unwrap_or_default()))
}

/// A time in microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
