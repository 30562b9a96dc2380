//! Finds which payloads of a call are kept, and why others are missing.

use rusqlite::OptionalExtension as _;

use crate::append::{integer, unsigned};
use crate::error::Error;
use crate::payload::{Keep, PayloadKind, PayloadLimits};
use crate::reader::{Reader, RecordedCall};
use crate::record::{Content, Event, Record};
use crate::recorder::{micros, now};

/// Whether a payload is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayloadState {
    /// It is kept; these are its bytes, which match the commitment.
    Kept(Vec<u8>),
    /// It was not kept: the record has only its size.
    NotKept,
    /// It was kept, but is gone.
    Gone,
    /// It differs from the recorded payload.
    Changed,
}

/// Why a payload is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingPayload {
    /// The rows have no such payload.
    NotRecorded,
    /// It was not kept. This setting, or any setting that keeps more, keeps such payloads.
    NotKept(Keep),
    /// It has more bytes than the limit for a payload.
    TooLarge(u64),
    /// It was erased; this row records it.
    Erased(u64),
    /// It is older than the longest time that payloads are kept.
    Expired,
    /// It was deleted to make room for newer ones, or with the whole file of payloads.
    Displaced,
    /// It differs from the recorded payload.
    Changed,
}

impl MissingPayload {
    /// Its name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRecorded => "not-recorded",
            Self::NotKept(_) => "not-kept",
            Self::TooLarge(_) => "too-large",
            Self::Erased(_) => "erased",
            Self::Expired => "expired",
            Self::Displaced => "displaced",
            Self::Changed => "changed",
        }
    }
}

impl Reader {
    /// Whether a payload of this kind is kept.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn payload_state(
        &self,
        content: &Content,
        kind: PayloadKind,
    ) -> Result<PayloadState, Error> {
        let Some(commitment) = &content.commitment else {
            return Ok(PayloadState::NotKept);
        };
        Ok(match self.payload(commitment) {
            Ok(Some(payload)) if payload.kind == kind.as_str() => PayloadState::Kept(payload.bytes),
            Ok(None) => PayloadState::Gone,
            Ok(Some(_)) | Err(Error::Differs(_)) => PayloadState::Changed,
            Err(error) => return Err(error),
        })
    }

    /// A call's payload, or why it is missing. `limits` are the ledger's current limits.
    ///
    /// # Errors
    /// Errors of the files.
    pub fn payload_of(
        &self,
        call: &RecordedCall,
        kind: PayloadKind,
        limits: &PayloadLimits,
    ) -> Result<Result<Vec<u8>, MissingPayload>, Error> {
        let Some(content) = call.content(kind) else {
            return Ok(Err(MissingPayload::NotRecorded));
        };
        let size = content.size.get();
        Ok(match self.payload_state(content, kind)? {
            PayloadState::Kept(bytes) => Ok(bytes),
            PayloadState::Changed => Err(MissingPayload::Changed),
            PayloadState::NotKept if size > limits.each as u64 => {
                Err(MissingPayload::TooLarge(size))
            }
            PayloadState::NotKept => {
                Err(MissingPayload::NotKept(Keep::least(kind, call.matters())))
            }
            PayloadState::Gone => Err(self.why_gone(call, limits)?),
        })
    }

    fn why_gone(
        &self,
        call: &RecordedCall,
        limits: &PayloadLimits,
    ) -> Result<MissingPayload, Error> {
        if let Some(row) = self.erased(call)? {
            return Ok(MissingPayload::Erased(row));
        }
        let until = call.at.get().saturating_add(micros(limits.age));
        Ok(match until < now().get() {
            true => MissingPayload::Expired,
            false => MissingPayload::Displaced,
        })
    }

    /// The first row which records that payloads of this call were erased. Searches all rows after
    /// the call's rows.
    fn erased(&self, call: &RecordedCall) -> Result<Option<u64>, Error> {
        let person = call.call.as_ref().and_then(|call| call.person);
        let mut from = call.rows().last().unwrap_or_default();
        // Names in a record contain no quotation marks, so a record with this text is of this kind.
        let mut next = self.records.prepare_cached(
            "SELECT seq, record FROM entry WHERE seq > ?1 AND instr(record, CAST('\"kind\":\"erased\"' AS BLOB)) > 0
             ORDER BY seq LIMIT 1",
        )?;
        while let Some((seq, record)) = next
            .query_row([integer(from)], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
            })
            .optional()?
        {
            from = unsigned(seq)?;
            let Ok(Record {
                event: Event::Erased(body),
                ..
            }) = Record::of_row(&record)
            else {
                continue;
            };
            let of_call = body.invocation == Some(call.invocation);
            let of_person = body.person.is_some() && body.person == person;
            let older = body.before.is_some_and(|before| call.at < before);
            if of_call || of_person || older {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }
}
