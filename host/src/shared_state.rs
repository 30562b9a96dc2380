//! The state that hosts share when they replace each other, such as withdrawn bundles, admission,
//! engine and turns.

use std::sync::{Arc, Mutex, OnceLock};

use crate::admission::{Admission, MemoryLease, ReadProgress};
use crate::api::event::EventFilter;
use crate::elicitation::OpenForms;
use crate::events::{EventHub, Events};
use crate::named::NamedCalls;
use crate::validation_pool::ValidationPool;
use toolward_policy::Limits;
use toolward_sandbox::engine::{EngineProfile, Ready};
use toolward_sandbox::error::HostError;
use toolward_sandbox::turns::Turns;
use toolward_state::{Approvals, Denials, HostState, Keys, Local, ServedBundles, Withdrawal};
use toolward_support::helper::lock;

/// The state that hosts share when one replaces another. Earlier calls may still run, for example
/// in a server that reloads its bundles. Withdrawing a bundle affects all of these hosts, including
/// calls that wait for a person. The calls of all these hosts count together against the limits on
/// running and waiting calls.
///
/// Cheap to clone; clones share everything. Without a shared state, a host creates its own.
///
/// ```
/// use toolward_host::{Host, SharedState};
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let state = SharedState::new();
/// let host = Host::builder().shared_state(&state).build()?;
/// // A bundle was revoked: new calls of its tools end with an error on every host of this state.
/// state.withdraw("aa11…", "revoked by its publisher");
/// let next = Host::builder().shared_state(&state).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SharedState {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: Arc<dyn HostState>,
    admission: Mutex<Option<Arc<Admission>>>,
    /// The pool for long validations.
    pub(crate) validation: ValidationPool,
    /// The turns of running guests on the processors.
    pub(crate) turns: Arc<Turns>,
    /// The open forms that people are asked to fill in.
    pub(crate) forms: Arc<OpenForms>,
    /// The ids that callers gave to calls.
    pub(crate) named: NamedCalls,
    /// The readers of events.
    pub(crate) events: Arc<EventHub>,
    /// An admission, and the engine that has the slots for its calls.
    ready: Mutex<Option<(Arc<Admission>, Arc<Ready>)>>,
}

impl Default for SharedState {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedState {
    /// A state for new hosts.
    pub fn new() -> Self {
        Self::local(None, None)
    }

    /// A state whose hosts use this secret to make drivers' idempotency keys from the ids of
    /// callers ([`Request::named`](crate::Request::named)). All processes of an installation should
    /// use the same secret, and keep it, so that a service gets the same key for an id after a
    /// restart. By default the secret is random.
    pub fn keyed(secret: [u8; 32]) -> Self {
        Self::local(Some(secret), None)
    }

    /// A state in the memory of this process, with an optional [secret](SharedState::keyed).
    /// Denials are kept in `denials`, if given, so that the backoff after a denial survives a
    /// restart.
    ///
    /// ```no_run
    /// use toolward_host::{Denials, Host, SharedState};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let denials = Denials::open("/var/lib/example/denials".as_ref())?;
    /// let state = SharedState::local(None, Some(denials));
    /// let host = Host::builder().shared_state(&state).build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn local(id_secret: Option<[u8; 32]>, denials: Option<Denials>) -> Self {
        Self::of(Arc::new(Local::new(id_secret, denials)))
    }

    /// A state in another implementation, for example one that several machines share. Buckets are
    /// separate: if the object also keeps buckets, pass it to
    /// [`HostBuilder::buckets`](crate::HostBuilder::buckets), too.
    #[must_use]
    pub fn of(state: Arc<dyn HostState>) -> Self {
        Self {
            shared: Arc::new(Shared {
                named: NamedCalls {
                    calls: state.clone(),
                    keys: state.clone(),
                },
                state,
                admission: Mutex::default(),
                validation: ValidationPool::default(),
                turns: Arc::default(),
                forms: Arc::default(),
                events: Arc::default(),
                ready: Mutex::default(),
            }),
        }
    }

    /// The approval questions and decisions, for the code that asks people: the clients of a
    /// server, or an [`Approver`](crate::Approver) of the application.
    /// [`ApprovalRequest::keys`](crate::ApprovalRequest::keys) identifies the subject of a request.
    pub fn approvals(&self) -> Arc<dyn Approvals> {
        self.shared.state.clone()
    }

    /// The keys of the hosts of this state. They seal texts in a build with the feature `sealing`
    /// of `toolward_state`, which MCP servers enable.
    pub fn keys(&self) -> Arc<dyn Keys> {
        self.shared.state.clone()
    }

    /// Withdraws the bundle with this manifest digest (64 hex digits) on all existing
    /// hosts: see [`Host::withdraw`](crate::Host::withdraw). A host that is built later
    /// with the bundle serves it, since the bundle was verified again; calls of earlier
    /// hosts stay refused. Returns false if no such bundle was served.
    pub fn withdraw(&self, bundle: &str, reason: &str) -> bool {
        let bundle = ServedBundles::One(bundle);
        self.shared.state.withdraw(bundle, reason)
    }

    /// Withdraws all bundles, like [`SharedState::withdraw`].
    pub fn withdraw_all(&self, reason: &str) {
        self.shared.state.withdraw(ServedBundles::All, reason);
    }

    /// Separates existing hosts from later hosts. A host that is built from now on starts without
    /// withdrawals, and [`SharedState::withdraw_earlier`] does not affect it.
    pub fn part(&self) {
        self.shared.state.part();
    }

