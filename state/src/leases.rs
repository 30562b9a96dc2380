//! What calls hold while they wait and run: places, and the bundles that they came from, which may be withdrawn.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::BoxFuture;
use crate::error::StateError;

/// The running and waiting calls of hosts, and the withdrawals of bundles.
pub trait Leases: Send + Sync {
    /// The places of a name. Those who share the state share its places; those who share a process share what this
    /// returns.
    fn places(&self, of: PlacesOf<'_>, limits: PlaceLimits) -> Arc<dyn Places>;

    /// Watches a bundle, by the digest of its manifest, which is served from now on.
    fn watch(&self, bundle: &str) -> Arc<Withdrawal>;

    /// Withdraws bundles that are served, in this process at once and in others soon. Returns false if there were none.
    fn withdraw(&self, bundles: ServedBundles<'_>, reason: &str) -> bool;

    /// Separates the bundles that are served from those that are served from now on: a later watch is not withdrawn with
    /// them.
    fn part(&self);
}

/// The places for running calls, and those in the queue for them: first come, first served.
pub trait Places: fmt::Debug + Send + Sync {
    /// A place for a running call, if one is free and known to be.
    fn try_enter(self: Arc<Self>) -> Option<CallPlace>;

    /// Waits for a place for a running call until the deadline, if there is one, and no longer than the future lives. If
    /// the wait is `bounded`, it takes a place in the queue. Whatever else comes of it, no place is held then.
    ///
    /// # Errors
    ///
    /// [`StateError`].
    fn enter(
        self: Arc<Self>,
        bounded: bool,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<PlaceReply, StateError>>;

    /// A place in the queue for a call that is going to enter.
    ///
    /// # Errors
    ///
    /// [`QueueFull`], as for the call.
    fn reserve(self: Arc<Self>) -> Result<CallPlace, QueueFull>;

    /// Gives back a place, by the number that it was made with.
    fn release(&self, number: u64);
}

/// Whose places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlacesOf<'a> {
    /// All calls.
    All,
    /// Calls of one tool of a publisher.
    Tool(&'a str, &'a str),
    /// Calls of the tools of a publisher.
    Publisher(&'a str),
    /// Calls by a principal.
    Principal(&'a str),
}

/// How many places there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// For running calls; at least one.
    pub running: u32,
    /// In the queue.
    pub waiting: u32,
}

/// What becomes of a call that wants to enter.
#[derive(Debug)]
pub enum PlaceReply {
    /// It may run.
    Entered(CallPlace),
    /// It is refused.
    Full(QueueFull),
}

/// The queue has no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull {
    /// How many calls wait.
    pub waiting: u32,
}

/// A place, given back when dropped.
#[derive(Debug)]
pub struct CallPlace {
    of: Arc<dyn Places>,
    number: u64,
}

impl CallPlace {
    /// A place that was taken. The number is its implementation's.
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

/// Bundles that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedBundles<'a> {
    /// The bundle with this manifest digest.
    One(&'a str),
    /// The bundles before the last [`Leases::part`].
    Earlier,
    /// All.
    All,
}

/// Whether one bundle was withdrawn, by its publisher or the operator. Its tools, its drivers, their kept replies and
/// successive hosts share it; reading it takes no lock.
#[derive(Debug)]
pub struct Withdrawal {
    bundle: String,
    reason: OnceLock<String>,
}

impl Withdrawal {
    /// A bundle that is served, by the digest of its manifest.
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

    /// Withdraws the bundle permanently. False if it was already.
    pub fn withdraw(&self, reason: &str) -> bool {
        self.reason.set(reason.to_owned()).is_ok()
    }

    /// Why the bundle was withdrawn, if it was.
    pub fn withdrawn(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }
}
