//! Key-value buckets of tools, kept in one SQLite file.
//!
//! A bucket belongs to one publisher and one principal: [`Store::bucket`] is
//! told both by the host, and nothing that a guest says can change them. What a
//! bucket takes is bounded by [`Limits`]; how long one operation takes, by the
//! bucket's deadline. Who may open which bucket is decided elsewhere.
//!
//! Everything here blocks. In an async host, call it where blocking is allowed:
//! a [`Bucket`] is `Send`, `Sync` and cheap to clone for that.
//!
//! ```
//! use toolward_keyvalue::{Access, Limits, Store};
//!
//! # fn main() -> Result<(), toolward_keyvalue::Error> {
//! let store = Store::in_memory()?;
//! let bucket = store.bucket("acme", "alice", "counters", Access::Write, Limits::default());
//! bucket.set("greeting", b"hello")?;
//! assert_eq!(bucket.get("greeting")?.as_deref(), Some(&b"hello"[..]));
//! assert_eq!(bucket.increment("visits", 2)?, 2);
//! # Ok(())
//! # }
//! ```

mod bucket;
mod connection;
mod error;
mod limits;
mod pool;
mod schema;
mod store;
mod write;

pub use bucket::{Access, Bucket, Page};
pub use error::Error;
pub use limits::Limits;
pub use store::Store;
