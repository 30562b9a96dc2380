//! One bucket: its reads, and the front of its writes, where sizes are checked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::OptionalExtension;

use super::Store;
use super::write::{Change, count};
use crate::buckets::{Access, BucketScope, Limits};
use crate::error::Error;

/// How long an operation may take where the bucket has no deadline.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

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

/// One bucket of one publisher and principal. Each operation is atomic, those on
/// many keys included: it is done as a whole, or fails and changes nothing. A
/// write that returned is seen by all later reads.
///
/// Keys are compared byte by byte.
///
/// ```
/// use toolward_state::{Access, Bucket, Limits, Page, Store};
///
/// # fn main() -> Result<(), toolward_state::Error> {
/// let store = Store::in_memory()?;
/// let limits = Limits { page_keys: 2, ..Limits::default() };
/// let bucket: Bucket = store.bucket("acme", "alice", "notes", Access::Write, limits);
/// for key in ["one", "two", "three"] {
///     bucket.set(key, b"text")?;
/// }
/// let Page { keys, cursor } = bucket.list_keys(None)?;
/// assert_eq!(keys, ["one", "two"]);
/// assert_eq!(bucket.list_keys(cursor)?.keys, ["three"]);
///
/// let reader = store.bucket("acme", "alice", "notes", Access::Read, limits);
/// let refused = reader.delete("one").map_err(|error| error.code());
/// assert_eq!(refused, Err("bucket-read-only"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Store,
    scope: Arc<BucketScope>,
    deadline: Option<Instant>,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Keys, in the order in which they first came into the bucket.
    pub keys: Vec<String>,
    /// What gives the next page; `None` after the last one.
    pub cursor: Option<u64>,
}

impl Store {
    /// The bucket `name` of `owner` and `principal`. Nothing is read or made:
    /// a bucket comes into being with its first key.
    pub fn bucket(
        &self,
        owner: &str,
        principal: &str,
        name: &str,
        access: Access,
        limits: Limits,
    ) -> Bucket {
        let scope = BucketScope {
            owner: owner.to_owned(),
            principal: principal.to_owned(),
            name: name.to_owned(),
            access,
            limits,
        };
        Bucket::new(self.clone(), scope)
    }
}

impl Bucket {
    pub(super) fn new(store: Store, scope: BucketScope) -> Self {
        Self {
            store,
            scope: Arc::new(scope),
            deadline: None,
        }
    }

    /// Ends all operations at `deadline`: one that is not done by then fails and
    /// changes nothing. Without it, each operation has five seconds.
    #[must_use]
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// When the key is too large or the store fails.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.key_fits(key)?;
        self.store.read(self.end(), |sql| {
            let value = sql
                .prepare_cached(GET)?
                .query_row(self.at(key), |row| row.get(0))
                .optional()?;
            Ok(value)
        })
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    ///
    /// When the key is too large or the store fails.
    pub fn exists(&self, key: &str) -> Result<bool, Error> {
        self.key_fits(key)?;
        self.store.read(self.end(), |sql| {
            let found = sql
                .prepare_cached(EXISTS)?
                .query_row(self.at(key), |row| row.get(0))?;
            Ok(found)
        })
    }

