//! Answers the requests of a running driver: each request is checked against the grant, and
//! counted.

mod buckets;
mod budget;
mod host;
mod secrets;
mod tools;

pub use toolward_sandbox::imports::*;

pub(crate) use self::buckets::BucketCounters;
pub(crate) use self::budget::CallBudget;
pub(crate) use self::host::{HostImports, Reports};
pub(crate) use self::secrets::{CallSecrets, StoredSecrets};
pub(crate) use self::tools::{CallTools, NestedCalls, SlotCell};
