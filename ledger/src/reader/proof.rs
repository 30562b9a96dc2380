//! Proofs for anyone who has checkpoints but not the rows: that a row is in the ledger, or that
//! rows were only appended between two checkpoints.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::reader::Reader;
use crate::record::Hash;
use crate::tree::{Edge, consistency_ranges, inclusion_ranges, node_hash, split, verify_inclusion};

/// The first line of a proof in the format C2SP tlog-proof.
const HEADER: &str = "c2sp.org/tlog-proof@v1";

/// Proofs of rows under one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proofs {
    /// The checkpoint, as it was signed.
    pub note: String,
    /// Size and root that it signs.
    pub checkpoint: Checkpoint,
    /// The hashes that prove each row below the checkpoint.
    pub rows: BTreeMap<u64, Vec<Hash>>,
}

impl Reader {
    /// Proofs that these rows are in the tree of the newest checkpoint; later rows are left out.
    /// Reads all leaves once, for any number of rows.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`] without a checkpoint, [`Error::Differs`] if the checkpoint signs
    /// other rows.
    pub fn proofs(&self, seqs: impl IntoIterator<Item = u64>) -> Result<Proofs, Error> {
        let note = self.newest_checkpoint()?.ok_or(Error::NoCheckpoint)?;
        let checkpoint = self.verifier.open(&note).map_err(Error::key)?;
        let size = checkpoint.size;
        let below = seqs.into_iter().filter(|seq| *seq < size);
        let ranges: BTreeMap<u64, Vec<Range<u64>>> = below
            .map(|seq| (seq, inclusion_ranges(seq, size)))
            .collect();
        let mut trees = Subtrees::default();
        for range in ranges.values().flatten() {
            trees.ask(range.clone());
        }
        let mut edge = Edge::new();
        self.leaves(0, size, |leaf| {
            edge.push(leaf);
            trees.push(leaf);
        })?;
        let differs = || Error::Differs("the rows are not those of the checkpoint");
        if edge.root() != checkpoint.root {
            return Err(differs());
        }
        let mut rows = BTreeMap::new();
        for (seq, ranges) in ranges {
            let proof = ranges.into_iter().map(|range| trees.root(range));
            let proof = proof.collect::<Option<Vec<_>>>().ok_or_else(differs)?;
            let leaf = self.row(seq)?.leaf;
            if !verify_inclusion(&leaf, seq, size, &proof, &checkpoint.root) {
                return Err(differs());
            }
            rows.insert(seq, proof);
        }
        Ok(Proofs {
            note,
            checkpoint,
            rows,
        })
    }

    /// A proof (C2SP tlog-proof) that the row is in the tree of the newest checkpoint.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`] while no checkpoint covers the row, [`Error::Differs`] if the
    /// checkpoint signs other rows.
    pub fn prove(&self, seq: u64) -> Result<String, Error> {
        let Proofs { note, mut rows, .. } = self.proofs([seq])?;
        let proof = rows.remove(&seq).ok_or(Error::NoCheckpoint)?;
        let mut text = format!("{HEADER}\nindex {seq}\n");
        for hash in proof {
            text.push_str(&STANDARD.encode(hash.0));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&note);
        Ok(text)
    }

    /// The hashes which prove (RFC 6962, section 2.1.2) that the tree of `size` rows starts with
    /// the tree of `old` rows.
    ///
    /// # Errors
    /// [`Error::NoRow`] if the ledger has fewer than `size` rows.
    pub fn prove_consistency(&self, old: u64, size: u64) -> Result<Vec<Hash>, Error> {
        if size > self.size()? {
            return Err(Error::NoRow(size.to_string().into()));
        }
        let root = |range: Range<u64>| {
            let mut edge = Edge::new();
            self.leaves(range.start, range.end, |leaf| edge.push(leaf))?;
            Ok(edge.root())
        };
        let ranges = consistency_ranges(old, size).into_iter();
        ranges.map(root).collect()
    }
}

/// Computes the roots of requested ranges while leaves are pushed. Holds only these roots and one
/// path of the tree.
#[derive(Default)]
struct Subtrees {
    asked: HashMap<(u64, u64), Option<Hash>>,
    /// Complete subtrees so far, largest first: where each starts, its size and root.
    path: Vec<(u64, u64, Hash)>,
    size: u64,
}

impl Subtrees {
    /// Requests the root of a range of [`inclusion_ranges`]. If the range is not a complete
    /// subtree, it is the right end of a tree: then requests the roots of the complete subtrees
    /// that it consists of.
    fn ask(&mut self, range: Range<u64>) {
        let (start, length) = (range.start, range.end - range.start);
        if length.is_power_of_two() {
            self.asked.entry((start, length)).or_default();
        } else if length > 0 {
            let middle = start + split(length);
            self.ask(start..middle);
            self.ask(middle..range.end);
        }
    }

    fn push(&mut self, leaf: Hash) {
        let (mut start, mut length, mut root) = (self.size, 1, leaf);
        self.size += 1;
        self.found(start, length, root);
        while let Some((before, as_long, left)) = self.path.pop_if(|(_, size, _)| *size == length) {
            (start, length, root) = (before, as_long * 2, node_hash(&left, &root));
            self.found(start, length, root);
        }
        self.path.push((start, length, root));
    }

    fn found(&mut self, start: u64, length: u64, root: Hash) {
        if let Some(asked) = self.asked.get_mut(&(start, length)) {
            *asked = Some(root);
        }
    }

    fn root(&self, range: Range<u64>) -> Option<Hash> {
        let (start, length) = (range.start, range.end.checked_sub(range.start)?);
        if length.is_power_of_two() {
            return *self.asked.get(&(start, length))?;
        }
        let middle = start.checked_add(split(length))?;
        let (left, right) = (self.root(start..middle)?, self.root(middle..range.end)?);
        Some(node_hash(&left, &right))
    }
}
