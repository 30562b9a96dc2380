//! The record of calls: a row for each, under a Merkle tree (RFC 6962) that is signed now and then (C2SP
//! checkpoints), so that whoever has a signed checkpoint sees whether a row was changed, deleted or moved. What
//! callers and tools wrote lies in a second file, from which it can be erased. The book's page about the format says
//! what that proves against whom.

mod append;
pub mod checkpoint;
mod entry;
mod error;
mod given;
mod maintenance;
mod opening;
pub mod payload;
mod place;
pub mod record;
mod schema;
mod sessions;
pub mod tree;
mod writer;

pub use entry::{Entry, Given, Repeated};
pub use error::Error;
pub use maintenance::Maintenance;
pub use writer::{Durability, Options, Pending, Recorder, Writer};
