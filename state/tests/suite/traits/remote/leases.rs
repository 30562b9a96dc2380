//! Leases of the second implementation: the server counts, and a client without an answer returns
//! the places that it may have taken.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolward_state::{
    BoxFuture, CallPlace, Leases, PlaceLimits, PlaceReply, Places, PlacesOf, QueueFull,
    ServedBundles, StateError, Withdrawal, detach,
};

use super::{Lost, Remote};

const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The number of the last lease, of all clients.
static LAST: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
pub(super) struct StoredLeases {
    places: HashMap<String, StoredPlaces>,
    /// The withdrawn bundles in order, with the reasons.
    withdrawn: Vec<(String, String)>,
}

/// Leases by their number: false while they wait.
#[derive(Default)]
struct StoredPlaces(BTreeMap<u64, bool>);

/// The bundles that a client serves, each with the number of withdrawals that were known when
/// serving started.
#[derive(Default)]
pub(super) struct Watched {
    current: Vec<(usize, Arc<Withdrawal>)>,
    earlier: Vec<Arc<Withdrawal>>,
}

impl Leases for Remote {
    fn places(&self, of: PlacesOf<'_>, limits: PlaceLimits) -> Arc<dyn Places> {
        Arc::new(RemotePlaces {
            remote: self.clone(),
            name: format!("{of:?}"),
            limits,
        })
    }

    fn watch(&self, bundle: &str) -> Arc<Withdrawal> {
        let mut watched = self.watched();
        let mut current = watched.current.iter().map(|(_, one)| one);
        let known = current.find(|one| one.bundle() == bundle && one.withdrawn().is_none());
        if let Some(known) = known {
            return known.clone();
        }
        let withdrawal = Arc::new(Withdrawal::new(bundle));
        let known = self.lock().leases.withdrawn.len();
        watched.current.push((known, withdrawal.clone()));
        drop(watched);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(follow(self.clone(), known, withdrawal.clone()));
        }
        withdrawal
    }

    fn withdraw(&self, bundles: ServedBundles<'_>, reason: &str) -> bool {
        let watched = self.watched();
        let current = watched.current.iter().map(|(_, one)| one);
        let all = watched.earlier.iter().chain(current);
        let meant: Vec<_> = match bundles {
            ServedBundles::One(bundle) => all.filter(|one| one.bundle() == bundle).collect(),
            ServedBundles::Earlier => watched.earlier.iter().collect(),
            ServedBundles::All => all.collect(),
        };
        let any = meant
            .iter()
            .fold(false, |any, one| one.withdraw(reason) | any);
        if let ServedBundles::One(bundle) = bundles {
            let told = (bundle.to_owned(), reason.to_owned());
            let own = self.clone();
            tokio::spawn(async move {
                let tell = |server: &mut super::Server| {
                    let withdrawn = &mut server.leases.withdrawn;
                    if !withdrawn.contains(&told) {
                        withdrawn.push(told.clone());
                    }
                };
                while own.send(in_time(), tell).await.is_err() {}
            });
        }
        any
    }

    fn part(&self) {
        let mut watched = self.watched();
        let current = std::mem::take(&mut watched.current);
        watched
            .earlier
            .extend(current.into_iter().map(|(_, one)| one));
    }
}

