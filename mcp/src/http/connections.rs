//! The open connections: how many there may be, and which one is dropped for another. A
//! connection that has shown no valid token costs its client nothing, so such ones are
//! dropped.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::HttpLimits;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    most_per_address: usize,
    most_per_principal: usize,
    newcomer_within: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of the next connection.
    next: u64,
    all: usize,
    by_address: HashMap<IpAddr, usize>,
    by_principal: HashMap<Arc<str>, usize>,
    /// Connections on which no valid token was shown, by age: numbers only grow.
    newcomers: BTreeMap<u64, Newcomer>,
    /// The others, with the principal in whose share they count.
    proven: HashMap<u64, Option<Arc<str>>>,
}

#[derive(Debug)]
struct Newcomer {
    address: IpAddr,
    since: Instant,
    leave: oneshot::Sender<()>,
}

/// A connection that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    place: Arc<ConnectionPlace>,
    address: IpAddr,
    left: oneshot::Receiver<()>,
}

/// A connection as its requests see it. Holding it does not keep the connection
/// counted: a call may outlive its connection.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
    used: AtomicBool,
    proven: AtomicBool,
    last: AtomicBool,
    /// Cancelled to end it when its client does not read.
    pub(super) unread: CancellationToken,
}

impl Connections {
    /// No connections yet.
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            most: limits.connections,
            most_per_address: limits.connections_per_address,
            most_per_principal: limits.connections_per_principal,
            newcomer_within: limits.newcomer_within,
            open: Mutex::default(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection, for which another one may have to leave; `None` if there
    /// are enough and none may be dropped.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Counted> {
        let address = network(address);
        let mut open = self.open();
        if open.all >= self.most / 2 {
            open.drop_slow(None, now, self.newcomer_within);
        } else if open.from(address) >= self.most_per_address / 2 {
            open.drop_slow(Some(address), now, self.newcomer_within);
        }
        if open.from(address) >= self.most_per_address && !open.make_room(Some(address)) {
            return None;
        }
        if open.all >= self.most && !open.make_room(None) {
            return None;
        }
        let number = open.next;
        open.next = number.saturating_add(1);
        open.all = open.all.saturating_add(1);
        let here = open.by_address.entry(address).or_default();
        *here = here.saturating_add(1);
        let (leave, left) = oneshot::channel();
        let newcomer = Newcomer {
            address,
            since: now,
            leave,
        };
        open.newcomers.insert(number, newcomer);
        let place = ConnectionPlace {
            connections: Arc::clone(self),
            number,
            used: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            last: AtomicBool::new(false),
            unread: CancellationToken::new(),
        };
        Some(Counted {
            place: Arc::new(place),
            address,
            left,
        })
    }
}

impl Open {
    fn from(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or(0)
    }

    /// Drops the newcomers, of one address or of all, that are older than this.
    fn drop_slow(&mut self, address: Option<IpAddr>, now: Instant, within: Duration) {
        let is_slow = |newcomer: &&Newcomer| now.duration_since(newcomer.since) >= within;
        let slow: Vec<u64> = self
            .newcomers
            .iter()
            .take_while(|(_, newcomer)| is_slow(newcomer))
            .filter(|(_, newcomer)| address.is_none_or(|one| one == newcomer.address))
            .map(|(number, _)| *number)
            .collect();
        for number in slow {
            self.drop_newcomer(number);
        }
    }

    /// Drops one newcomer, of one address or of any. It is one of the older half: what
    /// has just come has time to show its token, however many come after it. Among
    /// these it is chosen at random, so that a client can't predict how to stay.
    fn make_room(&mut self, address: Option<IpAddr>) -> bool {
        let candidates = || {
            self.newcomers
                .iter()
                .filter(|(_, newcomer)| address.is_none_or(|one| one == newcomer.address))
                .map(|(number, _)| *number)
        };
        let older = candidates().count().div_ceil(2);
        // Without random bytes it is the oldest.
        let random = getrandom::u32().unwrap_or(0);
        let drawn = usize::try_from(random).unwrap_or(0).checked_rem(older);
        let Some(number) = drawn.and_then(|drawn| candidates().nth(drawn)) else {
            return false;
        };
        self.drop_newcomer(number);
        true
    }

    fn drop_newcomer(&mut self, number: u64) {
        if let Some(newcomer) = self.newcomers.remove(&number) {
            self.left(newcomer.address);
            // It may be ending just now.
            let _ = newcomer.leave.send(());
        }
    }

    fn left(&mut self, address: IpAddr) {
        self.all = self.all.saturating_sub(1);
        fewer(self.by_address.entry(address));
    }
}

fn fewer<K>(entry: Entry<'_, K, usize>) {
    if let Entry::Occupied(mut entry) = entry {
        if *entry.get() <= 1 {
            entry.remove();
        } else {
            *entry.get_mut() = entry.get().saturating_sub(1);
        }
    }
}

impl Counted {
    /// What requests see of it.
    pub(super) fn place(&self) -> &Arc<ConnectionPlace> {
        &self.place
    }

    /// Waits until it has to make room, for ever if it never has to.
    pub(super) async fn left(&mut self) {
        if (&mut self.left).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.place.connections.open();
        let number = self.place.number;
        if open.newcomers.remove(&number).is_some() {
            open.left(self.address);
        } else if let Some(principal) = open.proven.remove(&number) {
            open.left(self.address);
            if let Some(principal) = principal {
                fewer(open.by_principal.entry(principal));
            }
        }
    }
}

impl ConnectionPlace {
    /// A request on it has shown a valid token of this principal: from now on it makes
    /// room for no other. Where its principal's share is taken by others, the answer
    /// is the last one on it.
    pub(super) fn prove(&self, principal: &Arc<str>) {
        if self.proven.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut open = self.connections.open();
        if open.newcomers.remove(&self.number).is_none() {
            // It had to leave just now.
            return;
        }
        let count = open.by_principal.entry(Arc::clone(principal)).or_default();
        let kept = *count < self.connections.most_per_principal;
        if kept {
            *count = count.saturating_add(1);
        }
        let principal = kept.then(|| Arc::clone(principal));
        open.proven.insert(self.number, principal);
        self.last.store(!kept, Ordering::Relaxed);
    }

    /// A request came on it.
    pub(super) fn used(&self) {
        self.used.store(true, Ordering::Relaxed);
    }

    /// Whether it has carried a request.
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether its next answer is its last.
    pub(super) fn is_last(&self) -> bool {
        self.last.load(Ordering::Relaxed)
    }
}

/// What counts as one address. A process of this machine has all of 127.0.0.0/8, and
/// ::1 besides. A client on IPv6 has a /64 to itself, the smallest network that is
/// given to a site (RFC 6177), and takes any address of it that it likes.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

#[cfg(test)]
mod tests;
