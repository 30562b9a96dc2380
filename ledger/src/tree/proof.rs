//! Inclusion and consistency: which hashes prove it (RFC 6962, sections 2.1.1 and 2.1.2), and whether they do
//! (RFC 9162, sections 2.1.3.2 and 2.1.4.2).

use std::ops::Range;

use crate::record::Hash;
use crate::tree::node_hash;

/// The ranges of leaves whose roots prove that leaf `index` is in the tree of `size` leaves, in the order of the
/// proof. Empty if it is not, or is the only one.
#[must_use]
pub fn inclusion_ranges(index: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if index >= size {
        return ranges;
    }
    let (mut low, mut high) = (0, size);
    while high - low > 1 {
        let middle = low + split(high - low);
        if index < middle {
            ranges.push(middle..high);
            high = middle;
        } else {
            ranges.push(low..middle);
            low = middle;
        }
    }
    ranges.reverse();
    ranges
}

/// The ranges of leaves whose roots prove that the tree of `size` leaves begins with the tree of `old` leaves, in
/// the order of the proof. Empty if `old` is 0, `size` or more.
#[must_use]
pub fn consistency_ranges(old: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if old == 0 || old >= size {
        return ranges;
    }
    let (mut low, mut high) = (0, size);
    // Whether what is left is a complete subtree that the old tree consists of alone: its root is known.
    let mut known = true;
    while old != high {
        let middle = low + split(high - low);
        if old <= middle {
            ranges.push(middle..high);
            high = middle;
        } else {
            ranges.push(low..middle);
            low = middle;
            known = false;
        }
    }
    if !known {
        ranges.push(low..high);
    }
    ranges.reverse();
    ranges
}

/// The largest power of two below `size`, which is at least 2.
pub(crate) fn split(size: u64) -> u64 {
    match size.checked_next_power_of_two() {
        Some(next) => next / 2,
        None => 1 << 63,
    }
}

/// Whether `proof` shows that the tree of `size` leaves with this root has `leaf` at `index`.
#[must_use]
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last) = (index, size - 1);
    let mut found = *leaf;
    for hash in proof {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            found = node_hash(hash, &found);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            found = node_hash(&found, hash);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && found == *root
}

/// Whether `proof` shows that the tree of `size` leaves with root `new_root` begins with the tree of `old` leaves
/// with root `old_root`. Of no tree it is shown that it begins with an empty one: that says nothing.
#[must_use]
pub fn verify_consistency(
    old: u64,
    size: u64,
    old_root: &Hash,
    new_root: &Hash,
    proof: &[Hash],
) -> bool {
    if old == 0 || old > size {
        return false;
    }
    if old == size {
        return proof.is_empty() && old_root == new_root;
    }
    let mut hashes = proof.iter();
    let first = match old.is_power_of_two() {
        true => Some(old_root),
        false => hashes.next(),
    };
    let Some(first) = first else { return false };
    let shift = (old - 1).trailing_ones();
    let (mut node, mut last) = ((old - 1) >> shift, (size - 1) >> shift);
    let (mut before, mut after) = (*first, *first);
    for hash in hashes {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            before = node_hash(hash, &before);
            after = node_hash(hash, &after);
            while node & 1 == 0 && node != 0 {
                node >>= 1;
                last >>= 1;
            }
        } else {
            after = node_hash(&after, hash);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && before == *old_root && after == *new_root
}
