//! The binary form of a record's values, in which a recording process sends them to its recorder.
//!
//! Each value has exactly one form, of at least one byte, and all other bytes are refused. Values
//! are checked as in a line of JSON, and take memory only once their bytes were read. Numbers are
//! little-endian. The form of a record has at most twice the bytes of its line.

use std::collections::BTreeMap;

/// A value with a binary form.
pub(crate) trait Wire: Sized {
    /// Appends the value.
    fn put(&self, to: &mut Vec<u8>);

    /// Reads a value, and removes its bytes; `None` if the bytes don't start with one.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

impl<const N: usize> Wire for [u8; N] {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        from.split_off(..N)?.try_into().ok()
    }
}

impl Wire for u64 {
    fn put(&self, to: &mut Vec<u8>) {
        self.to_le_bytes().put(to);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Wire::take(from).map(Self::from_le_bytes)
    }
}

impl Wire for bool {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let [byte] = Wire::take(from)?;
        [false, true].get(usize::from(byte)).copied()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match bool::take(from)? {
            true => T::take(from).map(Some),
            false => Some(None),
        }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|item| item.put(to));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        // If the count is too high, the bytes end first.
        (0..u64::take(from)?).map(|_| T::take(from)).collect()
    }
}

/// The keys are in strictly rising order.
impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u64).put(to);
        self.iter().for_each(|(key, value)| {
            key.put(to);
            value.put(to);
        });
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let items = (0..u64::take(from)?).map(|_| K::take(from).zip(V::take(from)));
        let items: Vec<_> = items.collect::<Option<_>>()?;
        let is_rising = items.is_sorted_by(|(key, _), (next, _)| key < next);
        is_rising.then(|| items.into_iter().collect())
    }
}
