//! Copies calls into a cassette, within the limits of the cassette's reader.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cassette::{
    CassetteHead, CassetteLine, FORMAT, LinePayload, MAX_CASSETTE_BYTES, MAX_CASSETTE_ROWS,
    MAX_LINE_BYTES,
};
use crate::error::Error;
use crate::payload::PayloadKind;
use crate::reader::{EndRow, Payload, Reader, RecordedCall};
use crate::record::{Content, Person};

/// Selects the calls to copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Calls that ended in this row or later.
    pub from: u64,
    /// Calls that ended before this row; `None` for no bound.
    pub to: Option<u64>,
    /// Calls of this principal.
    pub person: Option<Person>,
    /// Whether calls of several principals may be in one file.
    pub all: bool,
}

/// A cassette, with the number of its calls, and of the calls that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CassetteExport {
    /// The file.
    pub bytes: Vec<u8>,
    /// The number of calls in it.
    pub calls: usize,
    /// The number of calls that were left out, by reason: `input` or `output` (this payload is
    /// missing), `unfinished`, or `unsigned` (no checkpoint covers all rows of the call).
    pub left_out: BTreeMap<&'static str, usize>,
}

impl Reader {
    /// Writes calls with their payloads, and proofs that the newest checkpoint covers their rows.
    /// Skips nested calls, since a replay makes none; refused calls, since a replay applies the
    /// current rules; calls that ended with a question, since a replay asks nothing; replayed
    /// calls; and calls without a known tool.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`], [`Error::Differs`]; [`Error::TooMuch`] if the calls exceed one
    /// cassette, [`Error::Persons`] if they have several principals and `all` is not set.
    pub fn cassette(&self, selection: &Selection) -> Result<CassetteExport, Error> {
        let signed = self.proofs([])?.checkpoint.size;
        let mut copied: Vec<RecordedCall> = Vec::new();
        let mut left_out: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut persons: BTreeSet<Option<Person>> = BTreeSet::new();
        let to = selection.to.unwrap_or(u64::MAX);
        self.calls::<Error>(selection.from, to, |call| {
            let Some(of) = &call.call else { return Ok(()) };
            let is_chosen = selection.person.is_none_or(|one| of.person == Some(one));
            let refused = matches!(call.end, EndRow::Refused(..) | EndRow::Replayed(..));
            // A question is not a result; once it is answered, the call ends in another row.
            let is_result = !refused && !call.end.asks();
            if !is_chosen || !is_result || of.parent.is_some() || of.tool.is_none() {
                return Ok(());
            }
            if let Some(why) = self.lacks(&call, signed)? {
                *left_out.entry(why).or_default() += 1;
                return Ok(());
            }
            persons.insert(of.person);
            copied.push(call);
            match copied.len() > MAX_CASSETTE_ROWS {
                true => Err(Error::TooMuch),
                false => Ok(()),
            }
        })?;
        if persons.len() > 1 && !selection.all {
            return Err(Error::Persons);
        }
        let bytes = self.written(&copied)?;
        Ok(CassetteExport {
            bytes,
            calls: copied.len(),
            left_out,
        })
    }

    /// The reason in [`CassetteExport::left_out`] if a call can't be replayed.
    fn lacks(&self, call: &RecordedCall, signed: u64) -> Result<Option<&'static str>, Error> {
        let Some(outcome) = call.end.outcome() else {
            return Ok(Some("unfinished"));
        };
        if call.rows().any(|row| row >= signed) {
            return Ok(Some("unsigned"));
        }
        let has = |kind| Ok::<_, Error>(self.recorded(call.content(kind), kind)?.is_some());
        if !has(PayloadKind::Input)? {
            return Ok(Some("input"));
        }
        if outcome.code.is_none() && !has(PayloadKind::Output)? {
            return Ok(Some("output"));
        }
        Ok(None)
    }

    fn written(&self, calls: &[RecordedCall]) -> Result<Vec<u8>, Error> {
        let mut rows = BTreeMap::new();
        for call in calls {
            if let Some(started) = call.started {
                rows.insert(started, (call, vec![PayloadKind::Input]));
            }
            if let Some(ended) = call.end.row() {
                let mut kinds = vec![PayloadKind::Output, PayloadKind::Detail];
                if call.started.is_none() {
                    kinds.push(PayloadKind::Input);
                }
                rows.insert(ended, (call, kinds));
            }
        }
        let proofs = self.proofs(rows.keys().copied())?;
        let count = rows.len();
        let mut lines = Vec::new();
        for (seq, (call, kinds)) in rows {
            let proof = proofs.rows.get(&seq).ok_or(Error::NoCheckpoint)?;
            let record = self.row(seq)?.record;
            let record = record.ok_or_else(|| Error::NoRow(seq.to_string().into()))?;
            let mut payloads = Vec::new();
            for kind in kinds {
                let recorded = self.recorded(call.content(kind), kind)?;
                payloads.extend(recorded.map(|payload| LinePayload {
                    bytes: STANDARD.encode(payload.bytes),
                    kind: payload.kind,
                    salt: payload.salt,
                }));
            }
            let line = CassetteLine {
                payloads,
                proof: proof.iter().map(|hash| STANDARD.encode(hash.0)).collect(),
                record: String::from_utf8(record).map_err(|_| Error::corrupt("a record"))?,
                seq,
            };
            let line = serde_json::to_vec(&line).map_err(|_| Error::corrupt("a row"))?;
            // The sum includes the longest possible head, which comes before the lines.
            let bytes = lines.len() + line.len() + 1 + MAX_LINE_BYTES;
            if count > MAX_CASSETTE_ROWS || bytes > MAX_CASSETTE_BYTES {
                return Err(Error::TooMuch);
            }
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
        let head = CassetteHead {
            cassette: FORMAT,
            checkpoint: proofs.note,
            key: self.verifier.to_vkey(),
            rows: count,
        };
        let mut bytes = serde_json::to_vec(&head).map_err(|_| Error::corrupt("a checkpoint"))?;
        bytes.push(b'\n');
        bytes.append(&mut lines);
        Ok(bytes)
    }

    /// The payload that a record commits to, if it is kept.
    fn recorded(
        &self,
        content: Option<&Content>,
        kind: PayloadKind,
    ) -> Result<Option<Payload>, Error> {
        let commitment = content.and_then(|content| content.commitment);
        let Some(commitment) = commitment else {
            return Ok(None);
        };
        let found = self.payload(&commitment)?;
        Ok(found.filter(|payload| payload.kind == kind.as_str()))
    }
}
