//! One bucket: its reads, and the size checks of its writes.

use std::time::Instant;

use rusqlite::OptionalExtension;

use super::Store;
use super::write::{Change, count};
use crate::buckets::{Access, BucketOperation, BucketReply, BucketScope};
use crate::error::Error;

const GET: &str = "
SELECT e.value FROM bucket AS b JOIN entry AS e ON e.bucket = b.id
WHERE b.owner = ?1 AND b.principal = ?2 AND b.name = ?3 AND e.key = ?4";

const EXISTS: &str = "
SELECT EXISTS (SELECT 1 FROM bucket AS b JOIN entry AS e ON e.bucket = b.id
WHERE b.owner = ?1 AND b.principal = ?2 AND b.name = ?3 AND e.key = ?4)";

const LIST: &str = "
SELECT e.position, e.key FROM bucket AS b JOIN entry AS e ON e.bucket = b.id
WHERE b.owner = ?1 AND b.principal = ?2 AND b.name = ?3 AND e.position > ?4
ORDER BY e.position";

/// One bucket of one publisher and principal. Each operation is atomic, even on many keys: it is
/// done as a whole, or fails and changes nothing. After a write has returned, all reads see it.
///
/// Keys are compared byte by byte.
struct Bucket<'a> {
    store: &'a Store,
    scope: &'a BucketScope,
    deadline: Instant,
}

