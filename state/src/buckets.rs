//! Key-value buckets of tools: the trait, and the values that cross it.

use std::time::Instant;

use crate::BoxFuture;
use crate::error::Error;

/// The buckets of tools. Another component decides who may open which bucket.
///
/// An operation is done as a whole, or fails and changes nothing, unless it ends with
/// [`Error::Unknown`]. In that case, all operations except increments can be repeated safely. After
/// a change has returned, all reads see it.
pub trait Buckets: Send + Sync {
    /// Does `operation` on a bucket. A bucket is created with its first key.
    ///
    /// # Errors
    ///
    /// [`Error`] if the bucket's limits or its user's access forbid the operation, the deadline
    /// passes, or the store fails.
    fn operate(
        &self,
        bucket: BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<BucketReply, Error>>;
}

/// One bucket, and the access of its user. Owner, principal and name are separate, so that no text
/// in one can be confused with another.
#[derive(Debug, Clone)]
pub struct BucketScope {
    /// The publisher that owns the bucket.
    pub owner: String,
    /// The principal whose data it has.
    pub principal: String,
    /// Its name.
    pub name: String,
    /// The access for which it is opened.
    pub access: Access,
    /// The limits on its contents.
    pub limits: Limits,
}

/// The access for which a bucket was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The limits of one bucket. Keys are counted in bytes of UTF-8. The size of a bucket is the sum of
/// its keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a key.
    pub key_bytes: u64,
    /// The most bytes of a value.
    pub value_bytes: u64,
    /// The most keys in the bucket.
    pub bucket_keys: u64,
    /// The most bytes in the bucket.
    pub bucket_bytes: u64,
    /// The most buckets of one publisher and principal that are not empty.
    pub buckets: u64,
    /// The most keys of one operation on many keys.
    pub batch_keys: u64,
    /// The most bytes that one operation on many keys reads or writes.
    pub batch_bytes: u64,
    /// The most keys of one page of a listing.
    pub page_keys: u64,
    /// The most bytes of one page of a listing. A page has at least one key, even if this key is
    /// larger.
    pub page_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            key_bytes: 1 << 10,
            value_bytes: 128 << 10,
            bucket_keys: 10_000,
            bucket_bytes: 16 << 20,
            buckets: 64,
            batch_keys: 1000,
            batch_bytes: 1 << 20,
            page_keys: 1000,
            page_bytes: 256 << 10,
        }
    }
}

/// An operation on a bucket.
#[derive(Debug)]
pub enum BucketOperation {
    /// Opens the bucket. Nothing is read or created.
    Open,
    /// The value of a key.
    Get(String),
    /// Whether a key has a value.
    Exists(String),
    /// A page of keys, from a cursor on. A key that exists from the first page to the last is on
    /// exactly one page.
    Keys {
        /// The cursor from the previous page; `None` for the first page.
        cursor: Option<u64>,
    },
    /// The values of keys, in their order.
    GetMany(Vec<String>),
    /// Sets the value of a key.
    Set(String, Vec<u8>),
    /// Deletes a key. A missing key is not an error.
    Delete(String),
    /// Adds to the number in a key's value; a missing key counts as 0. The value is the number as
    /// decimal text.
    Increment(String, u64),
    /// Sets the values of keys. If a key occurs twice, its last value counts.
    SetMany(Vec<(String, Vec<u8>)>),
    /// Deletes keys.
    DeleteMany(Vec<String>),
}

impl BucketOperation {
    /// Whether the operation changes the bucket.
    pub fn writes(&self) -> bool {
        !matches!(
            self,
            Self::Open | Self::Get(_) | Self::Exists(_) | Self::Keys { .. } | Self::GetMany(_)
        )
    }

    /// The bytes of keys and values that the operation moves to the store.
    pub fn bytes(&self) -> usize {
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

/// The reply to a [`BucketOperation`].
#[derive(Debug, PartialEq, Eq)]
pub enum BucketReply {
    /// The operation is done.
    Done,
    /// The value, if the key has one.
    Value(Option<Vec<u8>>),
    /// Whether the key has a value.
    Exists(bool),
    /// A page of keys, in the order in which they first came into the bucket.
    Keys {
        /// The keys.
        keys: Vec<String>,
        /// Where the next page starts; `None` after the last page.
        cursor: Option<u64>,
    },
    /// Each requested key with its value, in the order of the request; `None` for a key without a
    /// value.
    Values(Vec<Option<(String, Vec<u8>)>>),
    /// The sum.
    Number(u64),
}

impl BucketReply {
    /// The bytes of values and listed keys that the reply moves from the store.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Done | Self::Exists(_) | Self::Number(_) => 0,
            Self::Value(value) => value.as_ref().map_or(0, Vec::len),
            Self::Keys { keys, .. } => keys.iter().map(String::len).sum(),
            Self::Values(values) => values.iter().flatten().map(|(_, value)| value.len()).sum(),
        }
    }
}
