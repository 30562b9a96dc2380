//! The buckets in an SQLite file.

mod address;
mod bucket;
mod connection;
mod error;
mod pool;
mod schema;
mod store;
mod write;

pub use bucket::Bucket;
pub use store::Store;
