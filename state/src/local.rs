//! State in this process and on this machine.

#[cfg(feature = "sqlite")]
pub(crate) mod buckets;
