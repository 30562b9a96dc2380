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
//! Without the feature `sqlite` (on by default) all types are there, and no [`Store`] can
//! be made.
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

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod access;
mod error;
mod limits;
mod page;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(not(feature = "sqlite"))]
#[path = "absent.rs"]
mod sqlite;

pub use access::Access;
pub use error::Error;
pub use limits::Limits;
pub use page::Page;
pub use sqlite::{Bucket, Store};
