//! A page of a listing of keys.

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Keys, in the order in which they first came into the bucket.
    pub keys: Vec<String>,
    /// What gives the next page; `None` after the last one.
    pub cursor: Option<u64>,
}
