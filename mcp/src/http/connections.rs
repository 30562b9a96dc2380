//! The open connections: how many there may be, and which connection is dropped for another. Only
//! connections without a valid token are dropped, since their clients can replace them at no cost.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolward_support::helper::lock;

use super::HttpLimits;

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    limits: HttpLimits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of the next connection.
    next: u64,
    /// Ordered by age, since numbers only grow.
    all: BTreeMap<u64, OpenConnection>,
}

#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    since: Instant,
    /// Ends a newcomer: a connection that has not shown a valid token. `None` once it has shown a
    /// token.
    leave: Option<oneshot::Sender<()>>,
    /// The principal in whose share it counts.
    principal: Option<Arc<str>>,
}

/// A connection that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    /// The part of it that requests see.
    pub(super) place: Arc<ConnectionPlace>,
    left: oneshot::Receiver<()>,
}

/// A connection as its requests see it. Holding it does not keep the connection
/// counted: a call may outlive its connection.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
    /// Whether it has carried a request.
    pub(super) was_used: AtomicBool,
    proven: AtomicBool,
    /// Whether its next answer is its last.
    pub(super) is_last: AtomicBool,
    /// Cancelled to end the connection when its client does not read.
    pub(super) unread: CancellationToken,
}

impl Connections {
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            limits: limits.clone(),
            open: Mutex::default(),
        })
    }

    /// Counts a connection, and drops another one for it if necessary. Returns `None` if the limit
    /// is reached and no connection may be dropped.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Counted> {
        let address = network(address);
        let mut open = lock(&self.open);
        let (most, most_here) = (self.limits.connections, self.limits.connections_per_address);
        let within = self.limits.newcomer_within;
        if open.all.len() >= most / 2 {
            open.drop_slow(None, now, within);
        } else if open.from(address) >= most_here / 2 {
            open.drop_slow(Some(address), now, within);
        }
        if open.from(address) >= most_here && !open.make_room(Some(address)) {
            return None;
        }
        if open.all.len() >= most && !open.make_room(None) {
            return None;
        }
        let number = open.next;
        open.next = number.saturating_add(1);
        let (leave, left) = oneshot::channel();
        let newcomer = OpenConnection {
            address,
            since: now,
            leave: Some(leave),
            principal: None,
        };
        open.all.insert(number, newcomer);
        let place = ConnectionPlace {
            connections: Arc::clone(self),
            number,
            was_used: AtomicBool::new(false),
            proven: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            unread: CancellationToken::new(),
        };
        Some(Counted {
            place: Arc::new(place),
            left,
        })
    }
}

impl Open {
    fn from(&self, address: IpAddr) -> usize {
        let here = |one: &&OpenConnection| one.address == address;
        self.all.values().filter(here).count()
    }

    /// Returns the newcomers of one address, or of all addresses, the oldest first.
    fn newcomers(&self, address: Option<IpAddr>) -> impl Iterator<Item = (u64, Instant)> {
        let newcomers = self.all.iter().filter(move |(_, one)| {
            one.leave.is_some() && address.is_none_or(|address| address == one.address)
        });
        newcomers.map(|(number, one)| (*number, one.since))
    }

    /// Drops the newcomers of one address, or of all, that have been connected for at least
    /// `within`.
    fn drop_slow(&mut self, address: Option<IpAddr>, now: Instant, within: Duration) {
        let slow = self.newcomers(address);
        let slow = slow.take_while(|(_, since)| now.duration_since(*since) >= within);
        let slow: Vec<u64> = slow.map(|(number, _)| number).collect();
        for number in slow {
            self.drop_newcomer(number);
        }
    }

    /// Drops one newcomer of one address, or of any address. It is chosen at random among the older
    /// half. So a new connection has time to show its token, however many connections follow, and a
    /// client can't predict which connection stays.
    fn make_room(&mut self, address: Option<IpAddr>) -> bool {
        let older = self.newcomers(address).count().div_ceil(2);
        // Without random bytes the oldest is dropped.
        let random = getrandom::u32().unwrap_or(0);
        let drawn = usize::try_from(random).unwrap_or(0).checked_rem(older);
        let Some((number, _)) = drawn.and_then(|drawn| self.newcomers(address).nth(drawn)) else {
            return false;
        };
        self.drop_newcomer(number);
        true
    }

    fn drop_newcomer(&mut self, number: u64) {
        if let Some(leave) = self.all.remove(&number).and_then(|newcomer| newcomer.leave) {
            // The connection may be ending already.
            let _ = leave.send(());
        }
    }
}

impl Counted {
    /// Waits until this connection must make room for another; forever if it never must.
    pub(super) async fn left(&mut self) {
        if (&mut self.left).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        lock(&self.place.connections.open)
            .all
            .remove(&self.place.number);
    }
}

impl ConnectionPlace {
    /// Notes that a request on this connection has shown a valid token of this principal. From now
    /// on the connection is not dropped for another one. If the principal has its share of
    /// connections already, this one closes after the answer.
    pub(super) fn prove(&self, principal: &Arc<str>) {
        if self.proven.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut open = lock(&self.connections.open);
        let of_principal = |one: &&OpenConnection| one.principal.as_ref() == Some(principal);
        let count = open.all.values().filter(of_principal).count();
        let kept = count < self.connections.limits.connections_per_principal;
        // If it is missing, it has just been dropped.
        if let Some(own) = open.all.get_mut(&self.number) {
            own.leave = None;
            own.principal = kept.then(|| Arc::clone(principal));
            self.is_last.store(!kept, Ordering::Relaxed);
        }
    }
}

/// Returns the network that counts as one address. A process of this machine may use all of
/// 127.0.0.0/8, and ::1. A client on IPv6 may use any address of its /64, the smallest network that
/// a site is given (RFC 6177).
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
