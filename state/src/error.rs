//! Why a store could not be opened, or an operation on a bucket was refused or
//! failed.

use toolward_support::codes;

/// An operation was refused, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store's directory or file can't be used safely.
    #[error(transparent)]
    Unusable(#[from] toolward_support::files::Error),
    /// The file is not a store, or is damaged.
    #[error("the key-value store is damaged, or another program's file: {0}")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file was made by another version of this crate.
    #[error("the key-value store has schema {found}; this version reads schema {expected}")]
    Version {
        /// The file's.
        found: i64,
        /// This crate's.
        expected: i64,
    },
    /// Others used the store until the deadline.
    #[error("the key-value store was busy until the deadline")]
    Busy,
    /// The operation was not done at the deadline, and was undone.
    #[error("the key-value store was not done at the deadline")]
    Deadline,
    /// The store did not answer: the operation may have been done.
    #[error("it is unknown whether the key-value store did it")]
    Unknown,
    /// A key, a value or an operation is larger than allowed.
    #[error("`{limit}` exceeded: {used} of {allowed} allowed")]
    TooLarge {
        /// The limit's name, as in [`crate::Limits`].
        limit: &'static str,
        /// What was asked for.
        used: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// The bucket, or the number of buckets, would grow beyond its quota.
    #[error("quota `{limit}` exceeded: {used} of {allowed} allowed")]
    Quota {
        /// The limit's name, as in [`crate::Limits`].
        limit: &'static str,
        /// What it would have grown to.
        used: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// A change through a bucket that was opened for reading.
    #[error("the bucket was opened for reading")]
    ReadOnly,
    /// The value to increment is not a number, or the sum is too large.
    #[error("the value can't be incremented: {0}")]
    NotANumber(&'static str),
    /// The disk is full.
    #[error("the disk of the key-value store is full")]
    Full,
    /// The operating system or SQLite failed.
    #[error("the key-value store failed: {0}")]
    Io(#[source] Box<dyn std::error::Error + Send + Sync>),
}

codes! {
    for Error {
        Self::Unusable(_) = "store-unusable",
            "name another place for the store, or repair owner and mode of this one";
        Self::Corrupt(_) = "store-corrupt",
            "move the file away, with those of the same name that end in -wal and -shm, and \
             put a copy back that was made while no host was running; without one, the host \
             begins with an empty store";
        Self::Version { found, expected } = "store-version", if found > expected {
            "update toolward"
        } else {
            "use the version of toolward that made the file"
        };
        Self::Busy = "store-busy",
            "find out which process holds the store, or allow the call more time";
        Self::Deadline = "store-deadline",
            "find out which process holds the store, or allow the call more time";
        Self::Unknown = "store-unknown", "look at the value before the change is made again";
        Self::TooLarge { .. } = "too-large", "raise the limit, if the tool is to have more";
        Self::Quota { .. } = "quota-exceeded", "raise the limit, if the tool is to have more";
        Self::ReadOnly = "bucket-read-only";
        Self::NotANumber(_) = "not-a-number";
        Self::Full = "disk-full", "make room on the disk";
        Self::Io(_) = "store-io";
    }
}
