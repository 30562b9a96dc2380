//! Key-value buckets, as a call may use them. A driver only gives the name of a bucket: its publisher follows from
//! the grant, its principal from the call. The store blocks, so each operation runs on a thread for blocking work,
//! which interrupts it at the call's deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolward_contract::capability::{Capability, Class};
use toolward_keyvalue::{Access, Bucket, Error, Limits, Store};
use toolward_policy::{BucketGrant, LimitName, own};

use super::{BucketError, BucketOperation, BucketReply, BucketRequest, GuestEnd};
use crate::api::violations::{ViolationKind, Violations};
use crate::exceeded::{DeadlinePassed, Exceeded};

/// What buckets may hold, and what a call may do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketLimits {
    /// Limits of each bucket. Exceeding one is an error for the guest.
    pub(crate) bucket: Limits,
    /// Operations of a call. Fuel does not count the host's work, so exceeding this
    /// ends the call.
    pub(crate) operations: u64,
    /// Bytes of keys and values that a call reads and writes. Exceeding it ends the
    /// call, too.
    pub(crate) bytes: u64,
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

/// What all attempts of a call have done together.
#[derive(Debug, Default)]
pub(crate) struct BucketCounters {
    operations: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// What one call may do with buckets.
#[derive(Debug)]
pub(crate) struct Buckets {
    pub(crate) grants: Vec<BucketGrant>,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) principal: String,
    pub(crate) limits: BucketLimits,
    pub(crate) counters: Arc<BucketCounters>,
    pub(crate) deadline: Instant,
    pub(crate) violations: Violations,
}

/// The grant of every name that no other grant has.
const ANY: &str = "*";

impl Buckets {
    /// Does what a driver asks for.
    pub(crate) async fn answer(&self, request: BucketRequest) -> Result<BucketReply, BucketError> {
        use BucketOperation as Op;

        let BucketRequest { bucket, operation } = request;
        self.count_operation()?;
        let Some(grant) = self.grant(&bucket) else {
            return Err(self.denied(&bucket));
        };
        let Some(store) = &self.store else {
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
        let limits = self.limits.bucket;
        let bucket = store.bucket(&grant.owner, &self.principal, &bucket, access, limits);
        let bucket = bucket.until(self.deadline);
        let reply = match operation {
            Op::Open => BucketReply::Done,
            Op::Get(key) => BucketReply::Value(run(bucket, move |b| b.get(&key)).await?),
            Op::Exists(key) => BucketReply::Exists(run(bucket, move |b| b.exists(&key)).await?),
            Op::Keys { cursor } => {
                let page = run(bucket, move |b| b.list_keys(cursor)).await?;
                BucketReply::Keys {
                    keys: page.keys,
                    cursor: page.cursor,
                }
            }
            Op::GetMany(keys) => {
                let read = run(bucket, move |b| {
                    let values = b.get_many(&keys)?;
                    Ok(keys.into_iter().zip(values))
                });
                let values = read.await?;
                let values = values.map(|(key, value)| value.map(|value| (key, value)));
                BucketReply::Values(values.collect())
            }
            Op::Set(key, value) => {
                run(bucket, move |b| b.set(&key, &value)).await?;
                BucketReply::Done
            }
            Op::Delete(key) => {
                run(bucket, move |b| b.delete(&key)).await?;
                BucketReply::Done
            }
            Op::Increment(key, delta) => {
                BucketReply::Number(run(bucket, move |b| b.increment(&key, delta)).await?)
            }
            Op::SetMany(pairs) => {
                run(bucket, move |b| b.set_many(&pairs)).await?;
                BucketReply::Done
            }
            Op::DeleteMany(keys) => {
                run(bucket, move |b| b.delete_many(&keys)).await?;
                BucketReply::Done
            }
        };
        self.count_bytes(reply.bytes())?;
        Ok(reply)
    }

    /// The grant for a name: its own, or the one for all names, for which the name must be one that a
    /// contract could declare.
    fn grant(&self, name: &str) -> Option<&BucketGrant> {
        let own = self.grants.iter().find(|grant| grant.name == name);
        own.filter(|_| name != ANY).or_else(|| {
            let any = self.grants.iter().find(|grant| grant.name == ANY)?;
            let declared = Capability::of(Class::Database, name).ok()?;
            (!declared.is_wildcard()).then_some(any)
        })
    }

    fn denied(&self, name: &str) -> BucketError {
        match self.violations.record(ViolationKind::Database, name) {
            Ok(()) => BucketError::Denied,
            Err(ends) => BucketError::Ends(ends.into()),
        }
    }

    fn count_operation(&self) -> Result<(), BucketError> {
        let (counter, allowed) = (&self.counters.operations, self.limits.operations);
        count(LimitName::BucketOperations, counter, 1, allowed)
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

/// Runs an operation on a thread for blocking work.
async fn run<R: Send + 'static>(
    bucket: Bucket,
    operation: impl FnOnce(&Bucket) -> Result<R, Error> + Send + 'static,
) -> Result<R, BucketError> {
    match tokio::task::spawn_blocking(move || operation(&bucket)).await {
        Ok(done) => done.map_err(BucketError::from),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends.
            Err(_cancelled) => Err(BucketError::Ends(GuestEnd::Deadline(DeadlinePassed))),
        },
    }
}

impl BucketOperation {
    fn writes(&self) -> bool {
        match self {
            Self::Open | Self::Get(_) | Self::Exists(_) | Self::Keys { .. } | Self::GetMany(_) => {
                false
            }
            Self::Set(..)
            | Self::Delete(_)
            | Self::Increment(..)
            | Self::SetMany(_)
            | Self::DeleteMany(_) => true,
        }
    }

    /// Bytes of keys and values that it moves to the store.
    fn bytes(&self) -> usize {
        match self {
            Self::Open | Self::Keys { .. } => 0,
            Self::Get(key) | Self::Exists(key) | Self::Delete(key) | Self::Increment(key, _) => {
                key.len()
            }
            Self::Set(key, value) => key.len().saturating_add(value.len()),
            Self::GetMany(keys) | Self::DeleteMany(keys) => keys.iter().map(String::len).sum(),
            Self::SetMany(pairs) => {
                let pairs = pairs.iter();
                pairs
                    .map(|(key, value)| key.len().saturating_add(value.len()))
                    .sum()
            }
        }
    }
}

impl BucketReply {
    /// Bytes that it moves from the store.
    fn bytes(&self) -> usize {
        match self {
            Self::Done | Self::Exists(_) | Self::Number(_) => 0,
            Self::Value(value) => value.as_ref().map_or(0, Vec::len),
            Self::Keys { keys, .. } => keys.iter().map(String::len).sum(),
            Self::Values(values) => values.iter().flatten().map(|(_, value)| value.len()).sum(),
        }
    }
}

impl From<Error> for BucketError {
    fn from(error: Error) -> Self {
        match error {
            Error::ReadOnly => Self::Denied,
            // Both happen at the deadline only, and then the call is over.
            Error::Busy | Error::Deadline => Self::Ends(GuestEnd::Deadline(DeadlinePassed)),
            Error::TooLarge { .. } | Error::Quota { .. } | Error::NotANumber(_) => {
                Self::Failed(error.to_string())
            }
            // The driver does not learn what is wrong with the operator's disk.
            _ => {
                tracing::error!(%error, code = error.code(), "a key-value operation failed");
                Self::Failed("the host's key-value store failed".to_owned())
            }
        }
    }
}
