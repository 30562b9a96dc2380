//! Cassettes: files with calls of a ledger, for replay. A cassette contains the calls' rows, their
//! payloads, the salts of the commitments to the payloads, and proofs that the rows are below a
//! checkpoint of the ledger: the checkpoint covers them. This module does no I/O.
//!
//! If any part of a cassette does not match the checkpoint, the commitments or the other rows, the
//! whole cassette is invalid.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use toolward_support::report::codes;

use crate::checkpoint::{Checkpoint, NoteError, Verifier};
use crate::payload::{PayloadKind, commitment};
use crate::record::{
    Call, Content, Event, Hash, Hex, Invocation, Number, Outcome, Part, Person, Record, Tool,
};
use crate::tree::{leaf_hash, verify_inclusion};

/// The most bytes of a cassette, which is read into memory.
pub const MAX_CASSETTE_BYTES: usize = 64 * 1024 * 1024;
/// The most rows of a cassette.
pub const MAX_CASSETTE_ROWS: usize = 20_000;
/// The most bytes of a line, enough for a row with four payloads of 64 KiB in base64.
pub(crate) const MAX_LINE_BYTES: usize = 512 * 1024;
/// The version of the cassette format.
pub(crate) const FORMAT: u8 = 1;

/// The checked calls of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cassette {
    /// The name of the ledger: `toolward.ledger/…`.
    pub origin: String,
    /// Whether the ledger whose key was given to [`Cassette::read`] signed the cassette's
    /// checkpoint. If no key was given, anyone may have made the cassette.
    pub is_verified: bool,
    /// The calls, in the order in which they ended.
    pub calls: Vec<CassetteCall>,
}

/// A call of a cassette. The name of its principal is not in the cassette.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassetteCall {
    /// Its id.
    pub invocation: Invocation,
    /// The random id of the principal.
    pub person: Option<Person>,
    /// The tool with its publisher and bundle.
    pub tool: Part<Tool>,
    /// When its end was recorded, in microseconds since 1970.
    pub at: Number,
    /// Its input, as it was recorded.
    pub input: Vec<u8>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its output, as it was recorded; `None` if it failed.
    pub output: Option<Vec<u8>>,
    /// The details of its failure, if they were kept.
    pub detail: Option<Vec<u8>>,
}

const CHANGED: &str = "the file was changed: get it again from who exported it";

codes! {
    /// Why a file is not a cassette. Lines are counted from 1.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CassetteError: Error {
        Form(line: usize) = "cassette-invalid", "the file is not a cassette, or was cut: a line has another form or is missing",
            ("line {line}: not a line of a cassette")
            => "export it again: `toolward ledger export --cassette FILE`";
        Version(found: u8) = "cassette-version", "the cassette is from another version of Toolward",
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
            "a row of a cassette occurs twice, is out of order, or belongs to an incomplete call or to a call that a tool made",
            ("line {line}: not a row of a whole call that no tool made, or a row that was there before") => CHANGED;
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CassetteHead {
    pub(crate) cassette: u8,
    /// The checkpoint, as it was signed.
    pub(crate) checkpoint: String,
    /// The ledger's public key, in the form of a verifier key of C2SP signed-note.
    pub(crate) key: String,
    /// How many lines follow.
    pub(crate) rows: usize,
}

/// Each further line: a row.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CassetteLine {
    pub(crate) payloads: Vec<LinePayload>,
    /// Hashes in base64.
    pub(crate) proof: Vec<String>,
    /// The record, as it was written.
    pub(crate) record: String,
    pub(crate) seq: u64,
}

/// A payload that a row commits to.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinePayload {
    /// Base64.
    pub(crate) bytes: String,
    pub(crate) kind: String,
    pub(crate) salt: Hash,
}

/// The longest proof: a tree has fewer than 2^64 rows.
const MAX_PROOF_HASHES: usize = 64;

impl Cassette {
    /// The digits at the end of [`origin`](Self::origin), as bytes; `None` if they are not 32
    /// hexadecimal digits.
    pub fn ledger(&self) -> Option<Hex<16>> {
        Hex::parse(self.origin.rsplit('/').next()?)
    }

    /// Reads a cassette of the ledger with this key. Without a key, accepts a cassette of any
    /// ledger, and [`is_verified`](Self::is_verified) is false.
    ///
    /// # Errors
    /// Why the bytes are not a cassette.
    pub fn read(bytes: &[u8], ledger: Option<&Verifier>) -> Result<Self, CassetteError> {
        if bytes.len() > MAX_CASSETTE_BYTES {
            return Err(CassetteError::Large);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| CassetteError::Form(1))?;
        let mut lines = text.split_terminator('\n');
        if !text.ends_with('\n') {
            return Err(CassetteError::Form(lines.count().max(1)));
        }
        let head: CassetteHead = line(lines.next().unwrap_or_default(), 1)?;
        if head.cassette != FORMAT {
            return Err(CassetteError::Version(head.cassette));
        }
        if head.rows > MAX_CASSETTE_ROWS {
            return Err(CassetteError::Large);
        }
        let named = Verifier::from_vkey(&head.key).ok_or(CassetteError::Form(1))?;
        if ledger.is_some_and(|ledger| *ledger != named) {
            return Err(CassetteError::Key);
        }
        let checkpoint = named.open(&head.checkpoint).map_err(|error| match error {
            NoteError::Form => CassetteError::Form(1),
            _ => CassetteError::Checkpoint,
        })?;
        let mut calls = Calls::default();
        let mut last = None;
        let mut read = 0;
        for (number, text) in (2..).zip(lines) {
            if read == head.rows {
                return Err(CassetteError::Form(number));
            }
            let row: CassetteLine = line(text, number)?;
            if last.is_some_and(|last| row.seq <= last) {
                return Err(CassetteError::Rows(number));
            }
            last = Some(row.seq);
            let record = proved(&row, &checkpoint, number)?;
            calls.add(record, payloads(&row, number)?, number)?;
            read += 1;
        }
        if read != head.rows {
            return Err(CassetteError::Form(read + 2));
        }
        if !calls.started.is_empty() {
            return Err(CassetteError::Rows(read + 1));
        }
        Ok(Self {
            origin: named.origin().to_owned(),
            is_verified: ledger.is_some(),
            calls: calls.ended,
        })
    }
}

