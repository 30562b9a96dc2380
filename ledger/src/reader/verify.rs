//! Verifies a ledger: compares each row with its leaf, the tree of the rows with each checkpoint
//! and the head, and each payload with its commitment.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::Connection;
use serde::Serialize;

use crate::append::{head, prunes, unsigned};
use crate::checkpoint::Checkpoint;
use crate::directory::GROUP;
use crate::error::Error;
use crate::payload::commitment;
use crate::reader::Reader;
use crate::record::{Hash, Hex};
use crate::tree::{Edge, leaf_hash};

/// The most findings that are returned.
const MAX_FINDINGS: usize = 100;

/// A problem that verification found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Finding {
    /// The row's record does not match its leaf.
    #[error("row {seq}: its record is not the one that was written")]
    Row {
        /// The row.
        seq: u64,
    },
    /// The row's record is missing, and was not pruned.
    #[error("row {seq}: its record is missing, and was not pruned")]
    Emptied {
        /// The row.
        seq: u64,
    },
    /// Rows are missing.
    #[error("rows {from} up to {to} are missing")]
    Missing {
        /// The first missing row.
        from: u64,
        /// The first row that exists again.
        to: u64,
    },
    /// Rows were changed, moved, inserted or deleted: the tree up to `to` is not what was signed.
    #[error("rows {from} up to {to}: changed, moved, inserted or deleted after they were signed")]
    Between {
        /// The first row that may be concerned.
        from: u64,
        /// The first row after them.
        to: u64,
    },
    /// The ledger is shorter than a checkpoint.
    #[error("{found} rows are there, and {expected} were signed")]
    Shorter {
        /// The rows that exist.
        found: u64,
        /// The rows that were signed.
        expected: u64,
    },
    /// The checkpoint is invalid: it is of another ledger, is not signed by this ledger's key, has
    /// a wrong size or edge, or differs from the checkpoint of the same size that was kept
    /// elsewhere.
    #[error(
        "the checkpoint of {size} rows is not this ledger's, or another than the one kept elsewhere"
    )]
    Checkpoint {
        /// Its size.
        size: u64,
    },
    /// The head (the stored size and edge of the tree) does not match the rows: either the head or
    /// rows after the newest checkpoint were changed.
    #[error("rows from {from} on: the head is not the tree of the rows")]
    Head {
        /// The first row that may be concerned.
        from: u64,
    },
    /// The payload differs from what was recorded.
    #[error("the payload {commitment} is not the one that was recorded")]
    Payload {
        /// The commitment.
        commitment: Hash,
    },
}

/// The result of verifying a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifiedLedger {
    /// The number of rows.
    pub rows: u64,
    /// Rows below this one are signed.
    pub signed: u64,
    /// How many records were pruned.
    pub pruned: u64,
    /// How many payloads were compared with their commitments.
    pub payloads: u64,
    /// The first 100 findings.
    pub findings: Vec<Finding>,
}

impl VerifiedLedger {
    /// Whether nothing was found.
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, finding: Finding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// The tree that a checkpoint signs.
struct Signed {
    root: Hash,
    /// The tree's edge as the file has it; `None` if the file has none that matches the root.
    edge: Option<Edge>,
}

impl Reader {
    /// Verifies the whole ledger, also against checkpoints that were kept elsewhere.
    ///
    /// # Errors
    /// Errors of the file. Findings are part of the result.
    pub fn verify(&mut self, elsewhere: &[Checkpoint]) -> Result<VerifiedLedger, Error> {
        let mut found = VerifiedLedger::default();
        // Reads all rows from one state, even if others append in the meantime.
        self.records.execute_batch("BEGIN")?;
        let walked = self.walk(elsewhere, &mut found);
        self.records.execute_batch("COMMIT")?;
        walked?;
        if let Some(payloads) = &self.payloads {
            match verify_payloads(payloads, &mut found) {
                // Payloads may be lost, and unreadable ones count as lost.
                Err(Error::Corrupt(error)) => {
                    tracing::warn!(%error, "the ledger's payloads are damaged");
                }
                verified => verified?,
            }
        }
        Ok(found)
    }

