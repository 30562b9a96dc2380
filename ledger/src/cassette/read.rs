//! Reads a cassette, and holds everything in it against the checkpoint.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{
    Cassette, CassetteCall, CassetteError, FORMAT, Head, Line, MAX_CASSETTE_BYTES,
    MAX_CASSETTE_ROWS, MAX_LINE_BYTES,
};
use crate::checkpoint::{Checkpoint, NoteError, Verifier};
use crate::payload::{PayloadKind, commitment};
use crate::record::{Call, Content, Event, Hash, Hex, Invocation, Outcome, Record};
use crate::tree::{leaf_hash, verify_inclusion};

/// The longest proof: a tree has less than 2^64 rows.
const MAX_PROOF_HASHES: usize = 64;

impl Cassette {
    /// Reads a cassette of the ledger with this key; of any, unverified, where there is none.
    ///
    /// # Errors
    /// Why it is not one.
    pub fn read(bytes: &[u8], ledger: Option<&Verifier>) -> Result<Self, CassetteError> {
        if bytes.len() > MAX_CASSETTE_BYTES {
            return Err(CassetteError::Large);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| CassetteError::Form(1))?;
        let mut lines = text.split_terminator('\n');
        if !text.ends_with('\n') {
            return Err(CassetteError::Form(lines.count().max(1)));
        }
        let head: Head = line(lines.next().unwrap_or_default(), 1)?;
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
            let row: Line = line(text, number)?;
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

/// The record of a row that is below the checkpoint.
fn proved(row: &Line, checkpoint: &Checkpoint, number: usize) -> Result<Record, CassetteError> {
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

/// Payloads of a row by their kinds; each belongs to one commitment.
type Payloads = HashMap<PayloadKind, (Hash, Vec<u8>)>;

fn payloads(row: &Line, number: usize) -> Result<Payloads, CassetteError> {
    let mut found = Payloads::new();
    for payload in &row.payloads {
        let kind = match payload.kind.as_str() {
            "input" => PayloadKind::Input,
            "output" => PayloadKind::Output,
            "detail" => PayloadKind::Detail,
            _ => return Err(CassetteError::Form(number)),
        };
        let bytes = STANDARD.decode(&payload.bytes);
        let bytes = bytes.map_err(|_| CassetteError::Form(number))?;
        let hash = commitment(&payload.salt.0, kind.as_str(), &bytes);
        if found.insert(kind, (hash, bytes)).is_some() {
            return Err(CassetteError::Payload(number));
        }
    }
    Ok(found)
}

/// Takes the payload that a record commits to.
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

/// Calls so far.
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
        let mut with_input = |call: &Call| {
            let input = take(
                &mut payloads,
                PayloadKind::Input,
                call.input.as_ref(),
                number,
            )?;
            input.ok_or_else(missing)
        };
        match record.event {
            // A call that asked a question starts again with its answer, under the same id.
            Event::Started(body) if !self.started.contains_key(&body.invocation) => {
                let input = with_input(&body.call)?;
                self.started.insert(body.invocation, (body.call, input));
            }
            Event::Ended(body) => {
                let (call, input) = match (body.call, self.started.remove(&body.invocation)) {
                    (None, Some(started)) => started,
                    (Some(call), None) => {
                        let input = with_input(&call)?;
                        (call, input)
                    }
                    _ => return Err(rows()),
                };
                let ended = result(body.outcome, &mut payloads, number)?;
                let (outcome, output, detail) = ended;
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
        // What no commitment of this row stands for.
        match payloads.is_empty() {
            true => Ok(()),
            false => Err(missing()),
        }
    }
}

type Ended = (Outcome, Option<Vec<u8>>, Option<Vec<u8>>);

fn result(
    outcome: Outcome,
    payloads: &mut Payloads,
    number: usize,
) -> Result<Ended, CassetteError> {
    let output = take(
        payloads,
        PayloadKind::Output,
        outcome.output.as_ref(),
        number,
    )?;
    let detail = take(
        payloads,
        PayloadKind::Detail,
        outcome.detail.as_ref(),
        number,
    )?;
    match outcome.code.is_some() || output.is_some() {
        true => Ok((outcome, output, detail)),
        false => Err(CassetteError::Payload(number)),
    }
}

impl Cassette {
    /// The digits of the ledger's name, as records have them.
    #[must_use]
    pub fn ledger(&self) -> Option<Hex<16>> {
        Hex::parse(self.origin.rsplit('/').next()?)
    }
}
