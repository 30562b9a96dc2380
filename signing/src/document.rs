//! What publisher documents, revocation lists and channel indexes have in common: one envelope, TOML 1.0
//! inside, a version and a time. What each of them says is in a module of its own.

mod read;
mod write;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::SystemTime;

use crate::age::{Mode, is_from_the_future, is_over};
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;
use crate::revocation::known::Revocations;
use crate::timestamp::Timestamp;

pub(crate) use read::{DocumentText, Format, free_text, number, number_or_zero};
pub(crate) use write::string;

/// The schema of all these documents.
pub(crate) const SCHEMA: u64 = 1;

/// What the acceptance of a document depends on, besides its bytes and the keys: fixed once per operation.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The time against which `created` and `expires` are checked.
    pub now: SystemTime,
    /// Whether age refuses or warns.
    pub mode: Mode,
    /// What is known to be revoked: signatures by these keys count for nothing.
    pub revocations: &'a Revocations,
}

/// A document with what is known of its signatures. Only this crate makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signed<T> {
    /// The document, parsed from the signed bytes.
    pub document: T,
    /// The digest of the signed bytes: with the version, the document's identity.
    pub digest: Digest,
    /// The envelope, as it was read.
    pub envelope_bytes: Arc<[u8]>,
    /// The keys whose signatures counted: sorted, distinct.
    pub signers: Vec<KeyId>,
    /// What a person should be told, one sentence each.
    pub warnings: Vec<String>,
}

impl<T> Deref for Signed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.document
    }
}

/// One kind of document.
#[derive(Clone, Copy)]
pub(crate) struct PayloadKind {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// Its payload type: one for each kind, so that none can pass for another.
    pub(crate) payload_type: &'static str,
    /// How large it may be, in bytes.
    pub(crate) max_bytes: usize,
    /// How large its envelope may be, in bytes.
    pub(crate) max_envelope_bytes: usize,
}

impl PayloadKind {
    /// Its TOML.
    pub(crate) fn format(&self) -> Format {
        Format {
            name: self.name,
            max_bytes: self.max_bytes,
            text: ErrorKind::DocumentInvalid,
            syntax: ErrorKind::DocumentInvalid,
            schema: ErrorKind::DocumentSchema,
            field: ErrorKind::DocumentInvalid,
        }
    }

    /// Reads an envelope of this kind. Its signatures are not looked at.
    pub(crate) fn open(&self, bytes: &[u8]) -> Result<Envelope, Refusal> {
        let envelope = Envelope::parse_up_to(bytes, self.max_envelope_bytes)
            .map_err(|refusal| refusal.at(self.name))?;
        if envelope.payload_type() == self.payload_type {
            return Ok(envelope);
        }
        Err(Refusal::new(ErrorKind::PayloadType)
            .at(self.name)
            .expected(self.payload_type)
            .found(crate::text::quoted(envelope.payload_type()))
            .hinted(format!("name the file of a {}", self.name)))
    }

    /// The time of a document: what [`Mode::Audit`] relaxes comes back as warnings.
    pub(crate) fn check_age(
        &self,
        created: Timestamp,
        expires: Option<Timestamp>,
        terms: &Terms<'_>,
    ) -> Result<Vec<String>, Refusal> {
        let mut warnings = Vec::new();
        let mut take = |refusal: Refusal| match terms.mode {
            Mode::Enforce => Err(refusal),
            Mode::Audit => {
                warnings.push(refusal.to_string());
                Ok(())
            }
        };
        if is_from_the_future(created, terms.now) {
            take(
                Refusal::new(ErrorKind::DocumentNotYetValid)
                    .at(self.name)
                    .expected("`created` in the past")
                    .found(created.to_string()),
            )?;
        }
        if let Some(expires) = expires
            && is_over(expires, terms.now)
        {
            take(expired(self.name, expires))?;
        }
        Ok(warnings)
    }
}

impl fmt::Debug for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(crate) fn expired(place: impl Into<String>, expires: Timestamp) -> Refusal {
    Refusal::new(ErrorKind::DocumentExpired)
        .at(place)
        .expected("`expires` in the future")
        .found(expires.to_string())
}