fn line<'t, T: serde::Deserialize<'t>>(text: &'t str, number: usize) -> Result<T, CassetteError> {
    if text.len() > MAX_LINE_BYTES {
        return Err(CassetteError::Large);
    }
    serde_json::from_str(text).map_err(|_| CassetteError::Form(number))
}

/// The record of a row. Fails if the row's proof does not show that the row is below the
/// checkpoint.
fn proved(
    row: &CassetteLine,
    checkpoint: &Checkpoint,
    number: usize,
) -> Result<Record, CassetteError> {
    if row.proof.len() > MAX_PROOF_HASHES {
        return Err(CassetteError::Proof(number));
    }
    let hash = |text: &String| {
        let bytes = STANDARD.decode(text).ok()?;
        Hash::from_slice(&bytes)
    };
    let proof: Option<Vec<Hash>> = row.proof.iter().map(hash).collect();
    let proof = proof.ok_or(CassetteError::Form(number))?;
    let leaf = leaf_hash(row.record.as_bytes());
    if !verify_inclusion(&leaf, row.seq, checkpoint.size, &proof, &checkpoint.root) {
        return Err(CassetteError::Proof(number));
    }
    Record::parse(row.record.as_bytes()).map_err(|_| CassetteError::Form(number))
}

/// The payloads of a row by kind, each with its commitment.
type Payloads = HashMap<PayloadKind, (Hash, Vec<u8>)>;

fn payloads(row: &CassetteLine, number: usize) -> Result<Payloads, CassetteError> {
    let mut found = Payloads::new();
    for payload in &row.payloads {
        let mut kinds = [PayloadKind::Input, PayloadKind::Output, PayloadKind::Detail].into_iter();
        let kind = kinds.find(|kind| kind.as_str() == payload.kind);
        let kind = kind.ok_or(CassetteError::Form(number))?;
        let bytes = STANDARD.decode(&payload.bytes);
        let bytes = bytes.map_err(|_| CassetteError::Form(number))?;
        let hash = commitment(&payload.salt.0, kind.as_str(), &bytes);
        if found.insert(kind, (hash, bytes)).is_some() {
            return Err(CassetteError::Payload(number));
        }
    }
    Ok(found)
}

/// Takes the payload of this kind, which must match the record's commitment; `None` if the line has
/// no such payload.
fn take(
    payloads: &mut Payloads,
    kind: PayloadKind,
    content: Option<&Content>,
    number: usize,
) -> Result<Option<Vec<u8>>, CassetteError> {
    let Some((hash, bytes)) = payloads.remove(&kind) else {
        return Ok(None);
    };
    let fits = content.is_some_and(|content| {
        content.commitment == Some(hash) && content.size.get() == bytes.len() as u64
    });
    match fits {
        true => Ok(Some(bytes)),
        false => Err(CassetteError::Payload(number)),
    }
}

/// The calls read so far.
#[derive(Default)]
struct Calls {
    started: HashMap<Invocation, (Call, Vec<u8>)>,
    ended: Vec<CassetteCall>,
}

impl Calls {
    fn add(
        &mut self,
        record: Record,
        mut payloads: Payloads,
        number: usize,
    ) -> Result<(), CassetteError> {
        let rows = || CassetteError::Rows(number);
        let missing = || CassetteError::Payload(number);
        let at = record.at;
        let mut taken =
            |kind, content: &Option<Content>| take(&mut payloads, kind, content.as_ref(), number);
        match record.event {
            // A call that ended with a question starts again under the same id, once the question
            // is answered.
            Event::Started(body) if !self.started.contains_key(&body.invocation) => {
                let input = taken(PayloadKind::Input, &body.call.input)?.ok_or_else(missing)?;
                self.started.insert(body.invocation, (body.call, input));
            }
            Event::Ended(body) => {
                let (call, input) = match (body.call, self.started.remove(&body.invocation)) {
                    (None, Some(started)) => started,
                    (Some(call), None) => {
                        let input = taken(PayloadKind::Input, &call.input)?.ok_or_else(missing)?;
                        (call, input)
                    }
                    _ => return Err(rows()),
                };
                let outcome = body.outcome;
                let output = taken(PayloadKind::Output, &outcome.output)?;
                let detail = taken(PayloadKind::Detail, &outcome.detail)?;
                if outcome.code.is_none() && output.is_none() {
                    return Err(missing());
                }
                if call.parent.is_some() {
                    return Err(rows());
                }
                self.ended.push(CassetteCall {
                    invocation: body.invocation,
                    person: call.person,
                    tool: call.tool.ok_or_else(rows)?,
                    at,
                    input,
                    outcome,
                    output,
                    detail,
                });
            }
            _ => return Err(rows()),
        }
        // The payloads that were not taken do not belong to this row.
        match payloads.is_empty() {
            true => Ok(()),
            false => Err(missing()),
        }
    }
}
