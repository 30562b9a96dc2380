//! The state behind a host: small traits with one implementation: [`Local`] for this process, and
//! [`Store`] for the buckets on this machine.
//!
//! An operation that may wait gets the deadline of its call. It may fail with an unknown outcome.
//! Each trait specifies which operations may be repeated in that case.
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
//! Without the feature `sqlite` (on by default), [`Store`] does not exist. Without `sealing` (on by
//! default), [`Local`] seals nothing.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod approvals;
mod buckets;
mod calls;
mod error;
mod keys;
mod leases;
mod local;

use std::pin::Pin;

pub use approvals::{
    ApprovalKey, Approvals, MAX_QUESTIONS, MAX_QUESTIONS_PER_TOOL, Opening, PersonsAnswer,
    QuestionId, QuestionWatch, RememberedApproval,
};
pub use buckets::{Access, BucketOperation, BucketReply, BucketScope, Buckets, Limits};
pub use calls::{Begun, CallDigest, CallEnding, CallId, Calls, MAX_REPLY_BYTES, StoredReply};
pub use error::{Error, StateError, detach, settled};
pub use keys::{Binding, Keys, Unsealed};
pub use leases::{
    CallPlace, Leases, PlaceLimits, PlaceReply, Places, PlacesOf, QueueFull, ServedBundles,
    Withdrawal,
};
pub use local::Local;
pub use local::approvals::{Denials, DenialsError};
#[cfg(feature = "sqlite")]
pub use local::buckets::Store;
pub use local::leases::places_of_process;

/// The future that a method of a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The state that hosts share, except for buckets.
pub trait HostState: Approvals + Calls + Keys + Leases {}

impl<T: Approvals + Calls + Keys + Leases> HostState for T {}