    /// The values of `keys`, in their order.
    ///
    /// # Errors
    ///
    /// When there are too many keys, keys or values are too large, or the store
    /// fails.
    pub fn get_many<K: AsRef<str>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.batch_fits(keys.len(), 0)?;
        for key in keys {
            self.key_fits(key.as_ref())?;
        }
        self.store.read(self.end(), |sql| {
            // One snapshot for all of them.
            let transaction = sql.transaction()?;
            let mut statement = transaction.prepare_cached(GET)?;
            let mut bytes = 0_u64;
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                let parameters = self.at(key.as_ref());
                let mut rows = statement.query(parameters)?;
                let Some(row) = rows.next()? else {
                    values.push(None);
                    continue;
                };
                let value = row
                    .get_ref(0)?
                    .as_blob()
                    .map_err(|error| Error::Corrupt(error.into()))?;
                bytes = bytes.saturating_add(value.len() as u64);
                self.batch_fits(keys.len(), bytes)?;
                values.push(Some(value.to_vec()));
            }
            drop(statement);
            // Many times faster than rolling back, and nothing was written.
            transaction.commit()?;
            Ok(values)
        })
    }

    /// A page of keys: the first, or the one after `cursor`. A key that is there
    /// from the first page to the last is in exactly one of them.
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub fn list_keys(&self, cursor: Option<u64>) -> Result<Page, Error> {
        let after = i64::try_from(cursor.unwrap_or(0)).unwrap_or(i64::MAX);
        self.store.read(self.end(), |sql| {
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
                    return Ok(Page { keys, cursor: last });
                }
                keys.push(key);
                last = Some(count(position)?);
            }
            Ok(Page { keys, cursor: None })
        })
    }

    /// Gives `key` a value, in place of the one that it may have.
    ///
    /// # Errors
    ///
    /// When the bucket was opened for reading, key or value are too large, a
    /// quota is reached, or the store fails.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.set_many(&[(key, value)])
    }

    /// Gives each key its value; of two for one key the last counts.
    ///
    /// # Errors
    ///
    /// As [`Bucket::set`], and when there are too many keys.
    pub fn set_many<K: AsRef<str>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<(), Error> {
        self.writable()?;
        let mut bytes = 0_u64;
        for (key, value) in pairs {
            self.key_fits(key.as_ref())?;
            self.value_fits(value.as_ref())?;
            bytes = bytes
                .saturating_add(key.as_ref().len() as u64)
                .saturating_add(value.as_ref().len() as u64);
        }
        if pairs.len() > 1 {
            self.batch_fits(pairs.len(), bytes)?;
        }
        self.change(|change| {
            pairs
                .iter()
                .try_for_each(|(key, value)| change.put(key.as_ref(), value.as_ref()))
        })
    }

    /// Removes `key`. A missing key is not an error.
    ///
    /// # Errors
    ///
    /// When the bucket was opened for reading, the key is too large, or the
    /// store fails.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        self.delete_many(&[key])
    }

    /// Removes `keys`. Those that are missing are no error.
    ///
    /// # Errors
    ///
    /// As [`Bucket::delete`], and when there are too many keys.
    pub fn delete_many<K: AsRef<str>>(&self, keys: &[K]) -> Result<(), Error> {
        self.writable()?;
        self.batch_fits(keys.len(), 0)?;
        for key in keys {
            self.key_fits(key.as_ref())?;
        }
        self.change(|change| keys.iter().try_for_each(|key| change.remove(key.as_ref())))
    }

    /// Adds to the number under `key`, from 0 where there is none, and returns
    /// the sum. The value is the number in decimal digits, as text.
    ///
    /// # Errors
    ///
    /// As [`Bucket::set`], and [`Error::NotANumber`] when the value is something
    /// else or the sum exceeds a `u64`.
    pub fn increment(&self, key: &str, by: u64) -> Result<u64, Error> {
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
        self.store.write(self.end(), |sql| {
            let mut change = Change::begin(sql, &self.scope)?;
            let result = work(&mut change)?;
            change.end(&self.scope.limits)?;
            Ok(result)
        })
    }

    fn end(&self) -> Instant {
        self.deadline.unwrap_or_else(|| {
            let now = Instant::now();
            now.checked_add(DEFAULT_TIMEOUT).unwrap_or(now)
        })
    }

    /// The parameters of a statement about it.
    fn at<T>(&self, last: T) -> (&str, &str, &str, T) {
        let BucketScope {
            owner,
            principal,
            name,
            ..
        } = &*self.scope;
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

    fn value_fits(&self, value: &[u8]) -> Result<(), Error> {
        fits(
            "value_bytes",
            value.len() as u64,
            self.scope.limits.value_bytes,
        )
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

/// Digits only: no sign, no space, nothing that another reader takes otherwise.
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
