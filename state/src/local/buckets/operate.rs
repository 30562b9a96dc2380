//! The trait over buckets in a file: each operation runs on a thread for blocking work, which interrupts it at the
//! deadline.

use std::time::Instant;

use super::bucket::{Bucket, Page};
use super::store::Store;
use crate::BoxFuture;
use crate::buckets::{BucketOperation, BucketReply, BucketScope, Buckets};
use crate::error::Error;

impl Buckets for Store {
    fn operate(
        &self,
        bucket: BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<BucketReply, Error>> {
        Box::pin(async move {
            if matches!(operation, BucketOperation::Open) {
                return Ok(BucketReply::Done);
            }
            let bucket = Bucket::new(self.clone(), bucket).until(deadline);
            match tokio::task::spawn_blocking(move || bucket.operate(operation)).await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime ends.
                    Err(_cancelled) => Err(Error::Deadline),
                },
            }
        })
    }
}

impl Bucket {
    fn operate(&self, operation: BucketOperation) -> Result<BucketReply, Error> {
        use BucketOperation as Op;
        Ok(match operation {
            Op::Open => BucketReply::Done,
            Op::Get(key) => BucketReply::Value(self.get(&key)?),
            Op::Exists(key) => BucketReply::Exists(self.exists(&key)?),
            Op::Keys { cursor } => {
                let Page { keys, cursor } = self.list_keys(cursor)?;
                BucketReply::Keys { keys, cursor }
            }
            Op::GetMany(keys) => {
                let values = self.get_many(&keys)?;
                let values = keys.into_iter().zip(values);
                let values = values.map(|(key, value)| value.map(|value| (key, value)));
                BucketReply::Values(values.collect())
            }
            Op::Increment(key, by) => BucketReply::Number(self.increment(&key, by)?),
            Op::Set(key, value) => done(self.set(&key, &value))?,
            Op::Delete(key) => done(self.delete(&key))?,
            Op::SetMany(pairs) => done(self.set_many(&pairs))?,
            Op::DeleteMany(keys) => done(self.delete_many(&keys))?,
        })
    }
}

fn done(result: Result<(), Error>) -> Result<BucketReply, Error> {
    result.map(|()| BucketReply::Done)
}
