//! Counts what a call uses, against its own limits and the limits of the calls that contain it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use toolward_policy::CallLimits;

use crate::error::{Limit, LimitKind};

/// Requests and bytes of a call. Clones share everything.
///
/// ```
/// use std::sync::Arc;
/// use std::time::{Duration, Instant};
/// use toolward_egress::{Meter, NoSecrets, Rules, TransportSettings, Usage};
/// use toolward_policy::CallLimits;
///
/// // Two calls share 100 requests.
/// let limits = CallLimits { http_requests_total: 100, ..CallLimits::default() };
/// let budget = Meter::new(&limits, None);
/// let egress = TransportSettings::default().build().egress("acme", Arc::new(Rules::default()));
/// let deadline = Instant::now() + Duration::from_secs(30);
/// let first = egress.call(limits.clone(), deadline, Some(&budget), Arc::new(NoSecrets));
/// let second = egress.call(limits, deadline, Some(&budget), Arc::new(NoSecrets));
/// assert_eq!(budget.usage(), Usage::default());
/// ```
#[derive(Debug, Clone)]
pub struct Meter(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    requests: Count,
    bytes: Count,
    /// The limit that the first refused bytes exceeded.
    over: OnceLock<Limit>,
    /// The meter of the call that contains this call.
    outer: Option<Meter>,
}

#[derive(Debug)]
struct Count {
    used: AtomicU64,
    most: u64,
}

impl Count {
    fn new(most: u64) -> Count {
        let used = AtomicU64::new(0);
        Count { used, most }
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

/// The usage so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests, including refused requests and requests of nested calls.
    pub requests: u64,
    /// Bytes of heads and bodies in both directions, without TLS.
    pub bytes: u64,
}

impl Meter {
    /// Creates a meter of requests and bytes, for one call or for several calls that share it as
    /// their outer meter ([`crate::Egress::call`]).
    pub fn new(limits: &CallLimits, outer: Option<Meter>) -> Meter {
        Meter(Arc::new(Counts {
            requests: Count::new(limits.http_requests_total),
            bytes: Count::new(limits.egress_bytes),
            over: OnceLock::new(),
            outer,
        }))
    }

    /// The usage so far.
    pub fn usage(&self) -> Usage {
        Usage {
            requests: self.0.requests.used(),
            bytes: self.0.bytes.used(),
        }
    }

    /// Counts a request. Requests are also refused once bytes were refused.
    pub(crate) fn request(&self) -> Result<(), Limit> {
        self.charge(LimitKind::RequestsTotal, 1, |counts| &counts.requests)?;
        let over = self.levels().find_map(|counts| counts.over.get().copied());
        over.map_or(Ok(()), Err)
    }

    pub(crate) fn bytes(&self, bytes: u64) -> Result<(), Limit> {
        self.charge(LimitKind::TotalBytes, bytes, |counts| &counts.bytes)
    }

    /// Checks whether `bytes` more would fit, without counting them. If not, the call sends no more
    /// requests.
    pub(crate) fn fits(&self, bytes: u64) -> Result<(), Limit> {
        let check = |counts: &Counts| {
            let used = counts.bytes.used().saturating_add(bytes);
            counts.check(LimitKind::TotalBytes, used, counts.bytes.most)
        };
        self.levels().try_for_each(check)
    }

    /// This meter's counts, and the counts of the calls that contain it.
    fn levels(&self) -> impl Iterator<Item = &Counts> {
        std::iter::successors(Some(&*self.0), |counts| {
            counts.outer.as_ref().map(|outer| &*outer.0)
        })
    }

    /// Counts `amount` at every level, even if it exceeds the limit.
    fn charge(
        &self,
        kind: LimitKind,
        amount: u64,
        count: fn(&Counts) -> &Count,
    ) -> Result<(), Limit> {
        let mut result = Ok(());
        for counts in self.levels() {
            let Count { used, most } = count(counts);
            let used = used.fetch_add(amount, Ordering::Relaxed);
            let used = used.saturating_add(amount);
            result = result.and(counts.check(kind, used, *most));
        }
        result
    }
}

impl Counts {
    fn check(&self, kind: LimitKind, used: u64, allowed: u64) -> Result<(), Limit> {
        let checked = Limit::check(kind, used, allowed);
        if let Err(limit) = checked
            && kind == LimitKind::TotalBytes
        {
            self.over.get_or_init(|| limit);
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(http_requests_total: u64, egress_bytes: u64, outer: Option<Meter>) -> Meter {
        let limits = CallLimits {
            http_requests_total,
            egress_bytes,
            ..CallLimits::default()
        };
        Meter::new(&limits, outer)
    }

    #[test]
    fn what_a_nested_call_uses_counts_against_its_root() {
        let root = meter(3, 100, None);
        let nested = meter(10, 1000, Some(root.clone()));
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

    #[test]
    fn after_the_first_bytes_that_do_not_fit_no_request_passes() {
        for announced in [false, true] {
            let root = meter(10, 100, None);
            let nested = meter(10, 1000, Some(root.clone()));
            nested.request().unwrap();
            let refused = if announced {
                nested.fits(101)
            } else {
                nested.bytes(101)
            };
            assert!(refused.is_err());
            assert_eq!(nested.request(), refused);
            assert_eq!(root.request(), refused);
        }
    }

    #[test]
    fn what_a_nested_call_is_refused_counts_against_its_root_and_does_not_end_it() {
        let root = meter(10, 100, None);
        let nested = meter(10, 50, Some(root.clone()));
        nested.bytes(60).unwrap_err();
        assert!(nested.request().is_err());
        assert_eq!(root.usage().bytes, 60);
        root.request().unwrap();
    }
}
