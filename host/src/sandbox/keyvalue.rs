//! Key-value buckets: the host's side of `wasi:keyvalue`. Always linked; where
//! nothing is granted, it denies.
//!
//! A guest only gives the name of a bucket: its publisher follows from the grant, its
//! principal from the call. The store blocks, so each operation runs on a thread for
//! blocking work, which interrupts it at the call's deadline.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolward_contract::capability::{Capability, Class};
use toolward_keyvalue::{Access, Bucket, Error, Limits as BucketLimits, Store};
use toolward_policy::BucketGrant;
use toolward_policy::{LimitName, own};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable, ResourceTableError};

use super::{DeadlinePassed, Exceeded};
use crate::api::violations::{EndsCall, ViolationKind, Violations};

mod bindings {
    wasmtime::component::bindgen!({
        world: "wasi:keyvalue/imports",
        path: "wit",
        imports: { default: async | trappable },
        with: { "wasi:keyvalue/store.bucket": super::OpenBucket },
        trappable_error_type: { "wasi:keyvalue/store.error" => super::Failure },
    });
}

use bindings::wasi::keyvalue::{atomics, batch, store};

/// What buckets may hold, and what a call may do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Limits of each bucket. Exceeding one is an error for the guest.
    pub(crate) bucket: BucketLimits,
    /// Operations of a call. Fuel does not count the host's work, so exceeding this
    /// ends the call.
    pub(crate) operations: u64,
    /// Bytes of keys and values that a call reads and writes. Exceeding it ends the
    /// call, too.
    pub(crate) bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bucket: BucketLimits::default(),
            operations: own::BUCKET_OPERATIONS,
            bytes: own::BUCKET_TRAFFIC,
        }
    }
}

/// What all attempts of a call have done together.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    operations: AtomicU64,
    bytes: AtomicU64,
}

/// What one attempt may do with buckets.
#[derive(Debug, Clone)]
pub(crate) struct Ctx {
    grants: Vec<BucketGrant>,
    store: Option<Arc<Store>>,
    principal: String,
    limits: Limits,
    counters: Arc<Counters>,
    deadline: Instant,
    violations: Violations,
}

impl Ctx {
    /// For one attempt of a call of `principal`, which ends at `deadline`.
    pub(crate) fn new(
        grants: &[BucketGrant],
        store: Option<Arc<Store>>,
        principal: &str,
        limits: Limits,
        counters: Arc<Counters>,
        deadline: Instant,
        violations: Violations,
    ) -> Self {
        Self {
            grants: grants.to_vec(),
            store,
            // Don't copy what can't be used.
            principal: match grants {
                [] => String::new(),
                _ => principal.to_owned(),
            },
            limits,
            counters,
            deadline,
            violations,
        }
    }

    /// The grant for a name: its own, or the one for all names, for which the name has
    /// to be one that a contract could declare.
    fn grant(&self, name: &str) -> Option<&BucketGrant> {
        let own = self.grants.iter().find(|grant| grant.name == name);
        own.filter(|_| name != ANY).or_else(|| {
            let any = self.grants.iter().find(|grant| grant.name == ANY)?;
            let declared = Capability::of(Class::Database, name).ok()?;
            (!declared.is_wildcard()).then_some(any)
        })
    }

    fn denied(&self, name: &str) -> Failure {
        match self.violations.record(ViolationKind::Database, name) {
            Ok(()) => Failure::Refused(store::Error::AccessDenied),
            Err(ends) => ends.into(),
        }
    }

    fn count_operation(&self) -> Result<(), Exceeded> {
        count(
            LimitName::BucketOperations,
            &self.counters.operations,
            1,
            self.limits.operations,
        )
    }

    fn count_bytes(&self, bytes: usize) -> Result<(), Exceeded> {
        count(
            LimitName::BucketTraffic,
            &self.counters.bytes,
            bytes as u64,
            self.limits.bytes,
        )
    }
}

/// The grant of every name that no other grant has.
const ANY: &str = "*";

fn count(limit: LimitName, counter: &AtomicU64, more: u64, allowed: u64) -> Result<(), Exceeded> {
    let used = counter
        .fetch_add(more, Ordering::Relaxed)
        .saturating_add(more);
    if used <= allowed {
        return Ok(());
    }
    Err(Exceeded::new(limit, used, allowed))
}

/// A bucket that a guest has open.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the bindings re-export it")]
pub struct OpenBucket(Bucket);

/// Why an operation ended without a result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The guest gets an error.
    Refused(store::Error),
    /// The guest is ended.
    Trap(wasmtime::Error),
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self::Trap(exceeded.into())
    }
}

impl From<EndsCall> for Failure {
    fn from(ends: EndsCall) -> Self {
        Self::Trap(ends.into())
    }
}

impl From<ResourceTableError> for Failure {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = match error {
            Error::ReadOnly => return Self::Refused(store::Error::AccessDenied),
            // Both happen at the deadline only, and then the call is over.
            Error::Busy | Error::Deadline => return Self::Trap(DeadlinePassed.into()),
            Error::TooLarge { .. } | Error::Quota { .. } | Error::NotANumber(_) => {
                error.to_string()
            }
            // The guest does not learn what is wrong with the operator's disk.
            _ => {
                tracing::error!(%error, code = error.code(), "a key-value operation failed");
                "the host's key-value store failed".to_owned()
            }
        };
        Self::Refused(store::Error::Other(text))
    }
}

/// The buckets of a store, borrowed for one call of the host.
pub(crate) struct View<'a> {
    /// What may be done.
    pub(crate) ctx: &'a Ctx,
    /// Where the guest's open buckets are.
    pub(crate) table: &'a mut ResourceTable,
}

