//! The state behind a host: small traits, and their one implementation, [`Store`], on this machine.
//!
//! Each operation gets the deadline of the call that waits for it. It may fail without anyone knowing whether it happened:
//! each trait specifies what may be repeated then.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use toolward_state::{Access, BucketOperation, BucketReply, BucketScope, Buckets, Limits, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), toolward_state::Error> {
//! let buckets: Box<dyn Buckets> = Box::new(Store::in_memory()?);
//! let bucket = BucketScope {
//!     owner: "acme".to_owned(),
//!     principal: "alice".to_owned(),
//!     name: "counters".to_owned(),
//!     access: Access::Write,
//!     limits: Limits::default(),
//! };
//! let deadline = Instant::now() + Duration::from_secs(5);
//! let visit = BucketOperation::Increment("visits".to_owned(), 2);
//! let reply = buckets.operate(bucket, visit, deadline).await?;
//! assert_eq!(reply, BucketReply::Number(2));
//! # Ok(())
//! # }
//! ```
//!
//! Without the feature `sqlite` (on by default) there is no [`Store`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod buckets;
mod error;
mod local;

use std::pin::Pin;

pub use buckets::{Access, BucketOperation, BucketReply, BucketScope, Buckets, Limits};
pub use error::Error;
#[cfg(feature = "sqlite")]
pub use local::buckets::{Bucket, Page, Store};

/// A future of a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
