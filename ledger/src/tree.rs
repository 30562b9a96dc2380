//! The Merkle tree of RFC 6962, section 2.1, over the leaves of the rows. This module does no I/O.
//!
//! While rows are appended, only the tree's right [`Edge`] is kept: the roots of the complete
//! subtrees that make up the tree. A proof is a list of roots of ranges of leaves.
//! [`inclusion_ranges`] and [`consistency_ranges`] return these ranges, so that a caller can
//! compute all roots while it reads each leaf once.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

use crate::record::{Hash, Hex};

/// The hash of a row's leaf.
pub fn leaf_hash(record: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(record);
    Hex(hasher.finalize().into())
}

/// The hash of an inner node.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [1; 65];
    let (_, children) = bytes.split_at_mut(1);
    let (first, second) = children.split_at_mut(32);
    first.copy_from_slice(&left.0);
    second.copy_from_slice(&right.0);
    Hex(Sha256::digest(bytes).into())
}

/// The roots of the complete subtrees of a tree, largest first: one for each 1 bit of its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    roots: Vec<Hash>,
}

impl Edge {
    /// The edge of a tree without leaves.
    pub fn new() -> Self {
        Self::default()
    }

    /// The edge of a tree of `size` leaves from the bytes of [`Edge::to_bytes`]; `None` if the
    /// number of bytes does not match.
    pub fn from_bytes(size: u64, bytes: &[u8]) -> Option<Self> {
        let (roots, rest) = bytes.as_chunks::<32>();
        let good = rest.is_empty() && roots.len() == size.count_ones() as usize;
        good.then(|| Self {
            size,
            roots: roots.iter().copied().map(Hex).collect(),
        })
    }

    /// The roots, concatenated.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.roots.iter().flat_map(|root| root.0).collect()
    }

    /// How many leaves the tree has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // Increasing the size by 1 carries over its trailing 1 bits. For each carry, two subtrees
        // become one.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.roots.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.roots.push(node);
        self.size = self.size.saturating_add(1);
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        let mut roots = self.roots.iter().rev().copied();
        match roots.next() {
            Some(last) => roots.fold(last, |right, left| node_hash(&left, &right)),
            None => Hex(Sha256::digest([]).into()),
        }
    }
}

impl FromIterator<Hash> for Edge {
    fn from_iter<I: IntoIterator<Item = Hash>>(leaves: I) -> Self {
        let mut edge = Self::new();
        leaves.into_iter().for_each(|leaf| edge.push(leaf));
        edge
    }
}

/// The ranges of leaves whose roots prove that leaf `index` is in the tree of `size` leaves, in the
/// order of the proof. Empty if the leaf is not in the tree, or is its only leaf.
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

/// The ranges of leaves whose roots prove that the tree of `size` leaves starts with the tree of
/// `old` leaves, in the order of the proof. Empty if `old` is 0, or at least `size`.
pub fn consistency_ranges(old: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    if old == 0 || old >= size {
        return ranges;
    }
    let (mut low, mut high) = (0, size);
    // Whether the range still starts at leaf 0. At the end, the range is then the old tree itself,
    // whose root the verifier knows.
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

/// The largest power of two below `size`. `size` must be at least 2.
pub(crate) fn split(size: u64) -> u64 {
    match size.checked_next_power_of_two() {
        Some(next) => next / 2,
        None => 1 << 63,
    }
}

/// Whether `proof` shows that the tree of `size` leaves with this root has `leaf` at `index`.
pub fn verify_inclusion(leaf: &Hash, index: u64, size: u64, proof: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let mut found = *leaf;
    let fits = climb(index, size - 1, proof, |hash, is_left| {
        found = match is_left {
            true => node_hash(hash, &found),
            false => node_hash(&found, hash),
        };
    });
    fits && found == *root
}

/// Climbs to the root from a node; `last` is the last node of the same level. `step` gets each hash
/// of the proof, and whether it is on the left. Returns whether the proof leads to the root.
fn climb<'p>(
    mut node: u64,
    mut last: u64,
    proof: impl IntoIterator<Item = &'p Hash>,
    mut step: impl FnMut(&Hash, bool),
) -> bool {
    for hash in proof {
        if last == 0 {
            return false;
        }
        let is_left = node & 1 == 1 || node == last;
        step(hash, is_left);
        while is_left && node & 1 == 0 && node != 0 {
            node >>= 1;
            last >>= 1;
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0
}

/// Whether `proof` shows that the tree of `size` leaves with root `new_root` starts with the tree
/// of `old` leaves with root `old_root`. Returns false for an empty old tree, since it would prove
/// nothing.
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
    let (mut before, mut after) = (*first, *first);
    let (node, last) = ((old - 1) >> shift, (size - 1) >> shift);
    let fits = climb(node, last, hashes, |hash, is_left| {
        if is_left {
            before = node_hash(hash, &before);
            after = node_hash(hash, &after);
        } else {
            after = node_hash(&after, hash);
        }
    });
    fits && before == *old_root && after == *new_root
}