struct KeyValue;

impl HasData for KeyValue {
    type Data<'a> = View<'a>;
}

/// Adds `wasi:keyvalue` to `linker`.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> Result<()> {
    store::add_to_linker::<T, KeyValue>(linker, view)?;
    atomics::add_to_linker::<T, KeyValue>(linker, view)?;
    batch::add_to_linker::<T, KeyValue>(linker, view)
}

impl View<'_> {
    /// Counts an operation that moves `bytes` and runs it on a blocking thread.
    async fn read<R: Send + 'static>(
        &mut self,
        bucket: &Resource<OpenBucket>,
        bytes: usize,
        operation: impl FnOnce(&Bucket) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Failure> {
        self.ctx.count_operation()?;
        self.ctx.count_bytes(bytes)?;
        let bucket = self.table.get(bucket)?.0.clone();
        match tokio::task::spawn_blocking(move || operation(&bucket)).await {
            Ok(done) => Ok(done?),
            // Mapped to the deadline's error at the call's boundary.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(Failure::Trap(error.into())),
            },
        }
    }

    /// The same, where the bucket may be changed.
    async fn write<R: Send + 'static>(
        &mut self,
        bucket: &Resource<OpenBucket>,
        bytes: usize,
        operation: impl FnOnce(&Bucket) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Failure> {
        let open = &self.table.get(bucket)?.0;
        match open.access() {
            Access::Write => self.read(bucket, bytes, operation).await,
            Access::Read => {
                self.ctx.count_operation()?;
                Err(self.ctx.denied(open.name()))
            }
        }
    }
}

impl store::Host for View<'_> {
    async fn open(&mut self, identifier: String) -> Result<Resource<OpenBucket>, Failure> {
        self.ctx.count_operation()?;
        let Some(grant) = self.ctx.grant(&identifier) else {
            return Err(self.ctx.denied(&identifier));
        };
        let Some(store) = &self.ctx.store else {
            tracing::warn!("a bucket is granted, and the host has no key-value store");
            let text = "the host has no key-value store".to_owned();
            return Err(Failure::Refused(store::Error::Other(text)));
        };
        let access = match grant.write {
            true => Access::Write,
            false => Access::Read,
        };
        let bucket = store
            .bucket(
                &grant.owner,
                &self.ctx.principal,
                &identifier,
                access,
                self.ctx.limits.bucket,
            )
            .until(self.ctx.deadline);
        Ok(self.table.push(OpenBucket(bucket))?)
    }

    fn convert_error(&mut self, failure: Failure) -> Result<store::Error> {
        match failure {
            Failure::Refused(error) => Ok(error),
            Failure::Trap(error) => Err(error),
        }
    }
}

impl store::HostBucket for View<'_> {
    async fn get(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let value = self.read(&bucket, key.len(), move |b| b.get(&key)).await?;
        self.ctx.count_bytes(value.as_ref().map_or(0, Vec::len))?;
        Ok(value)
    }

    async fn set(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
        value: Vec<u8>,
    ) -> Result<(), Failure> {
        let bytes = key.len().saturating_add(value.len());
        self.write(&bucket, bytes, move |b| b.set(&key, &value))
            .await
    }

    async fn delete(&mut self, bucket: Resource<OpenBucket>, key: String) -> Result<(), Failure> {
        self.write(&bucket, key.len(), move |b| b.delete(&key))
            .await
    }

    async fn exists(&mut self, bucket: Resource<OpenBucket>, key: String) -> Result<bool, Failure> {
        self.read(&bucket, key.len(), move |b| b.exists(&key)).await
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<OpenBucket>,
        cursor: Option<u64>,
    ) -> Result<store::KeyResponse, Failure> {
        let page = self.read(&bucket, 0, move |b| b.list_keys(cursor)).await?;
        self.ctx
            .count_bytes(page.keys.iter().map(String::len).sum())?;
        Ok(store::KeyResponse {
            keys: page.keys,
            cursor: page.cursor,
        })
    }

    async fn drop(&mut self, bucket: Resource<OpenBucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for View<'_> {
    async fn increment(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
        delta: u64,
    ) -> Result<u64, Failure> {
        self.write(&bucket, key.len(), move |b| b.increment(&key, delta))
            .await
    }
}

impl batch::Host for View<'_> {
    async fn get_many(
        &mut self,
        bucket: Resource<OpenBucket>,
        keys: Vec<String>,
    ) -> Result<Vec<Option<(String, Vec<u8>)>>, Failure> {
        let bytes = keys.iter().map(String::len).sum();
        let (keys, values) = self
            .read(&bucket, bytes, move |b| {
                let values = b.get_many(&keys)?;
                Ok((keys, values))
            })
            .await?;
        self.ctx
            .count_bytes(values.iter().flatten().map(Vec::len).sum())?;
        Ok(keys
            .into_iter()
            .zip(values)
            .map(|(key, value)| value.map(|value| (key, value)))
            .collect())
    }

    async fn set_many(
        &mut self,
        bucket: Resource<OpenBucket>,
        key_values: Vec<(String, Vec<u8>)>,
    ) -> Result<(), Failure> {
        let bytes = key_values
            .iter()
            .map(|(key, value)| key.len().saturating_add(value.len()))
            .sum();
        self.write(&bucket, bytes, move |b| b.set_many(&key_values))
            .await
    }

    async fn delete_many(
        &mut self,
        bucket: Resource<OpenBucket>,
        keys: Vec<String>,
    ) -> Result<(), Failure> {
        let bytes = keys.iter().map(String::len).sum();
        self.write(&bucket, bytes, move |b| b.delete_many(&keys))
            .await
    }
}
