//! What a call has used, counted against its own limits and those of the call
//! that it is nested in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Limit, LimitKind};

/// Requests and bytes of a call. Clones share everything.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
    max_requests: u64,
    max_bytes: u64,
    /// The meter of the call that this one is nested in.
    outer: Option<Meter>,
}

/// What was used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests, refused ones and those of nested calls included.
    pub requests: u64,
    /// Bytes of heads and bodies, both ways, without TLS.
    pub bytes: u64,
}

impl Meter {
    /// A budget of requests and bytes that several calls share
    /// ([`crate::Egress::call_within`]).
    #[must_use]
    pub fn budget(max_requests: u64, max_bytes: u64) -> Meter {
        Meter::new(max_requests, max_bytes, None)
    }

    pub(crate) fn new(max_requests: u64, max_bytes: u64, outer: Option<Meter>) -> Meter {
        Meter(Arc::new(Counts {
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            max_requests,
            max_bytes,
            outer,
        }))
    }

    /// What was used so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            requests: self.0.requests.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn request(&self) -> Result<(), Limit> {
        self.charge(
            LimitKind::RequestsTotal,
            1,
            |counts| &counts.requests,
            |counts| counts.max_requests,
        )
    }

    pub(crate) fn bytes(&self, bytes: u64) -> Result<(), Limit> {
        self.charge(
            LimitKind::TotalBytes,
            bytes,
            |counts| &counts.bytes,
            |counts| counts.max_bytes,
        )
    }

    /// Whether `bytes` more would fit.
    pub(crate) fn fits(&self, bytes: u64) -> Result<(), Limit> {
        let used = self.usage().bytes.saturating_add(bytes);
        if used > self.0.max_bytes {
            return Err(Limit {
                kind: LimitKind::TotalBytes,
                used,
                allowed: self.0.max_bytes,
            });
        }
        self.0
            .outer
            .as_ref()
            .map_or(Ok(()), |outer| outer.fits(bytes))
    }

    fn charge(
        &self,
        kind: LimitKind,
        amount: u64,
        counter: fn(&Counts) -> &AtomicU64,
        maximum: fn(&Counts) -> u64,
    ) -> Result<(), Limit> {
        let mut meter = self;
        loop {
            let before = counter(&meter.0).fetch_add(amount, Ordering::Relaxed);
            let (used, allowed) = (before.saturating_add(amount), maximum(&meter.0));
            if used > allowed {
                return Err(Limit {
                    kind,
                    used,
                    allowed,
                });
            }
            match &meter.0.outer {
                Some(outer) => meter = outer,
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_nested_call_uses_counts_against_its_root() {
        let root = Meter::new(3, 100, None);
        let nested = Meter::new(10, 1000, Some(root.clone()));
        root.request().unwrap();
        nested.request().unwrap();
        nested.request().unwrap();
        assert_eq!(root.usage().requests, 3);
        let limit = nested.request().unwrap_err();
        assert_eq!((limit.kind, limit.allowed), (LimitKind::RequestsTotal, 3));
        assert!(nested.fits(101).is_err());
        assert!(nested.fits(100).is_ok());
        nested.bytes(60).unwrap();
        assert!(root.bytes(41).is_err());
    }
}
