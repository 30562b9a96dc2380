//! Counts the memory that the host holds for one call: the values behind handles, header fields,
//! bodies, captured output, records. This memory and the guest's linear memories together count
//! against the call's memory limit ([`super::limiter`]).
//!
//! Each allocation adds to a sum. A host call can only add a bounded amount, so the sum is compared
//! with the limit only when the host returns to the guest ([`super::call_hook`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// The overhead of any handle: its entries in the tables of store and guest, its value, its entry
/// among the children of another handle, and the state for waiting on it (`wasi:io/poll`).
pub(crate) const HANDLE: u64 = 1024;

/// The memory that the host holds for one store.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The bytes that the store itself counts.
    bytes: u64,
    /// The part of `bytes` that is freed with a handle, by the handle's number in the table.
    by_handle: Vec<u64>,
    /// The peak number of open handles. The table never shrinks.
    handles: u64,
    /// The memory of the call's network access.
    network: u64,
    shared: Shared,
}

impl Held {
    /// All bytes together.
    pub(crate) fn total(&self) -> u64 {
        self.bytes
            .saturating_add(self.handles.saturating_mul(HANDLE))
            .saturating_add(self.network)
            .saturating_add(self.shared.bytes())
    }

    /// Counts bytes that are held until the store is dropped.
    pub(crate) fn keep(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Updates the peak number of open handles.
    pub(crate) fn open(&mut self, handles: u64) {
        self.handles = self.handles.max(handles);
    }

    /// Sets the current memory of the call's network access.
    pub(crate) fn network(&mut self, bytes: u64) {
        self.network = bytes;
    }

    /// Counts bytes that are held until the handle `number` is closed.
    pub(crate) fn add(&mut self, number: u32, bytes: u64) {
        let index = number as usize;
        if index >= self.by_handle.len() {
            self.by_handle.resize(index.saturating_add(1), 0);
        }
        if let Some(own) = self.by_handle.get_mut(index) {
            *own = own.saturating_add(bytes);
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Subtracts a part of the bytes that are held with a handle.
    pub(crate) fn sub(&mut self, number: u32, bytes: u64) {
        let Some(own) = self.by_handle.get_mut(number as usize) else {
            return;
        };
        let bytes = bytes.min(*own);
        *own = own.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Subtracts all bytes that are held with a handle, and returns their number.
    pub(crate) fn free(&mut self, number: u32) -> u64 {
        let own = self.by_handle.get_mut(number as usize);
        let bytes = own.map_or(0, std::mem::take);
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes
    }

    /// The bytes that are held with a handle.
    pub(crate) fn of(&self, number: u32) -> u64 {
        let own = self.by_handle.get(number as usize);
        own.copied().unwrap_or(0)
    }

    /// Moves the held bytes from one handle to another.
    pub(crate) fn pass(&mut self, from: u32, to: u32) {
        let bytes = self.free(from);
        self.add(to, bytes);
    }

    /// The counter for streams and tasks, which have no access to the store.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// Counts the memory that streams and tasks hold. Clones share the counter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<AtomicU64>);

impl Shared {
    fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts `bytes` until the returned value is dropped.
    pub(crate) fn hold(&self, bytes: u64) -> HeldBytes {
        self.keep(bytes);
        HeldBytes {
            counter: self.clone(),
            bytes,
        }
    }

    /// Counts `bytes` until [`Self::give_back`], or until the attempt ends.
    pub(crate) fn keep(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Subtracts bytes that were [kept](Self::keep).
    pub(crate) fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The same bytes, counted until the last copy of them is dropped.
    pub(crate) fn count(&self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() {
            return bytes;
        }
        let share = self.hold((bytes.len() as u64).saturating_add(CHUNK));
        Bytes::from_owner(Counted {
            bytes,
            _share: share,
        })
    }
}

/// The memory that a chunk of a body takes in addition to its bytes.
pub(crate) const CHUNK: u64 = 128;

/// Bytes that a call holds, which are subtracted when this is dropped.
pub(crate) struct HeldBytes {
    counter: Shared,
    bytes: u64,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.counter.give_back(self.bytes);
    }
}

struct Counted {
    bytes: Bytes,
    _share: HeldBytes,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_with_a_handle_goes_when_it_goes() {
        let mut held = Held::default();
        held.add(3, 100);
        held.add(3, 50);
        held.add(0, 7);
        held.sub(3, 20);
        assert_eq!((held.total(), held.of(3)), (137, 130));
        held.pass(3, 9);
        assert_eq!((held.of(3), held.of(9)), (0, 130));
        assert_eq!(held.free(9), 130);
        assert_eq!(held.free(9), 0);
        assert_eq!(held.total(), 7);
        held.sub(0, 1000);
        assert_eq!(held.total(), 0);
    }

    #[test]
    fn the_most_handles_count_and_what_is_kept_stays() {
        let mut held = Held::default();
        held.open(3);
        held.open(1);
        held.keep(5);
        assert_eq!(held.total(), 3 * HANDLE + 5);
    }

    #[test]
    fn bytes_count_until_their_last_copy_is_gone() {
        let held = Held::default();
        let bytes = held.shared().count(Bytes::from_static(b"abcd"));
        let copy = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(held.total(), 4 + CHUNK);
        assert_eq!(&copy[..], b"b");
        drop(copy);
        assert_eq!(held.total(), 0);
    }
}
