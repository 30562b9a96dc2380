//! What one bucket may hold and one operation may move. Only numbers; they are
//! enforced where something is stored or read.

/// The limits of one bucket. Keys are counted in bytes of UTF-8; a bucket's
/// bytes are those of its keys and values together.
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
