//! Passes events of calls to their readers. Memory is bounded: a reader that lags loses the oldest
//! events and learns how many; it never delays a call.
//!
//! Each principal that has a reader has a separate ring buffer. So events of other principals
//! neither displace its events nor count as lost, which would show their number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};
use toolward_ledger::record::Native;
use toolward_support::helper::lock;
use uuid::Uuid;

use crate::api::event::{CallEvent, CallEventKind, EventFilter, PrincipalId};
use crate::api::facts::CallFacts;

/// The number of events that a ring holds for its slowest reader.
const RING: usize = 4096;

/// The readers of events, shared by the hosts that replace each other.
#[derive(Debug, Default)]
pub(crate) struct EventHub {
    /// The number of readers. While it is zero, a call reads nothing else of the hub.
    readers: AtomicUsize,
    /// The number of events that readers were too slow for.
    lost: AtomicU64,
    rings: Mutex<HashMap<Option<PrincipalId>, Sender<Arc<CallEvent>>>>,
}

impl EventHub {
    /// Returns a reader of the events from now on.
    pub(crate) fn events(self: &Arc<Self>, EventFilter(whose): EventFilter) -> Events {
        let mut rings = lock(&self.rings);
        let ring = rings.entry(whose).or_insert_with(|| channel(RING).0);
        let receiver = ring.subscribe();
        self.readers.fetch_add(1, Ordering::Relaxed);
        Events {
            receiver: Some(receiver),
            hub: self.clone(),
        }
    }

    /// The number of events that readers were too slow for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts events that a reader was too slow for.
    fn lose(&self, events: u64) -> Heard {
        self.lost.fetch_add(events, Ordering::Relaxed);
        Heard::Lost(events)
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    fn send(&self, event: CallEvent) {
        let event = Arc::new(event);
        let rings = lock(&self.rings);
        for whose in [None, Some(event.principal)] {
            if let Some(ring) = rings.get(&whose) {
                // Fails if the last reader has just been dropped.
                let _ = ring.send(event.clone());
            }
        }
    }
}

/// Reads events of calls: [`Host::events`](crate::Host::events).
#[derive(Debug)]
pub struct Events {
    /// `None` only while the reader is dropped.
    receiver: Option<Receiver<Arc<CallEvent>>>,
    hub: Arc<EventHub>,
}

/// The result of reading.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// An event.
    Event(Arc<CallEvent>),
    /// The reader was too slow, and lost this many events before the next one.
    Lost(u64),
}

impl Events {
    /// Waits for the next event. Can be cancelled without losing an event.
    pub async fn next(&mut self) -> Heard {
        let Some(receiver) = &mut self.receiver else {
            return std::future::pending().await;
        };
        match receiver.recv().await {
            Ok(event) => Heard::Event(event),
            Err(RecvError::Lagged(lost)) => self.hub.lose(lost),
            // This does not happen, since the hub of this reader keeps the sender.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Returns the next event if one has arrived already.
    pub fn try_next(&mut self) -> Option<Heard> {
        match self.receiver.as_mut()?.try_recv() {
            Ok(event) => Some(Heard::Event(event)),
            Err(TryRecvError::Lagged(lost)) => Some(self.hub.lose(lost)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.readers.fetch_sub(1, Ordering::Relaxed);
        let mut rings = lock(&self.hub.rings);
        self.receiver = None;
        rings.retain(|_, ring| ring.receiver_count() > 0);
    }
}

/// Sends the events of one call.
pub(crate) struct CallEvents<'a> {
    hub: &'a Arc<EventHub>,
    /// The fields that all events of the call share. Created once a reader exists.
    template: Option<Arc<CallEvent>>,
}

impl<'a> CallEvents<'a> {
    pub(crate) fn new(hub: &'a Arc<EventHub>) -> Self {
        let template = None;
        Self { hub, template }
    }

    /// Notes that the tool was found. The next event creates the template again, with the tool.
    pub(crate) fn resolved(&mut self) {
        self.template = None;
    }

    /// Sends an event if a reader exists.
    pub(crate) fn tell(
        &mut self,
        facts: &CallFacts,
        native: &Native,
        kind: impl FnOnce() -> CallEventKind,
    ) {
        if let Some(progress) = self.progress(facts, native) {
            progress.send(kind());
        }
    }

    /// Returns a sender of the call's progress; `None` while no reader exists.
    pub(crate) fn progress(
        &mut self,
        facts: &CallFacts,
        native: &Native,
    ) -> Option<ProgressEvents> {
        self.hub.has_readers().then(|| {
            let template = self.template.get_or_insert_with(|| {
                Arc::new(CallEvent {
                    id: String::new(),
                    at: SystemTime::UNIX_EPOCH,
                    invocation: uuid(&facts.invocation),
                    parent: facts.parent.as_deref().map(uuid),
                    principal: PrincipalId::of(&facts.principal),
                    native: native.clone(),
                    tool: facts.tool_id.as_deref().map(str::to_owned),
                    kind: CallEventKind::Planned,
                })
            });
            ProgressEvents {
                hub: self.hub.clone(),
                template: template.clone(),
            }
        })
    }
}

/// Sends the progress that a guest reports.
#[derive(Debug, Clone)]
pub(crate) struct ProgressEvents {
    hub: Arc<EventHub>,
    template: Arc<CallEvent>,
}

impl ProgressEvents {
    pub(crate) fn tell(&self, done: f64, total: Option<f64>) {
        if self.hub.has_readers() {
            self.send(CallEventKind::Progress { done, total });
        }
    }

    fn send(&self, kind: CallEventKind) {
        self.hub.send(CallEvent {
            id: Uuid::now_v7().to_string(),
            at: SystemTime::now(),
            kind,
            ..(*self.template).clone()
        });
    }
}

/// An invocation's id as a UUID; the nil UUID if the text is not one. The host made the id, but the
/// id of a resumed call comes back from its caller.
pub(crate) fn uuid(invocation: &str) -> String {
    Uuid::try_parse(invocation).unwrap_or_default().to_string()
}