    /// Withdraws all bundles of the hosts that were built before the last [`SharedState::part`].
    pub fn withdraw_earlier(&self, reason: &str) {
        self.shared.state.withdraw(ServedBundles::Earlier, reason);
    }

    /// The withdrawal of a bundle that is loaded now.
    pub(crate) fn withdrawal(&self, bundle: &str) -> Arc<Withdrawal> {
        self.shared.state.watch(bundle)
    }

    /// The gates for calls under these limits. After a change of limits, calls that
    /// already run don't count.
    pub(crate) fn admission(&self, limits: &Limits) -> Arc<Admission> {
        let mut known = lock(&self.shared.admission);
        let admission = known
            .take()
            .filter(|admission| admission.is_by(limits))
            .unwrap_or_else(|| Arc::new(Admission::new(limits, self.shared.state.clone())));
        *known = Some(admission.clone());
        admission
    }

    /// The engine for the calls of `admission`. Each admission has its own engine, with a slot for
    /// each admitted call.
    pub(crate) fn ready(
        &self,
        admission: &Arc<Admission>,
        profile: &EngineProfile,
    ) -> Result<Arc<Ready>, HostError> {
        let mut known = lock(&self.shared.ready);
        if let Some((same, ready)) = &*known
            && Arc::ptr_eq(same, admission)
            && ready.profile.has_limits_of(profile)
        {
            return Ok(ready.clone());
        }
        let ready = profile.ready()?;
        *known = Some((admission.clone(), ready.clone()));
        Ok(ready)
    }

    /// Counts a result of `bytes` for `principal` in the memory of all calls (`memory_total`),
    /// until the returned value is dropped. `None` if no room is left and this result must be
    /// dropped. If room runs out later and the client has made no `progress` for two seconds, the
    /// host may call `end`, which should end the connection.
    #[must_use]
    pub fn unread(
        &self,
        principal: &str,
        bytes: u64,
        progress: &ReadProgress,
        end: impl Fn() + Send + Sync + 'static,
    ) -> Option<UnreadResult> {
        let admission = lock(&self.shared.admission).clone();
        let lease = match admission {
            Some(admission) => Some(admission.unread(principal, bytes, progress, Box::new(end))?),
            // No host has been built.
            None => None,
        };
        Some(UnreadResult { _lease: lease })
    }

    /// Returns a reader of the events of calls of all hosts of this state from now on: see
    /// [`Host::events`](crate::Host::events).
    pub fn events(&self, filter: EventFilter) -> Events {
        self.shared.events.events(filter)
    }

    /// How many events of this state's hosts were lost because their readers lagged.
    pub fn events_lost(&self) -> u64 {
        self.shared.events.lost()
    }
}

/// A result that its client has not read, counted in the memory of all calls: see
/// [`SharedState::unread`].
#[derive(Debug)]
pub struct UnreadResult {
    _lease: Option<Arc<MemoryLease>>,
}

/// The engine of one host, which is made at first use.
pub(crate) struct HostEngine {
    pub(crate) shared_state: SharedState,
    pub(crate) admission: Arc<Admission>,
    pub(crate) profile: EngineProfile,
    pub(crate) made: OnceLock<Arc<Ready>>,
}

impl HostEngine {
    /// Returns the engine. The first call takes some milliseconds.
    pub(crate) fn get(&self) -> Result<&Arc<Ready>, HostError> {
        if let Some(ready) = self.made.get() {
            return Ok(ready);
        }
        let ready = self.shared_state.ready(&self.admission, &self.profile)?;
        Ok(self.made.get_or_init(|| ready))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_parted_with_is_withdrawn_alone_or_with_all_the_rest() {
        let shared_state = SharedState::new();
        let before = shared_state.withdrawal("a");
        assert!(Arc::ptr_eq(&before, &shared_state.withdrawal("a")));
        shared_state.part();
        let after = shared_state.withdrawal("a");
        assert!(!Arc::ptr_eq(&before, &after));
        shared_state.withdraw_earlier("parted");
        assert_eq!(
            (before.withdrawn(), after.withdrawn()),
            (Some("parted"), None)
        );
        // If no new host replaces the old ones, a withdrawal affects earlier and later hosts.
        shared_state.part();
        let last = shared_state.withdrawal("a");
        assert!(shared_state.withdraw("a", "revoked"));
        assert_eq!(
            (after.withdrawn(), last.withdrawn()),
            (Some("revoked"), Some("revoked"))
        );
    }

    #[test]
    fn hosts_of_the_same_limits_share_an_engine_and_others_have_their_own() {
        let shared_state = SharedState::new();
        let ready = |limits: &Limits| {
            let profile = EngineProfile::for_limits(limits);
            let ready = shared_state.ready(&shared_state.admission(limits), &profile);
            ready.expect("an engine")
        };
        let limits = Limits {
            concurrency: 2,
            ..Limits::default()
        };
        let first = ready(&limits);
        assert!(Arc::ptr_eq(&first, &ready(&limits)));
        // The same number of slots, but for another admission.
        let queue = Limits {
            queue: limits.queue + 1,
            ..limits.clone()
        };
        let other = ready(&queue);
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&other, &ready(&queue)));
        // The same admission, but slots of another size.
        let table = Limits {
            table_elements: 100,
            ..queue.clone()
        };
        assert!(!Arc::ptr_eq(&other, &ready(&table)));
    }
}
