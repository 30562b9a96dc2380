//! Places in the memory of this process, and the bundles that its hosts serve.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::Semaphore;
use toolward_support::helper::lock;

use super::Local;
use crate::BoxFuture;
use crate::error::StateError;
use crate::leases::{
    CallPlace, Leases, PlaceLimits, PlaceReply, Places, PlacesOf, QueueFull, ServedBundles,
    Withdrawal,
};

/// The number of each place for a running call, and of each place in the queue.
const RUNNING: u64 = 0;
const WAITING: u64 = 1;

/// Creates places that no other process shares, for resources that each process has separately.
pub fn places_of_process(limits: PlaceLimits) -> Arc<dyn Places> {
    Arc::new(LocalPlaces {
        running: Semaphore::new(limits.running.max(1) as usize),
        waiting: AtomicU32::new(0),
        queue: limits.waiting,
    })
}

#[derive(Debug)]
struct LocalPlaces {
    running: Semaphore,
    waiting: AtomicU32,
    queue: u32,
}

impl LocalPlaces {
    fn wait(self: Arc<Self>, most: u32) -> Result<CallPlace, QueueFull> {
        let more = |now: u32| (now < most).then(|| now.saturating_add(1));
        let waits = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        match waits {
            Ok(_before) => Ok(CallPlace::new(self, WAITING)),
            Err(waiting) => Err(QueueFull { waiting }),
        }
    }
}

impl Places for LocalPlaces {
    fn try_enter(self: Arc<Self>) -> Option<CallPlace> {
        self.running.try_acquire().ok()?.forget();
        Some(CallPlace::new(self, RUNNING))
    }

    fn enter(
        self: Arc<Self>,
        bounded: bool,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<PlaceReply, StateError>> {
        Box::pin(async move {
            if let Some(place) = self.clone().try_enter() {
                return Ok(PlaceReply::Entered(place));
            }
            let _waits = match bounded.then(|| self.clone().wait(self.queue)).transpose() {
                Ok(place) => place,
                Err(full) => return Ok(PlaceReply::Full(full)),
            };
            let free = self.running.acquire();
            let free = match deadline {
                None => free.await,
                Some(deadline) => tokio::time::timeout_at(deadline.into(), free)
                    .await
                    .map_err(|_elapsed| StateError::Late)?,
            };
            free.map_err(|closed| StateError::Failed(closed.into()))?
                .forget();
            Ok(PlaceReply::Entered(CallPlace::new(self.clone(), RUNNING)))
        })
    }

    fn reserve(self: Arc<Self>) -> Result<CallPlace, QueueFull> {
        let free = u32::try_from(self.running.available_permits()).unwrap_or(u32::MAX);
        let most = self.queue.saturating_add(free);
        self.wait(most)
    }

    fn release(&self, number: u64) {
        match number {
            WAITING => {
                self.waiting.fetch_sub(1, Ordering::AcqRel);
            }
            _ => self.running.add_permits(1),
        }
    }
}

/// The bundles that are served.
#[derive(Default)]
pub(super) struct Withdrawals {
    /// The withdrawals of current hosts, by the digest of each bundle's manifest.
    current: HashMap<String, Weak<Withdrawal>>,
    /// The withdrawals of hosts before the last [`Leases::part`].
    earlier: Vec<Weak<Withdrawal>>,
}

impl Leases for Local {
    /// Returns new places each time, so the hosts of this process must share the returned object.
    fn places(&self, _of: PlacesOf<'_>, limits: PlaceLimits) -> Arc<dyn Places> {
        places_of_process(limits)
    }

    fn watch(&self, bundle: &str) -> Arc<Withdrawal> {
        let withdrawals = &mut lock(&self.served).current;
        let known = withdrawals.get(bundle).and_then(Weak::upgrade);
        if let Some(withdrawal) = known.filter(|withdrawal| withdrawal.withdrawn().is_none()) {
            return withdrawal;
        }
        withdrawals.retain(|_, withdrawal| withdrawal.strong_count() > 0);
        let withdrawal = Arc::new(Withdrawal::new(bundle));
        withdrawals.insert(bundle.to_owned(), Arc::downgrade(&withdrawal));
        withdrawal
    }

    fn withdraw(&self, bundles: ServedBundles<'_>, reason: &str) -> bool {
        let mut withdrawals = lock(&self.served);
        let earlier = match bundles {
            ServedBundles::Earlier => std::mem::take(&mut withdrawals.earlier),
            ServedBundles::One(_) | ServedBundles::All => withdrawals.earlier.clone(),
        };
        let current = withdrawals.current.values();
        let current = current.filter(|_| bundles != ServedBundles::Earlier);
        let all = earlier.iter().chain(current).filter_map(Weak::upgrade);
        let meant = all.filter(|withdrawal| match bundles {
            ServedBundles::One(bundle) => withdrawal.bundle() == bundle,
            ServedBundles::Earlier | ServedBundles::All => true,
        });
        meant.fold(false, |any, withdrawal| withdrawal.withdraw(reason) | any)
    }

    fn part(&self) {
        let mut withdrawals = lock(&self.served);
        let current = std::mem::take(&mut withdrawals.current);
        withdrawals.earlier.extend(current.into_values());
        withdrawals.earlier.retain(|one| one.strong_count() > 0);
    }
}
