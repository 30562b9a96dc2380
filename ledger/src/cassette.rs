//! Cassettes: calls of a ledger in one file, with their payloads, the salts of these, and the proofs that their rows
//! are below a checkpoint of the ledger. Pure.
//!
//! A cassette is read only as a whole: what in it does not fit the checkpoint, the commitments or the other rows
//! makes all of it invalid.

mod read;
#[cfg(feature = "sqlite")]
mod write;

use serde::{Deserialize, Serialize};

#[cfg(feature = "sqlite")]
pub(crate) use write::Writing;

use crate::record::{Hash, Invocation, Number, Outcome, Part, Person, Tool};
use toolward_support::report::codes;

/// The most bytes of a cassette: it is read into memory.
pub const MAX_CASSETTE_BYTES: usize = 64 * 1024 * 1024;
/// The most rows of a cassette.
pub const MAX_CASSETTE_ROWS: usize = 20_000;
/// The most bytes of a line: a row with four payloads of 64 KiB in base64.
const MAX_LINE_BYTES: usize = 512 * 1024;
/// The version of the form.
const FORMAT: u8 = 1;

/// Calls of a ledger, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cassette {
    /// The name of the ledger: `toolward.ledger/…`.
    pub origin: String,
    /// Whether its checkpoint is one of the ledger that was named. If not, anybody may have made it.
    pub is_verified: bool,
    /// The calls, in the order in which they ended.
    pub calls: Vec<CassetteCall>,
}

/// A call of a cassette. Its principal is known by the ledger alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassetteCall {
    /// Its id.
    pub invocation: Invocation,
    /// The random id of the principal.
    pub person: Option<Person>,
    /// The tool, and whose it is.
    pub tool: Part<Tool>,
    /// When its end was recorded, in microseconds since 1970.
    pub at: Number,
    /// Its input, as it was recorded.
    pub input: Vec<u8>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its output, as it was recorded; none where it failed.
    pub output: Option<Vec<u8>>,
    /// What was said about its failure, if that was kept.
    pub detail: Option<Vec<u8>>,
}

/// Why a file is not a cassette. Lines are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// A line has another form, or a line is missing.
    #[error("line {0}: not a line of a cassette")]
    Form(usize),
    /// Another version of the form.
    #[error("the cassette has version {0}; this version reads 1")]
    Version(u8),
    /// More bytes or rows than are read.
    #[error("the cassette is larger than 64 MiB, or has more than 20,000 rows")]
    Large,
    /// The checkpoint is another ledger's than the one that was named.
    #[error("the cassette is of another ledger than the one whose key is given")]
    Key,
    /// The checkpoint does not hold.
    #[error("the cassette's checkpoint is not signed by the key that it names")]
    Checkpoint,
    /// A row is not proved to be below the checkpoint.
    #[error("line {0}: the row is not below the checkpoint")]
    Proof(usize),
    /// A payload is not the one that was recorded.
    #[error("line {0}: a payload is not the one that was recorded")]
    Payload(usize),
    /// The rows are not those of whole calls, each once.
    #[error(
        "line {0}: not a row of a whole call that no tool made, or a row that was there before"
    )]
    Rows(usize),
}

codes! {
    for CassetteError {
        Self::Form(_) = "cassette-invalid", "export it again: `toolward ledger export --cassette FILE`";
        Self::Version(_) = "cassette-version", "export it again with this version of toolward";
        Self::Large = "cassette-too-large", "export fewer rows or fewer principals";
        Self::Key = "cassette-key",
            "name the key that signed it with --cassette-key; `toolward ledger info` of the ledger that it is from \
             shows it";
        Self::Checkpoint = "cassette-checkpoint", "the file was changed: get it again from who exported it";
        Self::Proof(_) = "cassette-proof", "the file was changed: get it again from who exported it";
        Self::Payload(_) = "cassette-payload", "the file was changed: get it again from who exported it";
        Self::Rows(_) = "cassette-rows", "the file was changed: get it again from who exported it";
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    cassette: u8,
    /// The checkpoint, as it was signed.
    checkpoint: String,
    /// The verifier key (signed-note) of the ledger.
    key: String,
    /// How many lines follow.
    rows: usize,
}

/// Each further line: a row.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    payloads: Vec<LinePayload>,
    /// Hashes in base64.
    proof: Vec<String>,
    /// The record, as it was written.
    record: String,
    seq: u64,
}

/// A payload that a row commits to.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinePayload {
    /// Base64.
    bytes: String,
    kind: String,
    salt: Hash,
}
