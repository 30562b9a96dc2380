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

const CHANGED: &str = "the file was changed: get it again from who exported it";

codes! {
    /// Why a file is not a cassette. Lines are counted from 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CassetteError: Error {
        Form(line: usize) = "cassette-invalid", "not a cassette, or cut: a line has another form or is missing",
            ("line {line}: not a line of a cassette")
            => "export it again: `toolward ledger export --cassette FILE`";
        Version(found: u8) = "cassette-version", "the cassette is another version's",
            ("the cassette has version {found}; this version reads 1") => "export it again with this version of toolward";
        Large = "cassette-too-large", "the cassette is larger than 64 MiB, or has more than 20,000 rows"
            => "export fewer rows or fewer principals";
        Key = "cassette-key", "the cassette is of another ledger than the one whose key is given"
            => "name the key that signed it with --cassette-key; `toolward ledger info` of the ledger that it is from \
                shows it";
        Checkpoint = "cassette-checkpoint", "the cassette's checkpoint is not signed by the key that it names" => CHANGED;
        Proof(line: usize) = "cassette-proof", "a row of a cassette is not proved to be below its checkpoint",
            ("line {line}: the row is not below the checkpoint") => CHANGED;
        Payload(line: usize) = "cassette-payload", "a payload of a cassette is missing, or not the one that was recorded",
            ("line {line}: a payload is not the one that was recorded") => CHANGED;
        Rows(line: usize) = "cassette-rows",
            "a row of a cassette comes twice or out of order, is of no whole call, or of a call that a tool made",
            ("line {line}: not a row of a whole call that no tool made, or a row that was there before") => CHANGED;
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
