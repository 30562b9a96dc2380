//! Buckets in one SQLite file. Everything in here blocks.

mod bucket;
mod connection;
mod operate;
mod pool;
mod schema;
mod store;
mod write;

pub use bucket::{Bucket, Page};
pub use store::Store;
