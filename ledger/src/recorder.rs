//! Who records calls: [`Writer`](crate::Writer) in this process, or something that reaches one elsewhere.

use crate::entry::{Entry, Given, Repeated};
use crate::payload::PayloadKind;
use crate::pending::Pending;

/// When an append is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once the row is on the disk.
    Disk,
    /// Once it is in the queue. It is written within 20 ms.
    Queued,
}

/// What records calls.
pub trait Recorder: Send + Sync {
    /// Records an entry. It is in the queue when this returns, unless the queue is full: then it gets there once
    /// the answer is awaited.
    fn append(&self, entry: Entry, durability: Durability) -> Pending<()>;

    /// Waits until all that was appended before is on the disk.
    fn flush(&self) -> Pending<()>;

    /// Whether an id was given before, by this principal for this tool.
    fn given(&self, given: Given) -> Pending<Option<Repeated>>;

    /// The most bytes of a payload that is kept; 0 where none is. `matters` is [`Entry::matters`]. Of a longer one
    /// the size is enough ([`Entry::size`]).
    fn keeps(&self, kind: PayloadKind, matters: bool) -> usize {
        let _ = (kind, matters);
        usize::MAX
    }
}
