//! What hosts that replace each other share: withdrawn bundles, admission, engine and
//! turns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::admission::Admission;
use crate::error::HostError;
use crate::sandbox::engine::{EngineProfile, Ready};
use crate::sandbox::turns::Turns;
use crate::validation_pool::ValidationPool;
use crate::withdrawal::Withdrawal;
use toolward_policy::Limits;

/// Ties hosts together of which each takes the place of the one before, while calls
/// that began there go on: a server that loads its bundles anew has one for all its
/// hosts. What is taken back by any of them is taken back from all, calls that wait
/// for an answer included, and calls count together against the limits on how many
/// run and wait.
///
/// Cheap to clone; clones are the same. A host that is given none has its own.
#[derive(Debug, Clone, Default)]
pub struct SharedState {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    withdrawals: Mutex<Withdrawals>,
    admission: Mutex<Option<Arc<Admission>>>,
    validation: Arc<ValidationPool>,
    turns: Arc<Turns>,
    /// The engine in whose slots the calls run that this admission lets in.
    ready: Mutex<Option<(Arc<Admission>, Ready)>>,
}

#[derive(Debug, Default)]
struct Withdrawals {
    /// By the digest of each bundle's manifest: the only withdrawal that may not be
    /// withdrawn.
    current: HashMap<String, Weak<Withdrawal>>,
    /// Those of hosts that were parted with.
    earlier: Vec<(String, Weak<Withdrawal>)>,
}

impl Withdrawals {
    /// All that there are, of one bundle or of all.
    fn of(&self, bundle: Option<&str>) -> impl Iterator<Item = Arc<Withdrawal>> {
        let earlier = self.earlier.iter().map(|(digest, one)| (digest, one));
        let all = self.current.iter().chain(earlier);
        let asked = all.filter(move |(digest, _)| bundle.is_none_or(|one| one == *digest));
        asked.filter_map(|(_, withdrawal)| withdrawal.upgrade())
    }
}

impl SharedState {
    /// One for hosts that are still to be made.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the bundle with this manifest digest (64 hex digits) no more, on none
    /// of the hosts that there are: see [`Host::withdraw`](crate::Host::withdraw). A
    /// host that is made later and is given the bundle serves it: whoever gives it
    /// has verified it anew. Calls of the hosts before stay refused. False if no such
    /// bundle was served.
    pub fn withdraw(&self, bundle: &str, reason: &str) -> bool {
        let withdrawals = self.withdrawals();
        let all = withdrawals.of(Some(bundle));
        all.fold(false, |any, withdrawal| withdrawal.withdraw(reason) | any)
    }

    /// [`SharedState::withdraw`] of all bundles.
    pub fn withdraw_all(&self, reason: &str) {
        for withdrawal in self.withdrawals().of(None) {
            withdrawal.withdraw(reason);
        }
    }

    /// Parts with the hosts that there are: for one that is made from now on no bundle
    /// is withdrawn, and [`SharedState::withdraw_earlier`] takes nothing from it.
    pub fn part(&self) {
        let mut withdrawals = self.withdrawals();
        let current = std::mem::take(&mut withdrawals.current);
        withdrawals.earlier.extend(current);
        withdrawals
            .earlier
            .retain(|(_, one)| one.strong_count() > 0);
    }

    /// [`SharedState::withdraw`] of all bundles of the hosts that were parted with.
    pub fn withdraw_earlier(&self, reason: &str) {
        let earlier = std::mem::take(&mut self.withdrawals().earlier);
        for withdrawal in earlier.iter().filter_map(|(_, one)| one.upgrade()) {
            withdrawal.withdraw(reason);
        }
    }

    /// The withdrawal of a bundle that is loaded now.
    pub(crate) fn withdrawal(&self, bundle: &str) -> Arc<Withdrawal> {
        let withdrawals = &mut self.withdrawals().current;
        let known = withdrawals.get(bundle).and_then(Weak::upgrade);
        if let Some(withdrawal) = known.filter(|withdrawal| withdrawal.withdrawn().is_none()) {
            return withdrawal;
        }
        withdrawals.retain(|_, withdrawal| withdrawal.strong_count() > 0);
        let withdrawal = Arc::new(Withdrawal::default());
        withdrawals.insert(bundle.to_owned(), Arc::downgrade(&withdrawal));
        withdrawal
    }

    /// The gates for calls under these limits. Under others than before, those that
    /// run already don't count.
    pub(crate) fn admission(&self, limits: &Limits) -> Arc<Admission> {
        let mut known = lock(&self.shared.admission);
        let admission = known
            .take()
            .filter(|admission| admission.is_by(limits))
            .unwrap_or_else(|| Arc::new(Admission::new(limits)));
        *known = Some(admission.clone());
        admission
    }

    /// The engine for calls that `admission` lets in. One that another admission
    /// fills may have no slot left.
    pub(crate) fn ready(
        &self,
        admission: &Arc<Admission>,
        profile: &EngineProfile,
    ) -> Result<Ready, HostError> {
        let mut known = lock(&self.shared.ready);
        if let Some((same, ready)) = &*known
            && Arc::ptr_eq(same, admission)
            && ready.profile == *profile
        {
            return Ok(ready.clone());
        }
        let ready = profile.ready()?;
        *known = Some((admission.clone(), ready.clone()));
        Ok(ready)
    }

    /// The turns of running guests on the processors.
    pub(crate) fn turns(&self) -> Arc<Turns> {
        self.shared.turns.clone()
    }

    /// The places for long checks.
    pub(crate) fn validation(&self) -> Arc<ValidationPool> {
        self.shared.validation.clone()
    }

    fn withdrawals(&self) -> MutexGuard<'_, Withdrawals> {
        lock(&self.shared.withdrawals)
    }
}

/// The engine of one host, made when it is first asked for.
pub(crate) struct HostEngine {
    shared_state: SharedState,
    admission: Arc<Admission>,
    profile: EngineProfile,
    made: OnceLock<Ready>,
}

impl HostEngine {
    pub(crate) fn new(
        shared_state: SharedState,
        admission: Arc<Admission>,
        profile: EngineProfile,
    ) -> Self {
        Self {
            shared_state,
            admission,
            profile,
            made: OnceLock::new(),
        }
    }

    pub(crate) fn profile(&self) -> &EngineProfile {
        &self.profile
    }

    /// The engine. The first time takes some milliseconds.
    pub(crate) fn get(&self) -> Result<&Ready, HostError> {
        if let Some(ready) = self.made.get() {
            return Ok(ready);
        }
        let ready = self.shared_state.ready(&self.admission, &self.profile)?;
        Ok(self.made.get_or_init(|| ready))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        // Where nothing came of it, those before are withdrawn like the others.
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
            ready.expect("an engine").linker
        };
        let limits = Limits {
            concurrency: 2,
            ..Limits::default()
        };
        let first = ready(&limits);
        assert!(Arc::ptr_eq(&first, &ready(&limits)));
        // As many slots, and others may fill them.
        let queue = Limits {
            queue: limits.queue + 1,
            ..limits.clone()
        };
        let other = ready(&queue);
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(Arc::ptr_eq(&other, &ready(&queue)));
        // The same admission, and slots of another size.
        let table = Limits {
            table_elements: 100,
            ..queue.clone()
        };
        assert!(!Arc::ptr_eq(&other, &ready(&table)));
    }
}