impl Store {
    /// Does an operation on a bucket, and blocks the thread until it is done, at the latest until
    /// `deadline`. An operation that is not done by then fails and changes nothing. A bucket is
    /// created with its first key.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use toolward_state::{Access, BucketOperation, BucketReply, BucketScope, Limits, Store};
    ///
    /// # fn main() -> Result<(), toolward_state::Error> {
    /// let store = Store::in_memory()?;
    /// let mut bucket = BucketScope {
    ///     owner: "acme".to_owned(),
    ///     principal: "alice".to_owned(),
    ///     name: "notes".to_owned(),
    ///     access: Access::Write,
    ///     limits: Limits { page_keys: 2, ..Limits::default() },
    /// };
    /// let soon = Instant::now() + Duration::from_secs(5);
    /// for key in ["one", "two", "three"] {
    ///     store.run(&bucket, BucketOperation::Set(key.to_owned(), b"text".to_vec()), soon)?;
    /// }
    /// let page = store.run(&bucket, BucketOperation::Keys { cursor: None }, soon)?;
    /// let keys = vec!["one".to_owned(), "two".to_owned()];
    /// assert_eq!(page, BucketReply::Keys { keys, cursor: Some(2) });
    ///
    /// bucket.access = Access::Read;
    /// let refused = store.run(&bucket, BucketOperation::Delete("one".to_owned()), soon);
    /// assert_eq!(refused.map_err(|error| error.code()), Err("bucket-read-only"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If something is too large, a quota is reached, the bucket was opened for reading, or the
    /// store fails.
    pub fn run(
        &self,
        scope: &BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> Result<BucketReply, Error> {
        use BucketOperation as Op;
        let bucket = Bucket {
            store: self,
            scope,
            deadline,
        };
        match operation {
            Op::Open => Ok(BucketReply::Done),
            Op::Get(key) => bucket.get(&key).map(BucketReply::Value),
            Op::Exists(key) => bucket.exists(&key).map(BucketReply::Exists),
            Op::Keys { cursor } => bucket.list_keys(cursor),
            Op::GetMany(keys) => bucket.get_many(keys),
            Op::Increment(key, by) => bucket.increment(&key, by).map(BucketReply::Number),
            Op::Set(key, value) => bucket.set_many(&[(key, value)]),
            Op::Delete(key) => bucket.delete_many(&[key]),
            Op::SetMany(pairs) => bucket.set_many(&pairs),
            Op::DeleteMany(keys) => bucket.delete_many(&keys),
        }
    }
}

impl Bucket<'_> {
    /// The value of `key`.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.key_fits(key)?;
        self.store.read(self.deadline, |sql| {
            let mut get = sql.prepare_cached(GET)?;
            let value = get.query_row(self.at(key), |row| row.get(0));
            Ok(value.optional()?)
        })
    }

    /// Whether `key` has a value.
    fn exists(&self, key: &str) -> Result<bool, Error> {
        self.key_fits(key)?;
        self.store.read(self.deadline, |sql| {
            let mut exists = sql.prepare_cached(EXISTS)?;
            Ok(exists.query_row(self.at(key), |row| row.get(0))?)
        })
    }

    /// The values of `keys`, in their order.
    fn get_many(&self, keys: Vec<String>) -> Result<BucketReply, Error> {
        self.batch_fits(keys.len(), 0)?;
        for key in &keys {
            self.key_fits(key)?;
        }
        self.store.read(self.deadline, |sql| {
            // One snapshot for all keys.
            let transaction = sql.transaction()?;
            let mut statement = transaction.prepare_cached(GET)?;
            let mut bytes = 0_u64;
            let count = keys.len();
            let mut values = Vec::with_capacity(count);
            for key in keys {
                let mut rows = statement.query(self.at(key.as_str()))?;
                let Some(row) = rows.next()? else {
                    values.push(None);
                    continue;
                };
                let value = row
                    .get_ref(0)?
                    .as_blob()
                    .map_err(|error| Error::Corrupt(error.into()))?;
                bytes = bytes.saturating_add(value.len() as u64);
                self.batch_fits(count, bytes)?;
                let value = value.to_vec();
                drop(rows);
                values.push(Some((key, value)));
            }
            drop(statement);
            // Nothing was written, and committing is many times faster than rolling back.
            transaction.commit()?;
            Ok(BucketReply::Values(values))
        })
    }

    /// A page of keys: the first page, or the page after `cursor`. A key that exists from the first
    /// page to the last is on exactly one page.
    fn list_keys(&self, cursor: Option<u64>) -> Result<BucketReply, Error> {
        let after = i64::try_from(cursor.unwrap_or(0)).unwrap_or(i64::MAX);
        self.store.read(self.deadline, |sql| {
            let mut statement = sql.prepare_cached(LIST)?;
            let mut rows = statement.query(self.at(after))?;
            let mut keys = Vec::new();
            let mut bytes = 0_u64;
            let mut last = None;
            while let Some(row) = rows.next()? {
                let position: i64 = row.get(0)?;
                let key: String = row.get(1)?;
                bytes = bytes.saturating_add(key.len() as u64);
                let full = keys.len() as u64 >= self.scope.limits.page_keys
                    || bytes > self.scope.limits.page_bytes;
                if full && last.is_some() {
                    return Ok(BucketReply::Keys { keys, cursor: last });
                }
                keys.push(key);
                last = Some(count(position)?);
            }
            Ok(BucketReply::Keys { keys, cursor: None })
        })
    }

    /// Sets the value of each key. If a key occurs twice, its last value counts.
    fn set_many(&self, pairs: &[(String, Vec<u8>)]) -> Result<BucketReply, Error> {
        self.writable()?;
        let mut bytes = 0_u64;
        for (key, value) in pairs {
            self.key_fits(key)?;
            let (length, allowed) = (value.len() as u64, self.scope.limits.value_bytes);
            fits("value_bytes", length, allowed)?;
            bytes = bytes
                .saturating_add(key.len() as u64)
                .saturating_add(length);
        }
        if pairs.len() > 1 {
            self.batch_fits(pairs.len(), bytes)?;
        }
        self.change(|change| {
            let mut pairs = pairs.iter();
            pairs.try_for_each(|(key, value)| change.put(key, value))
        })?;
        Ok(BucketReply::Done)
    }

    /// Removes `keys`. Missing keys are not an error.
    fn delete_many(&self, keys: &[String]) -> Result<BucketReply, Error> {
        self.writable()?;
        self.batch_fits(keys.len(), 0)?;
        for key in keys {
            self.key_fits(key)?;
        }
        self.change(|change| keys.iter().try_for_each(|key| change.remove(key)))?;
        Ok(BucketReply::Done)
    }

    /// Adds to the number under `key` and returns the sum; a missing key counts as 0. The value is
    /// the number as decimal text.
    fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
        self.writable()?;
        self.key_fits(key)?;
        self.change(|change| {
            let number = match change.get(key)? {
                None => 0,
                Some(value) => number(&value)?,
            };
            let sum = number
                .checked_add(by)
                .ok_or(Error::NotANumber("the sum exceeds 64 bits"))?;
            change.put(key, sum.to_string().as_bytes())?;
            Ok(sum)
        })
    }

    fn change<R>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.store.write(self.deadline, |sql| {
            let mut change = Change::begin(sql, self.scope)?;
            let result = work(&mut change)?;
            change.end(&self.scope.limits)?;
            Ok(result)
        })
    }

    /// The parameters of a statement about the bucket.
    fn at<T>(&self, last: T) -> (&str, &str, &str, T) {
        let BucketScope {
            owner,
            principal,
            name,
            ..
        } = self.scope;
        (owner, principal, name, last)
    }

    fn writable(&self) -> Result<(), Error> {
        match self.scope.access {
            Access::Read => Err(Error::ReadOnly),
            Access::Write => Ok(()),
        }
    }

    fn key_fits(&self, key: &str) -> Result<(), Error> {
        fits("key_bytes", key.len() as u64, self.scope.limits.key_bytes)
    }

    fn batch_fits(&self, keys: usize, bytes: u64) -> Result<(), Error> {
        fits("batch_keys", keys as u64, self.scope.limits.batch_keys)?;
        fits("batch_bytes", bytes, self.scope.limits.batch_bytes)
    }
}

fn fits(limit: &'static str, used: u64, allowed: u64) -> Result<(), Error> {
    if used <= allowed {
        return Ok(());
    }
    Err(Error::TooLarge {
        limit,
        used,
        allowed,
    })
}

/// Reads a number that consists of digits only. Signs, spaces and anything that another reader
/// could interpret differently are refused.
fn number(value: &[u8]) -> Result<u64, Error> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok())
        .ok_or(Error::NotANumber(
            "it is not the decimal digits of a 64-bit number",
        ))
}
