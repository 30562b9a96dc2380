//! The key-value buckets of a call. A driver gives only the name of a bucket. The owner of the
//! bucket follows from the grant, and the principal from the call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolward_contract::capability::{Capability, Class};
use toolward_policy::{BucketGrant, LimitName, own};
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::violations::Violations;
use toolward_state::{Access, BucketScope, Buckets, Limits};

use super::{BucketError, BucketReply, BucketRequest};

/// The limits on buckets, and on a call's use of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BucketLimits {
    /// The limits of each bucket. Exceeding a limit is an error for the guest.
    pub(super) bucket: Limits,
    /// The most operations of a call. Fuel does not count the host's work, so exceeding this limit
    /// ends the call.
    pub(super) operations: u64,
    /// The most bytes of keys and values that a call reads and writes. Exceeding this limit ends
    /// the call, too.
    pub(super) bytes: u64,
}

impl BucketLimits {
    pub(super) fn of(limits: &CallLimits) -> Self {
        let mut own = Self::default();
        own.bucket.bucket_bytes = limits.bucket_bytes;
        own.bucket.bucket_keys = limits.bucket_keys;
        own
    }
}

impl Default for BucketLimits {
    fn default() -> Self {
        Self {
            bucket: Limits::default(),
            operations: own::BUCKET_OPERATIONS,
            bytes: own::BUCKET_TRAFFIC,
        }
    }
}

/// Counts the use of buckets by all attempts of a call and of its nested calls.
#[derive(Debug, Default)]
pub(crate) struct BucketCounters {
    operations: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// The buckets of one driver of a call.
pub(super) struct CallBuckets<'a> {
    pub(super) grants: &'a [BucketGrant],
    pub(super) store: Option<&'a dyn Buckets>,
    pub(super) principal: &'a str,
    pub(super) limits: BucketLimits,
    pub(super) counters: &'a BucketCounters,
    pub(super) deadline: Instant,
    pub(super) violations: &'a Violations,
}

/// The name that stands for all buckets in a grant. A grant by name takes precedence.
const ANY: &str = "*";

impl CallBuckets<'_> {
    /// Runs an operation of a driver.
    pub(super) async fn answer(&self, request: BucketRequest) -> Result<BucketReply, BucketError> {
        let BucketRequest { bucket, operation } = request;
        let (counter, allowed) = (&self.counters.operations, self.limits.operations);
        count(LimitName::BucketOperations, counter, 1, allowed)?;
        let Some(grant) = self.grant(&bucket) else {
            return Err(self.denied(&bucket));
        };
        let Some(store) = self.store else {
            tracing::warn!("a bucket is granted, and the host has no key-value store");
            let text = "the host has no key-value store".to_owned();
            return Err(BucketError::Failed(text));
        };
        if !grant.write && operation.writes() {
            return Err(self.denied(&bucket));
        }
        self.count_bytes(operation.bytes())?;
        let access = match grant.write {
            true => Access::Write,
            false => Access::Read,
        };
        let scope = BucketScope {
            owner: grant.owner.clone(),
            principal: self.principal.to_owned(),
            name: bucket,
            access,
            limits: self.limits.bucket,
        };
        let reply = store.operate(scope, operation, self.deadline).await?;
        self.count_bytes(reply.bytes())?;
        Ok(reply)
    }

    /// The grant for a bucket: the grant by its name, or else the grant of all buckets. The latter
    /// covers only names that a contract could declare.
    fn grant(&self, name: &str) -> Option<&BucketGrant> {
        let own = self.grants.iter().find(|grant| grant.name == name);
        own.filter(|_| name != ANY).or_else(|| {
            let any = self.grants.iter().find(|grant| grant.name == ANY)?;
            let declared = Capability::of(Class::Database, name).ok()?;
            (!declared.is_wildcard()).then_some(any)
        })
    }

    fn denied(&self, name: &str) -> BucketError {
        match self.violations.record(&Class::Database, name) {
            Ok(()) => BucketError::Denied,
            Err(ends) => BucketError::Ends(ends.into()),
        }
    }

    fn count_bytes(&self, bytes: usize) -> Result<(), BucketError> {
        let (counter, allowed) = (&self.counters.bytes, self.limits.bytes);
        count(LimitName::BucketTraffic, counter, bytes as u64, allowed)
    }
}

fn count(
    limit: LimitName,
    counter: &AtomicU64,
    more: u64,
    allowed: u64,
) -> Result<(), BucketError> {
    let used = counter
        .fetch_add(more, Ordering::Relaxed)
        .saturating_add(more);
    if used <= allowed {
        return Ok(());
    }
    let exceeded = Exceeded::new(limit, used, allowed);
    Err(BucketError::Ends(exceeded.into()))
}

#[cfg(test)]
mod tests;
