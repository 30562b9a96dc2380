//! Writes a cassette, within the sizes that are read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{
    FORMAT, Head, Line, LinePayload, MAX_CASSETTE_BYTES, MAX_CASSETTE_ROWS, MAX_LINE_BYTES,
};
use crate::error::Error;
use crate::reader::Payload;
use crate::record::Hash;

/// A cassette while it is written. Rows are given in the order of their numbers.
pub(crate) struct Writing {
    lines: Vec<u8>,
    rows: usize,
}

impl Writing {
    pub(crate) fn new() -> Self {
        Self {
            lines: Vec::new(),
            rows: 0,
        }
    }

    pub(crate) fn row(
        &mut self,
        (seq, record): (u64, Vec<u8>),
        proof: &[Hash],
        payloads: Vec<Payload>,
    ) -> Result<(), Error> {
        let payloads = payloads.into_iter().map(|payload| LinePayload {
            bytes: STANDARD.encode(payload.bytes),
            kind: payload.kind,
            salt: payload.salt,
        });
        let line = Line {
            payloads: payloads.collect(),
            proof: proof.iter().map(|hash| STANDARD.encode(hash.0)).collect(),
            record: String::from_utf8(record).map_err(|_| Error::corrupt("a record"))?,
            seq,
        };
        let line = serde_json::to_vec(&line).map_err(|_| Error::corrupt("a row"))?;
        self.rows += 1;
        // The first line has its room.
        let bytes = self.lines.len() + line.len() + 1 + MAX_LINE_BYTES;
        if self.rows > MAX_CASSETTE_ROWS || bytes > MAX_CASSETTE_BYTES {
            return Err(Error::TooMuch);
        }
        self.lines.extend_from_slice(&line);
        self.lines.push(b'\n');
        Ok(())
    }

    /// The file.
    pub(crate) fn end(self, checkpoint: String, key: String) -> Result<Vec<u8>, Error> {
        let head = Head {
            cassette: FORMAT,
            checkpoint,
            key,
            rows: self.rows,
        };
        let mut bytes = serde_json::to_vec(&head).map_err(|_| Error::corrupt("a checkpoint"))?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.lines);
        Ok(bytes)
    }
}
