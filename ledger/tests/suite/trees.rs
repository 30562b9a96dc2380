//! Compares the tree with the definition of RFC 6962, which is written here literally.

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use toolward_ledger::record::{Hash, Hex};
use toolward_ledger::tree::{
    Edge, consistency_ranges, inclusion_ranges, leaf_hash, verify_consistency, verify_inclusion,
};

fn sha(parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    Hex(hasher.finalize().into())
}

/// The largest power of two below `n`.
fn split(n: usize) -> usize {
    (0..)
        .map(|bit| 1 << bit)
        .take_while(|power| *power < n)
        .last()
        .unwrap()
}

/// Section 2.1.
fn root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => sha(&[]),
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            sha(&[&[1], &root(left).0, &root(right).0])
        }
    }
}

/// Section 2.1.1.
fn path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut hashes, other) = match index < left.len() {
        true => (path(index, left), right),
        false => (path(index - left.len(), right), left),
    };
    hashes.push(root(other));
    hashes
}

/// Section 2.1.2.
fn subproof(old: usize, leaves: &[Hash], known: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if known {
            Vec::new()
        } else {
            vec![root(leaves)]
        };
    }
    let (left, right) = leaves.split_at(split(leaves.len()));
    let (mut hashes, other) = match old <= left.len() {
        true => (subproof(old, left, known), right),
        false => (subproof(old - left.len(), right, false), left),
    };
    hashes.push(root(other));
    hashes
}

fn leaves(count: usize) -> Vec<Hash> {
    (0..count)
        .map(|number| leaf_hash(&number.to_be_bytes()))
        .collect()
}

fn roots(ranges: Vec<std::ops::Range<u64>>, leaves: &[Hash]) -> Vec<Hash> {
    let range = |range: std::ops::Range<u64>| range.start as usize..range.end as usize;
    ranges
        .into_iter()
        .map(|own| leaves[range(own)].iter().copied().collect::<Edge>().root())
        .collect()
}

#[test]
fn the_hashes_are_those_of_the_rfc() {
    let hex = |hash: Hash| hash.to_string();
    assert_eq!(
        hex(Edge::new().root()),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
    assert_eq!(
        hex(leaf_hash(b"")),
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    );
    // The leaf of a row that contains an inner node's bytes differs from that node.
    let (left, right) = (leaf_hash(b"a"), leaf_hash(b"b"));
    let forged = [left.0, right.0].concat();
    assert_ne!(
        leaf_hash(&forged),
        [left, right].into_iter().collect::<Edge>().root()
    );
}

#[test]
fn edges_and_proofs_are_those_of_the_definition_for_all_small_trees() {
    let all = leaves(70);
    for size in 0..=all.len() {
        let leaves = &all[..size];
        let edge: Edge = leaves.iter().copied().collect();
        assert_eq!(edge.root(), root(leaves));
        assert_eq!(Edge::from_bytes(size as u64, &edge.to_bytes()), Some(edge));
        for index in 0..size {
            let proof = roots(inclusion_ranges(index as u64, size as u64), leaves);
            assert_eq!(proof, path(index, leaves));
        }
        for old in 1..size {
            let proof = roots(consistency_ranges(old as u64, size as u64), leaves);
            assert_eq!(proof, subproof(old, leaves, true));
        }
    }
}

#[test]
fn an_edge_of_another_size_is_none() {
    let edge: Edge = leaves(7).into_iter().collect();
    let bytes = edge.to_bytes();
    for size in [0, 1, 6, 8] {
        assert_eq!(Edge::from_bytes(size, &bytes), None);
    }
    assert_eq!(Edge::from_bytes(7, &bytes[1..]), None);
}

#[test]
fn sizes_that_are_too_large_end() {
    for size in [u64::MAX, u64::MAX - 1, (1 << 63) + 1] {
        assert!(inclusion_ranges(size - 1, size).len() <= 64);
        assert!(consistency_ranges(size - 1, size).len() <= 65);
        assert!(!verify_inclusion(
            &Hex([0; 32]),
            size - 1,
            size,
            &[],
            &Hex([0; 32])
        ));
        assert!(!verify_consistency(
            size - 1,
            size,
            &Hex([0; 32]),
            &Hex([0; 32]),
            &[Hex([0; 32]); 64]
        ));
    }
    assert!(inclusion_ranges(5, 5).is_empty());
    assert!(consistency_ranges(6, 5).is_empty());
}

proptest! {
    #[test]
    fn a_proof_holds_for_its_own_place_and_no_other(size in 1_usize..200, index in 0_usize..200, other in 0_usize..200) {
        let leaves = leaves(size);
        let (index, other) = (index % size, other % size);
        let (root, size) = (root(&leaves), size as u64);
        let proof = roots(inclusion_ranges(index as u64, size), &leaves);
        prop_assert!(verify_inclusion(&leaves[index], index as u64, size, &proof, &root));
        if index != other {
            prop_assert!(!verify_inclusion(&leaves[other], index as u64, size, &proof, &root));
            prop_assert!(!verify_inclusion(&leaves[index], other as u64, size, &proof, &root));
        }
        for at in 0..proof.len() {
            let mut wrong = proof.clone();
            wrong[at].0[0] ^= 1;
            prop_assert!(!verify_inclusion(&leaves[index], index as u64, size, &wrong, &root));
            wrong.remove(at);
            prop_assert!(!verify_inclusion(&leaves[index], index as u64, size, &wrong, &root));
        }
        let longer = [proof.clone(), vec![root]].concat();
        prop_assert!(!verify_inclusion(&leaves[index], index as u64, size, &longer, &root));
    }

    #[test]
    fn a_tree_is_shown_to_grow_and_no_other_is(old in 1_usize..200, more in 1_usize..100, change in 0_usize..200) {
        let all = leaves(old + more);
        let before = root(&all[..old]);
        let (old_size, size) = (old as u64, all.len() as u64);
        let proof = roots(consistency_ranges(old_size, size), &all);
        prop_assert!(verify_consistency(old_size, size, &before, &root(&all), &proof));
        let mut other = all.clone();
        other[change % old].0[0] ^= 1;
        let forged = roots(consistency_ranges(old_size, size), &other);
        prop_assert!(!verify_consistency(old_size, size, &before, &root(&other), &forged));
        prop_assert!(!verify_consistency(old_size, size, &before, &root(&other), &proof));
    }
}
