//! A bucket with a method for each operation.

use std::time::{Duration, Instant};

use toolward_state::{Access, BucketOperation, BucketReply, BucketScope, Error, Limits, Store};

/// How long an operation may take if the bucket has no deadline.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Bucket {
    store: Store,
    scope: BucketScope,
    deadline: Option<Instant>,
}

pub(crate) struct Page {
    pub(crate) keys: Vec<String>,
    pub(crate) cursor: Option<u64>,
}

pub(crate) trait OpenBucket {
    fn bucket(
        &self,
        owner: &str,
        principal: &str,
        name: &str,
        access: Access,
        limits: Limits,
    ) -> Bucket;
}

impl OpenBucket for Store {
    fn bucket(
        &self,
        owner: &str,
        principal: &str,
        name: &str,
        access: Access,
        limits: Limits,
    ) -> Bucket {
        Bucket {
            store: self.clone(),
            scope: BucketScope {
                owner: owner.to_owned(),
                principal: principal.to_owned(),
                name: name.to_owned(),
                access,
                limits,
            },
            deadline: None,
        }
    }
}

fn owned<K: AsRef<str>>(keys: &[K]) -> Vec<String> {
    keys.iter().map(|key| key.as_ref().to_owned()).collect()
}

impl Bucket {
    pub(crate) fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    fn run(&self, operation: BucketOperation) -> Result<BucketReply, Error> {
        let deadline = self.deadline.unwrap_or_else(|| Instant::now() + TIMEOUT);
        self.store.run(&self.scope, operation, deadline)
    }

    fn done(&self, operation: BucketOperation) -> Result<(), Error> {
        let reply = self.run(operation)?;
        assert_eq!(reply, BucketReply::Done);
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        match self.run(BucketOperation::Get(key.to_owned()))? {
            BucketReply::Value(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn exists(&self, key: &str) -> Result<bool, Error> {
        match self.run(BucketOperation::Exists(key.to_owned()))? {
            BucketReply::Exists(exists) => Ok(exists),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn get_many<K: AsRef<str>>(
        &self,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let keys = owned(keys);
        match self.run(BucketOperation::GetMany(keys.clone()))? {
            BucketReply::Values(values) => {
                assert_eq!(values.len(), keys.len());
                let values = values.into_iter().zip(keys);
                let value = |(found, asked): (Option<(String, Vec<u8>)>, String)| {
                    let (key, value) = found?;
                    assert_eq!(key, asked);
                    Some(value)
                };
                Ok(values.map(value).collect())
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn list_keys(&self, cursor: Option<u64>) -> Result<Page, Error> {
        match self.run(BucketOperation::Keys { cursor })? {
            BucketReply::Keys { keys, cursor } => Ok(Page { keys, cursor }),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.done(BucketOperation::Set(key.to_owned(), value.to_vec()))
    }

    pub(crate) fn set_many<K: AsRef<str>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(K, V)],
    ) -> Result<(), Error> {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(key, value)| (key.as_ref().to_owned(), value.as_ref().to_vec()));
        self.done(BucketOperation::SetMany(pairs.collect()))
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        self.done(BucketOperation::Delete(key.to_owned()))
    }

    pub(crate) fn delete_many<K: AsRef<str>>(&self, keys: &[K]) -> Result<(), Error> {
        self.done(BucketOperation::DeleteMany(owned(keys)))
    }

    pub(crate) fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
        match self.run(BucketOperation::Increment(key.to_owned(), by))? {
            BucketReply::Number(number) => Ok(number),
            other => panic!("{other:?}"),
        }
    }
}