impl Remote {
    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls the server until a bundle was withdrawn or is no longer served.
async fn follow(remote: Remote, known: usize, withdrawal: Arc<Withdrawal>) {
    while withdrawal.withdrawn().is_none() && Arc::strong_count(&withdrawal) > 2 {
        let found = remote.send(in_time(), |server| {
            let later = server.leases.withdrawn.iter().skip(known);
            let mut own = later.filter(|(bundle, _)| bundle == withdrawal.bundle());
            own.next().map(|(_, reason)| reason.clone())
        });
        if let Ok(Some(reason)) = found.await {
            withdrawal.withdraw(&reason);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn in_time() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

struct RemotePlaces {
    remote: Remote,
    name: String,
    limits: PlaceLimits,
}

impl fmt::Debug for RemotePlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemotePlaces({})", self.name)
    }
}

/// An unanswered request, or a call that no longer waits. On drop, returns the place that it may
/// have.
struct Unsettled(Option<(Arc<RemotePlaces>, u64)>);

impl Drop for Unsettled {
    fn drop(&mut self) {
        if let Some((places, number)) = self.0.take() {
            places.release(number);
        }
    }
}

impl Places for RemotePlaces {
    /// Without asking the server, no place is known to be free.
    fn try_enter(self: Arc<Self>) -> Option<CallPlace> {
        None
    }

    fn enter(
        self: Arc<Self>,
        bounded: bool,
        deadline: Option<Instant>,
    ) -> BoxFuture<'static, Result<PlaceReply, StateError>> {
        Box::pin(async move {
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let ends = deadline.unwrap_or_else(in_time);
            let mut unsettled = Unsettled(Some((self.clone(), number)));
            let limits = self.limits;
            loop {
                let entry = self.remote.send(ends, |server| {
                    let places = server.leases.places.entry(self.name.clone()).or_default();
                    places.enter(number, bounded, limits)
                });
                match entry.await {
                    Ok(Ok(true)) => break,
                    Ok(Ok(false)) => tokio::time::sleep(POLL_INTERVAL).await,
                    Ok(Err(full)) => return Ok(PlaceReply::Full(full)),
                    Err(Lost::Late) => return Err(StateError::Late),
                    Err(Lost::Unknown) if Instant::now() >= ends => return Err(StateError::Late),
                    Err(Lost::Unknown) => return Err(StateError::Unknown),
                }
            }
            unsettled.0 = None;
            Ok(PlaceReply::Entered(CallPlace::new(self.clone(), number)))
        })
    }

    fn reserve(self: Arc<Self>) -> Result<CallPlace, QueueFull> {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let mut server = self.remote.lock();
        let places = server.leases.places.entry(self.name.clone()).or_default();
        let waiting = places.waiting();
        let free = self.limits.running.saturating_sub(places.running());
        if waiting >= self.limits.waiting + free {
            return Err(QueueFull { waiting });
        }
        places.0.insert(number, false);
        drop(server);
        Ok(CallPlace::new(self, number))
    }

    fn release(&self, number: u64) {
        let (remote, name) = (self.remote.clone(), self.name.clone());
        detach(Box::pin(async move {
            let release = |server: &mut super::Server| {
                if let Some(places) = server.leases.places.get_mut(&name) {
                    places.0.remove(&number);
                }
            };
            while remote.send(in_time(), release).await.is_err() {}
        }));
    }
}

impl StoredPlaces {
    fn running(&self) -> u32 {
        u32::try_from(self.0.values().filter(|runs| **runs).count()).unwrap()
    }

    fn waiting(&self) -> u32 {
        u32::try_from(self.0.values().filter(|runs| !**runs).count()).unwrap()
    }

    /// Returns whether a call runs now. Otherwise it waits or is refused.
    fn enter(
        &mut self,
        number: u64,
        bounded: bool,
        limits: PlaceLimits,
    ) -> Result<bool, QueueFull> {
        if self.0.get(&number) == Some(&true) {
            return Ok(true);
        }
        let first = self.0.iter().find(|(_, runs)| !**runs).map(|(one, _)| *one);
        let is_next = first.is_none_or(|first| first >= number);
        if self.running() < limits.running && is_next {
            self.0.insert(number, true);
            return Ok(true);
        }
        let waiting = self.waiting();
        if bounded && !self.0.contains_key(&number) && waiting >= limits.waiting {
            return Err(QueueFull { waiting });
        }
        self.0.insert(number, false);
        Ok(false)
    }
}

/// The type of a field of [`Remote`].
pub(super) type SharedWatched = Arc<Mutex<Watched>>;
