//! The bindings of `wasi:keyvalue`. They are always linked; [`Imports::bucket`] denies a bucket
//! that is not granted.

#[cfg(test)]
mod tests;

use wasmtime::Result;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::TrappableError;

use super::{BucketError, BucketOperation, BucketReply, BucketRequest, View, Viewed};

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

/// An open bucket of a guest.
#[derive(Debug)]
#[expect(unreachable_pub, reason = "the bindings re-export it")]
pub struct OpenBucket(String);

type Bucket = Resource<OpenBucket>;

/// Why an operation ended without a result: the guest gets an error, or is ended.
pub(super) type Failure = TrappableError<store::Error>;

impl From<BucketError> for Failure {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Denied => store::Error::AccessDenied.into(),
            BucketError::Failed(text) => store::Error::Other(text).into(),
            BucketError::Ends(end) => Self::trap(end),
        }
    }
}

/// Adds `wasi:keyvalue` to `linker`.
pub(super) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> Result<()> {
    store::add_to_linker::<T, Viewed>(linker, view)?;
    atomics::add_to_linker::<T, Viewed>(linker, view)?;
    batch::add_to_linker::<T, Viewed>(linker, view)
}

impl View<'_> {
    async fn ask(
        &mut self,
        bucket: &Bucket,
        operation: BucketOperation,
    ) -> Result<BucketReply, Failure> {
        let bucket = self.table.get(bucket).map_err(Failure::trap)?.0.clone();
        let request = BucketRequest { bucket, operation };
        Ok(self.imports.bucket(request).await?)
    }

    async fn change(&mut self, bucket: &Bucket, operation: BucketOperation) -> Result<(), Failure> {
        self.ask(bucket, operation).await.map(drop)
    }
}

/// The error if a reply does not match its request.
fn unexpected<T>() -> Result<T, Failure> {
    let error = "the reply is of another kind than the request";
    Err(Failure::trap(wasmtime::Error::msg(error)))
}

impl store::Host for View<'_> {
    async fn open(&mut self, identifier: String) -> Result<Bucket, Failure> {
        let request = BucketRequest {
            bucket: identifier.clone(),
            operation: BucketOperation::Open,
        };
        self.imports.bucket(request).await?;
        let bucket = self.table.push(OpenBucket(identifier));
        bucket.map_err(Failure::trap)
    }

    fn convert_error(&mut self, failure: Failure) -> Result<store::Error> {
        failure.downcast()
    }
}

impl store::HostBucket for View<'_> {
    async fn get(&mut self, bucket: Bucket, key: String) -> Result<Option<Vec<u8>>, Failure> {
        match self.ask(&bucket, BucketOperation::Get(key)).await? {
            BucketReply::Value(value) => Ok(value),
            _ => unexpected(),
        }
    }

    async fn set(&mut self, bucket: Bucket, key: String, value: Vec<u8>) -> Result<(), Failure> {
        self.change(&bucket, BucketOperation::Set(key, value)).await
    }

    async fn delete(&mut self, bucket: Bucket, key: String) -> Result<(), Failure> {
        self.change(&bucket, BucketOperation::Delete(key)).await
    }

    async fn exists(&mut self, bucket: Bucket, key: String) -> Result<bool, Failure> {
        match self.ask(&bucket, BucketOperation::Exists(key)).await? {
            BucketReply::Exists(exists) => Ok(exists),
            _ => unexpected(),
        }
    }

    async fn list_keys(
        &mut self,
        bucket: Bucket,
        cursor: Option<u64>,
    ) -> Result<store::KeyResponse, Failure> {
        match self.ask(&bucket, BucketOperation::Keys { cursor }).await? {
            BucketReply::Keys { keys, cursor } => Ok(store::KeyResponse { keys, cursor }),
            _ => unexpected(),
        }
    }

    async fn drop(&mut self, bucket: Bucket) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for View<'_> {
    async fn increment(&mut self, bucket: Bucket, key: String, delta: u64) -> Result<u64, Failure> {
        let operation = BucketOperation::Increment(key, delta);
        match self.ask(&bucket, operation).await? {
            BucketReply::Number(number) => Ok(number),
            _ => unexpected(),
        }
    }
}

impl batch::Host for View<'_> {
    async fn get_many(
        &mut self,
        bucket: Bucket,
        keys: Vec<String>,
    ) -> Result<Vec<Option<(String, Vec<u8>)>>, Failure> {
        match self.ask(&bucket, BucketOperation::GetMany(keys)).await? {
            BucketReply::Values(values) => Ok(values),
            _ => unexpected(),
        }
    }

    async fn set_many(
        &mut self,
        bucket: Bucket,
        key_values: Vec<(String, Vec<u8>)>,
    ) -> Result<(), Failure> {
        let operation = BucketOperation::SetMany(key_values);
        self.change(&bucket, operation).await
    }

    async fn delete_many(&mut self, bucket: Bucket, keys: Vec<String>) -> Result<(), Failure> {
        let operation = BucketOperation::DeleteMany(keys);
        self.change(&bucket, operation).await
    }
}
