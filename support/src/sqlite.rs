//! What all SQLite files of Toolward have in common: a private place, a schema that says whose file and which
//! version it is, write-ahead logging, and settings with which nothing in a file runs.
//!
//! A crate that keeps something in a file says which tables it has ([`Schema`]), opens connections ([`open`]),
//! and has the tables made or recognised ([`Schema::prepare`]). Where a disk takes nothing any more,
//! [`open_unwritable`] still reads.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use toolward_support::sqlite::{OpenMode, Schema};
//!
//! static SCHEMA: Schema = Schema {
//!     application_id: 0x544c_4558,
//!     version: 1,
//!     tables: "CREATE TABLE visit (number INTEGER PRIMARY KEY) STRICT;",
//!     owner: "an example",
//! };
//!
//! # fn main() -> Result<(), toolward_support::sqlite::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("private/example.sqlite");
//! let path = toolward_support::files::private_file(&path)?;
//! let mut connection = toolward_support::sqlite::open(&path, OpenMode::Write)?;
//! SCHEMA.prepare(&mut connection, Instant::now() + Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```

mod connection;
mod error;
mod schema;
mod unwritable;

pub use connection::{OpenMode, harden, open, shorten_log, wait_for_disk};
pub use error::Error;
pub use schema::Schema;
pub use unwritable::{Unwritable, open_untouched, open_unwritable};
