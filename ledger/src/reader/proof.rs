//! Proofs that a row is in the ledger, or that a ledger only grew, for those who have checkpoints and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;
use crate::reader::Reader;
use crate::record::Hash;
use crate::tree::{Edge, consistency_ranges, inclusion_ranges};

/// What a proof of C2SP tlog-proof begins with.
const HEADER: &str = "c2sp.org/tlog-proof@v1";

impl Reader {
    /// A proof (C2SP tlog-proof) that the row is in the tree of the newest checkpoint.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`] while none covers the row, [`Error::Differs`] if the rows are not those that it
    /// signs.
    pub fn prove(&self, seq: u64) -> Result<String, Error> {
        let note = self.newest_checkpoint()?.ok_or(Error::NoCheckpoint)?;
        let checkpoint = self.verifier.open(&note).map_err(Error::key)?;
        if seq >= checkpoint.size {
            return Err(Error::NoCheckpoint);
        }
        let proof = self.roots(&inclusion_ranges(seq, checkpoint.size))?;
        let leaf = self.row(seq)?.leaf;
        let (size, root) = (checkpoint.size, checkpoint.root);
        if !crate::tree::verify_inclusion(&leaf, seq, size, &proof, &root) {
            return Err(Error::Differs("the rows are not those of the checkpoint"));
        }
        let mut text = format!("{HEADER}\nindex {seq}\n");
        for hash in proof {
            text.push_str(&STANDARD.encode(hash.0));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&note);
        Ok(text)
    }

    /// The hashes which prove (RFC 6962, section 2.1.2) that the tree of `size` rows begins with that of `old` rows.
    ///
    /// # Errors
    /// [`Error::NoRow`] if there are fewer rows.
    pub fn prove_consistency(&self, old: u64, size: u64) -> Result<Vec<Hash>, Error> {
        if size > self.size()? {
            return Err(Error::NoRow(size.to_string().into()));
        }
        self.roots(&consistency_ranges(old, size))
    }

    fn roots(&self, ranges: &[std::ops::Range<u64>]) -> Result<Vec<Hash>, Error> {
        let root = |range: &std::ops::Range<u64>| {
            let mut edge = Edge::new();
            self.leaves(range.start, range.end, |leaf| edge.push(leaf))?;
            Ok(edge.root())
        };
        ranges.iter().map(root).collect()
    }
}
