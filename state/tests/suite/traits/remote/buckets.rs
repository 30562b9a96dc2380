//! Buckets of the second implementation.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use toolward_state::{
    Access, BoxFuture, BucketOperation, BucketReply, BucketScope, Buckets, Error, Limits,
};

use super::{Lost, Remote};

/// The buckets by owner, principal and name.
pub(super) type StoredBuckets = HashMap<[String; 3], StoredBucket>;

/// The entries of a bucket, by their position.
#[derive(Default, Clone)]
pub(super) struct StoredBucket {
    last: u64,
    entries: BTreeMap<u64, (String, Vec<u8>)>,
}

impl Buckets for Remote {
    fn operate(
        &self,
        bucket: BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<BucketReply, Error>> {
        Box::pin(async move {
            let sent = self.send(deadline, |server| operate(server, bucket, operation));
            sent.await.unwrap_or_else(|lost| {
                Err(match lost {
                    Lost::Late => Error::Deadline,
                    Lost::Unknown => Error::Unknown,
                })
            })
        })
    }
}

fn operate(
    server: &mut super::Server,
    scope: BucketScope,
    operation: BucketOperation,
) -> Result<BucketReply, Error> {
    use BucketOperation as Op;

    if operation.writes() && scope.access == Access::Read {
        return Err(Error::ReadOnly);
    }
    let limits = scope.limits;
    let bucket = server
        .buckets
        .entry([scope.owner, scope.principal, scope.name])
        .or_default();
    // A change is made on a copy, which replaces the bucket once the change is complete.
    let mut changed = bucket.clone();
    let reply = match operation {
        Op::Open => BucketReply::Done,
        Op::Get(key) => BucketReply::Value(changed.get(&key).cloned()),
        Op::Exists(key) => BucketReply::Exists(changed.get(&key).is_some()),
        Op::Keys { cursor } => changed.page(cursor.unwrap_or(0), &limits),
        Op::GetMany(keys) => {
            let values = keys.into_iter().map(|key| {
                let value = changed.get(&key).cloned();
                value.map(|value| (key, value))
            });
            BucketReply::Values(values.collect())
        }
        Op::Set(key, value) => changed.set(key, value, &limits)?,
        Op::SetMany(pairs) => {
            for (key, value) in pairs {
                changed.set(key, value, &limits)?;
            }
            BucketReply::Done
        }
        Op::Delete(key) => changed.delete(&key),
        Op::DeleteMany(keys) => {
            keys.iter().for_each(|key| drop(changed.delete(key)));
            BucketReply::Done
        }
        Op::Increment(key, by) => {
            let before = match changed.get(&key) {
                None => 0,
                Some(value) => std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok())
                    .ok_or(Error::NotANumber("not digits"))?,
            };
            let sum = before
                .checked_add(by)
                .ok_or(Error::NotANumber("too large"))?;
            changed.set(key, sum.to_string().into_bytes(), &limits)?;
            BucketReply::Number(sum)
        }
    };
    *bucket = changed;
    Ok(reply)
}

impl StoredBucket {
    fn get(&self, key: &str) -> Option<&Vec<u8>> {
        let mut entries = self.entries.values();
        entries
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    fn set(&mut self, key: String, value: Vec<u8>, limits: &Limits) -> Result<BucketReply, Error> {
        if value.len() as u64 > limits.value_bytes {
            return Err(Error::TooLarge {
                limit: "value_bytes",
                used: value.len() as u64,
                allowed: limits.value_bytes,
            });
        }
        let known = self.entries.values_mut().find(|(known, _)| *known == key);
        match known {
            Some((_, old)) => *old = value,
            None => {
                self.last += 1;
                self.entries.insert(self.last, (key, value));
            }
        }
        let keys = self.entries.len() as u64;
        if keys > limits.bucket_keys {
            return Err(Error::Quota {
                limit: "bucket_keys",
                used: keys,
                allowed: limits.bucket_keys,
            });
        }
        Ok(BucketReply::Done)
    }

    fn delete(&mut self, key: &str) -> BucketReply {
        self.entries.retain(|_, (known, _)| known != key);
        BucketReply::Done
    }

    fn page(&self, after: u64, limits: &Limits) -> BucketReply {
        let mut rest = self.entries.range(after + 1..);
        let page: Vec<_> = rest.by_ref().take(limits.page_keys as usize).collect();
        let more = rest.next().is_some();
        BucketReply::Keys {
            cursor: page.last().filter(|_| more).map(|(at, _)| **at),
            keys: page.iter().map(|(_, (key, _))| key.clone()).collect(),
        }
    }
}