    fn walk(&self, elsewhere: &[Checkpoint], found: &mut VerifiedLedger) -> Result<(), Error> {
        let head = head(&self.records)?;
        let signed = self.signed(elsewhere, found)?;
        let mut next = signed.iter().peekable();
        // The edge of the rows so far. After missing or changed rows, it is `None` until the next
        // checkpoint with an edge. `good` is the size of the last checkpoint so far.
        let mut edge = Some(Edge::new());
        let (mut size, mut good) = (0_u64, 0);
        // The row before which records were pruned: `pruned` according to rows below a checkpoint,
        // `said` according to all rows so far.
        let (mut pruned, mut said) = (0, 0);
        let mut emptied: Vec<Range<u64>> = Vec::new();
        let mut statement = self
            .records
            .prepare("SELECT seq, leaf, record FROM entry ORDER BY seq")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let seq = unsigned(row.get(0)?)?;
            if seq != size {
                found.add(Finding::Missing {
                    from: size,
                    to: seq,
                });
                edge = None;
                said = pruned;
                while let Some((known, signed)) = next.next_if(|(size, _)| **size <= seq) {
                    good = *known;
                    edge = signed.edge.clone().filter(|_| *known == seq);
                }
            }
            size = seq.saturating_add(1);
            let leaf: Hash = Hex(row.get(1)?);
            match row.get_ref(2)?.as_blob_or_null() {
                Ok(Some(record)) if leaf_hash(record) == leaf => said = said.max(prunes(record)),
                Ok(None) => match emptied.last_mut() {
                    Some(last) if last.end == seq => last.end = size,
                    _ => emptied.push(seq..size),
                },
                _ => found.add(Finding::Row { seq }),
            }
            if let Some(edge) = &mut edge {
                edge.push(leaf);
            }
            if let Some((_, signed)) = next.next_if(|(known, _)| **known == size) {
                if edge.as_ref().is_some_and(|edge| edge.root() != signed.root) {
                    found.add(Finding::Between {
                        from: good,
                        to: size,
                    });
                    edge = None;
                }
                match edge {
                    Some(_) => (found.signed, pruned) = (size, said),
                    None => said = pruned,
                }
                edge = edge.or_else(|| signed.edge.clone());
                good = size;
            }
        }
        found.rows = size;
        for (size, _) in next {
            found.add(Finding::Shorter {
                found: found.rows,
                expected: *size,
            });
        }
        // Only whole groups are pruned, from the first row up to the limit that a signed row
        // states.
        let pruned = pruned / GROUP * GROUP;
        for range in &emptied {
            found.pruned += range.end - range.start;
            for seq in (range.start.max(pruned)..range.end).take(MAX_FINDINGS) {
                found.add(Finding::Emptied { seq });
            }
        }
        if edge != Some(head) {
            found.add(Finding::Head { from: good });
        }
        Ok(())
    }

    /// The roots that were signed, by size.
    fn signed(
        &self,
        elsewhere: &[Checkpoint],
        found: &mut VerifiedLedger,
    ) -> Result<BTreeMap<u64, Signed>, Error> {
        let mut all = BTreeMap::new();
        for (size, note, edge) in self.checkpoints()? {
            match self.verifier.open(&note) {
                Ok(checkpoint) if checkpoint.size == size => {
                    let root = checkpoint.root;
                    let edge = Edge::from_bytes(size, &edge).filter(|edge| edge.root() == root);
                    if edge.is_none() {
                        found.add(Finding::Checkpoint { size });
                    }
                    all.insert(size, Signed { root, edge });
                }
                _ => found.add(Finding::Checkpoint { size }),
            }
        }
        for Checkpoint { size, root } in elsewhere {
            let known = all.entry(*size).or_insert(Signed {
                root: *root,
                edge: None,
            });
            if known.root != *root {
                found.add(Finding::Checkpoint { size: *size });
            }
        }
        // A checkpoint of zero rows covers no row to compare.
        all.remove(&0);
        Ok(all)
    }
}

fn verify_payloads(sql: &Connection, found: &mut VerifiedLedger) -> Result<(), Error> {
    let mut statement = sql.prepare("SELECT commitment, salt, kind, bytes FROM payload")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let hash: Hash = Hex(row.get(0)?);
        let kind: String = row.get(2)?;
        let bytes = row.get_ref(3)?.as_blob().unwrap_or_default();
        if commitment(&row.get(1)?, &kind, bytes) != hash {
            found.add(Finding::Payload { commitment: hash });
        }
        found.payloads += 1;
    }
    Ok(())
}
