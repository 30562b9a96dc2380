//! Leases of calls: places, in which calls wait and run, and bundles, which may be withdrawn.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;

/// The running and waiting calls of hosts, and the withdrawals of bundles.
pub trait Leases: Send + Sync {
    /// The places for the calls that `of` selects. Hosts that share the state share these places;
    /// hosts of one process must share the returned object.
    fn places(&self, of: PlacesOf<'_>, limits: PlaceLimits) -> Arc<dyn Places>;

    /// Starts to watch a bundle that is served from now on. `bundle` is the digest of its manifest.
    fn watch(&self, bundle: &str) -> Arc<Withdrawal>;

    /// Withdraws served bundles, in this process at once and in other processes soon. Returns false
    /// if no such bundle is served, or all of them were withdrawn before.
    fn withdraw(&self, bundles: ServedBundles<'_>, reason: &str) -> bool;

    /// Separates the bundles that are served now from bundles that are served later:
    /// [`ServedBundles::Earlier`] then selects only the former.
    fn part(&self);
}

/// The places for running calls, and the places in the queue: first come, first served.
pub trait Places: fmt::Debug + Send + Sync {
    /// Takes a place for a running call, if one is known to be free.
    fn try_enter(self: Arc<Self>) -> Option<CallPlace>;

    /// Waits for a place for a running call, until the deadline if set, or until the future is
    /// dropped. A `bounded` wait takes a place in the queue, and is refused if the queue is full.
    /// If the call does not enter, it holds no place afterwards.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn enter(
        self: Arc<Self>,
        bounded: bool,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<PlaceReply, StateError>>;

    /// Takes a place in the queue for a call that is going to enter.
    ///
    /// # Errors
    ///
    /// [`QueueFull`] if no place is left.
    fn reserve(self: Arc<Self>) -> Result<CallPlace, QueueFull>;

    /// Returns a place, by its number.
    fn release(&self, number: u64);
}

/// Selects the calls that share places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacesOf<'a> {
    /// All calls.
    All,
    /// Calls of one tool of a publisher: the publisher, then the tool.
    Tool(&'a str, &'a str),
    /// Calls of the tools of a publisher.
    Publisher(&'a str),
    /// Calls by a principal.
    Principal(&'a str),
}

/// The number of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// Places for running calls; at least one.
    pub running: u32,
    /// Places in the queue.
    pub waiting: u32,
}

/// The result for a call that tries to enter.
#[derive(Debug)]
pub enum PlaceReply {
    /// The call may run.
    Entered(CallPlace),
    /// The call is refused.
    Full(QueueFull),
}

/// The error if the queue has no place left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull {
    /// How many calls wait.
    pub waiting: u32,
}

/// A place, which is returned when dropped.
#[derive(Debug)]
pub struct CallPlace {
    of: Arc<dyn Places>,
    number: u64,
}

impl CallPlace {
    /// A place that was taken. The implementation chooses the number.
    #[must_use]
    pub fn new(of: Arc<dyn Places>, number: u64) -> Self {
        Self { of, number }
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        self.of.release(self.number);
    }
}

/// Selects served bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedBundles<'a> {
    /// The bundle with this manifest digest.
    One(&'a str),
    /// The bundles that were served before the last [`Leases::part`].
    Earlier,
    /// All served bundles.
    All,
}

/// Whether one bundle was withdrawn, by its publisher or the operator. The bundle's tools and
/// drivers, their kept replies and successive hosts share this value. Reading it takes no lock.
#[derive(Debug)]
pub struct Withdrawal {
    bundle: String,
    reason: OnceLock<String>,
}

impl Withdrawal {
    /// A served bundle that was not withdrawn, by the digest of its manifest.
    pub fn new(bundle: &str) -> Self {
        Self {
            bundle: bundle.to_owned(),
            reason: OnceLock::new(),
        }
    }

    /// The digest of the bundle's manifest.
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Withdraws the bundle permanently. Returns false if it was withdrawn already.
    pub fn withdraw(&self, reason: &str) -> bool {
        self.reason.set(reason.to_owned()).is_ok()
    }

    /// Why the bundle was withdrawn, if it was.
    pub fn withdrawn(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }
}
