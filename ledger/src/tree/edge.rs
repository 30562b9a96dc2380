//! The right edge of a tree: all that appending needs.

use crate::record::{Hash, Hex};
use crate::tree::{empty_root, node_hash};

/// The roots of the complete subtrees of a tree, largest first: one for each bit of its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edge {
    size: u64,
    roots: Vec<Hash>,
}

impl Edge {
    /// The edge of a tree without leaves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The edge of a tree of `size` leaves from the bytes that [`Edge::to_bytes`] gave; `None` for another number
    /// of bytes.
    #[must_use]
    pub fn from_bytes(size: u64, bytes: &[u8]) -> Option<Self> {
        let (roots, rest) = bytes.as_chunks::<32>();
        let good = rest.is_empty() && roots.len() == size.count_ones() as usize;
        good.then(|| Self {
            size,
            roots: roots.iter().copied().map(Hex).collect(),
        })
    }

    /// The roots, one behind the other.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.roots.iter().flat_map(|root| root.0).collect()
    }

    /// How many leaves the tree has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut node = leaf;
        // A subtree is complete for each bit that carries over.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.roots.pop() {
                node = node_hash(&left, &node);
            }
        }
        self.roots.push(node);
        self.size = self.size.saturating_add(1);
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut roots = self.roots.iter().rev().copied();
        match roots.next() {
            Some(last) => roots.fold(last, |right, left| node_hash(&left, &right)),
            None => empty_root(),
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
