//! The Merkle tree of RFC 6962, section 2.1, over the leaves of the rows. Pure.
//!
//! What is kept while rows are appended is the tree's right [`Edge`]: the roots of the complete subtrees that it
//! consists of. A proof is a list of roots of ranges of leaves ([`inclusion_ranges`], [`consistency_ranges`]), so
//! that whoever has the leaves reads each of them once.

mod edge;
mod proof;

use sha2::{Digest as _, Sha256};

pub use edge::Edge;
#[cfg(feature = "sqlite")]
pub(crate) use proof::split;
pub use proof::{consistency_ranges, inclusion_ranges, verify_consistency, verify_inclusion};

use crate::record::{Hash, Hex};

/// The hash of a row's leaf.
#[must_use]
pub fn leaf_hash(record: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([0]);
    hasher.update(record);
    Hex(hasher.finalize().into())
}

/// The hash of an inner node.
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [1; 65];
    let (_, children) = bytes.split_at_mut(1);
    let (first, second) = children.split_at_mut(32);
    first.copy_from_slice(&left.0);
    second.copy_from_slice(&right.0);
    Hex(Sha256::digest(bytes).into())
}

/// The root of a tree without leaves.
fn empty_root() -> Hash {
    Hex(Sha256::digest([]).into())
}
