//! Key-value buckets of tools: the trait, and the values that cross it.

use std::time::Instant;

use crate::BoxFuture;
use crate::error::Error;

/// The buckets of tools. Who may open which bucket is decided elsewhere.
///
/// An operation is done as a whole, or fails and changes nothing, unless it ends with [`Error::Unknown`]. Only an
/// increment can't be repeated safely then: everything else has the same effect twice. A change that has returned is
/// seen by all later reads.
pub trait Buckets: Send + Sync {
    /// Does `operation` on a bucket, which comes into being with its first key.
    ///
    /// # Errors
    ///
    /// [`Error`]: if the bucket's limits or its user's access forbid it, the deadline passes, or the store fails.
    fn operate(
        &self,
        bucket: BucketScope,
        operation: BucketOperation,
        deadline: Instant,
    ) -> BoxFuture<'_, Result<BucketReply, Error>>;
}

/// One bucket, and what its user may do with it. Owner, principal and name are separate: no text in one of them can
/// reach into another.
#[derive(Debug, Clone)]
pub struct BucketScope {
    /// The publisher whose bucket it is.
    pub owner: String,
    /// The principal whose data it has.
    pub principal: String,
    /// Its name.
    pub name: String,
    /// What it is opened for.
    pub access: Access,
    /// What it may hold.
    pub limits: Limits,
}

/// What a bucket was opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The limits of one bucket. Keys are counted in bytes of UTF-8; the size of a bucket is the sum of its keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key.
    pub key_bytes: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Keys in the bucket.
    pub bucket_keys: u64,
    /// Bytes in the bucket.
    pub bucket_bytes: u64,
    /// Buckets of one publisher and principal that hold something. Counts where
    /// a publisher may make up names.
    pub buckets: u64,
    /// Keys of one operation on many.
    pub batch_keys: u64,
    /// Bytes that one operation on many reads or writes.
    pub batch_bytes: u64,
    /// Keys of one page of a listing.
    pub page_keys: u64,
    /// Bytes of one page of a listing. A page has one key at least, however
    /// large that is.
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

/// What is done with a bucket.
#[derive(Debug)]
pub enum BucketOperation {
    /// Opens it. Nothing is read or made.
    Open,
    /// The value of a key.
    Get(String),
    /// Whether a key has a value.
    Exists(String),
    /// A page of keys, from a cursor on. A key that exists from the first page to the last is in exactly one of them.
    Keys {
        /// The cursor of the page before.
        cursor: Option<u64>,
    },
    /// The values of keys, in their order.
    GetMany(Vec<String>),
    /// Sets the value of a key.
    Set(String, Vec<u8>),
    /// Deletes a key. A missing key is not an error.
    Delete(String),
    /// Adds to the number that is the value of a key, from 0 if there is none. The value is the number in decimal
    /// digits, as text.
    Increment(String, u64),
    /// Sets the values of keys; of two for one key the last counts.
    SetMany(Vec<(String, Vec<u8>)>),
    /// Deletes keys.
    DeleteMany(Vec<String>),
}

impl BucketOperation {
    /// Whether it changes the bucket.
    pub fn writes(&self) -> bool {
        !matches!(
            self,
            Self::Open | Self::Get(_) | Self::Exists(_) | Self::Keys { .. } | Self::GetMany(_)
        )
    }

    /// Bytes of keys and values that it moves to the store.
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
    /// It is done.
    Done,
    /// The value, if the key has one.
    Value(Option<Vec<u8>>),
    /// Whether the key has a value.
    Exists(bool),
    /// A page of keys, in the order in which they first came into the bucket.
    Keys {
        /// The keys.
        keys: Vec<String>,
        /// Where the next page starts; `None` after the last.
        cursor: Option<u64>,
    },
    /// The keys that have values, with their values.
    Values(Vec<Option<(String, Vec<u8>)>>),
    /// The sum.
    Number(u64),
}

impl BucketReply {
    /// Bytes of keys and values that it moves from the store.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Done | Self::Exists(_) | Self::Number(_) => 0,
            Self::Value(value) => value.as_ref().map_or(0, Vec::len),
            Self::Keys { keys, .. } => keys.iter().map(String::len).sum(),
            Self::Values(values) => values.iter().flatten().map(|(_, value)| value.len()).sum(),
        }
    }
}
