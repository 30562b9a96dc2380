//! Connections: how many there may be, and how long one may take nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

/// Counts connections, overall and by address.
#[derive(Debug)]
pub(super) struct Counts {
    most: usize,
    most_by_address: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection that is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    counts: Arc<Counts>,
    address: IpAddr,
}

impl Counts {
    /// Counts up to these numbers.
    pub(super) fn new(most: usize, most_by_address: usize) -> Self {
        Self {
            most,
            most_by_address,
            open: Mutex::default(),
        }
    }

    /// Counts a connection; `None` if there are enough.
    pub(super) fn count(self: &Arc<Self>, address: IpAddr) -> Option<Counted> {
        let address = network(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        if open.all >= self.most || here >= self.most_by_address {
            return None;
        }
        open.all = open.all.saturating_add(1);
        open.by_address.insert(address, here.saturating_add(1));
        Some(Counted {
            counts: Arc::clone(self),
            address,
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self
            .counts
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        open.all = open.all.saturating_sub(1);
        if let Entry::Occupied(mut entry) = open.by_address.entry(self.address) {
            if *entry.get() <= 1 {
                entry.remove();
            } else {
                *entry.get_mut() = entry.get().saturating_sub(1);
            }
        }
    }
}

/// What counts as one address: a client has a whole /64 network of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

/// A connection that breaks when its client takes nothing for a while although
/// something waits to be sent.
pub(super) struct Stalling {
    stream: TcpStream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    /// Watches a connection.
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waiting: None,
        }
    }

    fn watched<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(context, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watched(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_room_for_others() {
        let counts = Arc::new(Counts::new(3, 2));
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = counts.count(address("192.0.2.1"));
        let second = counts.count(address("::ffff:192.0.2.1"));
        assert!(first.is_some() && second.is_some());
        assert!(counts.count(address("192.0.2.1")).is_none());
        let third = counts.count(address("2001:db8::1"));
        assert!(third.is_some());
        assert!(counts.count(address("192.0.2.3")).is_none());
        drop(first);
        assert!(counts.count(address("192.0.2.1")).is_some());
        drop((second, third));
        let open = counts.open.lock().unwrap();
        assert_eq!((open.all, open.by_address.len()), (0, 0));
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let counts = Arc::new(Counts::new(3, 1));
        let held = counts.count("2001:db8::1".parse().unwrap());
        assert!(held.is_some());
        assert!(counts.count("2001:db8::2".parse().unwrap()).is_none());
        assert!(counts.count("2001:db8:0:1::2".parse().unwrap()).is_some());
    }
}
