//! The TOML of a publisher document. It has one layout, so that writing twice gives the same bytes.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Deserialize;
use toml::Spanned;

use super::{KIND, MAX_ENTRIES, MAX_REASON, PublisherDocument, Reset, RevokedKey};
use crate::document::{DocumentText, SCHEMA, each, write_string, write_time};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::PublicKey;
use crate::signers::MAX_KEYS;

/// The document as TOML has it, with the place of each value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<u64>,
    name: Spanned<String>,
    version: Spanned<u64>,
    created: Spanned<String>,
    expires: Option<Spanned<String>>,
    threshold: Spanned<u64>,
    #[serde(default)]
    keys: Vec<RawKey>,
    #[serde(default)]
    revoked_keys: Vec<RawRevokedKey>,
    #[serde(default)]
    resets: Vec<RawReset>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    pem: Spanned<String>,
}

/// A revoked key, in publisher documents and in revocation lists.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRevokedKey {
    key_id: Spanned<String>,
    since: Option<Spanned<String>>,
    reason: Spanned<String>,
}

impl RawRevokedKey {
    pub(crate) fn read(&self, source: &DocumentText<'_>) -> Result<RevokedKey, Refusal> {
        Ok(RevokedKey {
            key_id: source.parsed(&self.key_id)?,
            since: source.optional(self.since.as_ref(), |text| text.parse())?,
            reason: source.free_text(&self.reason, MAX_REASON)?,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReset {
    id: Spanned<String>,
    sequence: Spanned<u64>,
    digest: Spanned<String>,
}

impl PublisherDocument {
    /// Reads a document. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`], [`ErrorKind::TrustExampleKey`], or the reason of
    /// the value that is wrong, such as [`ErrorKind::KeyWeak`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
        source.schema(&raw.schema)?;
        source.at_most(raw.keys.len(), MAX_KEYS, "`[[keys]]`")?;
        source.at_most(raw.revoked_keys.len(), MAX_ENTRIES, "`[[revoked_keys]]`")?;
        source.at_most(raw.resets.len(), MAX_ENTRIES, "`[[resets]]`")?;
        let document = Self {
            name: source.name(&raw.name)?,
            version: source.number(&raw.version, 1)?,
            created: source.parsed(&raw.created)?,
            expires: source.optional(raw.expires.as_ref(), |text| text.parse())?,
            threshold: source.value(&raw.threshold, |threshold| {
                usize::try_from(*threshold)
                    .ok()
                    .filter(|threshold| (1..=raw.keys.len()).contains(threshold))
                    .ok_or_else(|| {
                        Refusal::new(ErrorKind::DocumentInvalid)
                            .expected(format!(
                                "a threshold from 1 to {}, the number of keys",
                                raw.keys.len()
                            ))
                            .found(threshold.to_string())
                    })
            })?,
            keys: each(&raw.keys, |key| source.value(&key.pem, |pem| read_key(pem)))?,
            revoked_keys: each(&raw.revoked_keys, |revoked| revoked.read(&source))?,
            resets: each(&raw.resets, |reset| {
                Ok(Reset {
                    id: source.name(&reset.id)?,
                    sequence: source.number(&reset.sequence, 0)?,
                    digest: source.parsed(&reset.digest)?,
                })
            })?,
        };
        source.check_times(document.created, document.expires)?;
        document
            .check_sets()
            .map_err(|refusal| refusal.at(KIND.name))?;
        Ok(document)
    }

    /// Writes the document, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`PublisherDocument::parse`], for a document that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let pems = self.keys.iter().map(PublicKey::to_pem);
        let pems = pems.collect::<Result<Vec<_>, _>>()?;
        let write = |text: &mut String| self.write(text, &pems);
        KIND.format().write(self, write, Self::parse)
    }

    /// The document in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`PublisherDocument::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }

    /// Nothing twice, and no key that is both in use and revoked.
    fn check_sets(&self) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        let keys = self.keys.iter().map(PublicKey::key_id);
        let revoked = self.revoked_keys.iter().map(|revoked| revoked.key_id);
        if let Some(key) = keys.chain(revoked).find(|key| !seen.insert(*key)) {
            return Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each key once, in `[[keys]]` or in `[[revoked_keys]]`")
                .found(format!("key {key} twice")));
        }
        let mut seen = HashSet::new();
        match self.resets.iter().find(|reset| !seen.insert(&reset.id)) {
            Some(reset) => Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each id once in `[[resets]]`")
                .found(format!("{} twice", reset.id))),
            None => Ok(()),
        }
    }

    fn write(&self, text: &mut String, pems: &[String]) -> std::fmt::Result {
        writeln!(text, "schema = {SCHEMA}")?;
        write_string(text, "name", &*self.name)?;
        writeln!(text, "version = {}", self.version)?;
        writeln!(text, "created = \"{}\"", self.created)?;
        write_time(text, "expires", self.expires)?;
        writeln!(text, "threshold = {}", self.threshold)?;
        for pem in pems {
            writeln!(text, "\n[[keys]]\npem = \"\"\"\n{pem}\"\"\"")?;
        }
        for revoked in &self.revoked_keys {
            revoked.write(text, "revoked_keys")?;
        }
        for reset in &self.resets {
            writeln!(text, "\n[[resets]]")?;
            write_string(text, "id", &*reset.id)?;
            writeln!(text, "sequence = {}", reset.sequence)?;
            writeln!(text, "digest = \"{}\"", reset.digest)?;
        }
        Ok(())
    }
}

impl RevokedKey {
    pub(crate) fn write(&self, text: &mut String, table: &str) -> std::fmt::Result {
        writeln!(text, "\n[[{table}]]")?;
        writeln!(text, "key_id = \"{}\"", self.key_id)?;
        write_time(text, "since", self.since)?;
        write_string(text, "reason", &*self.reason)
    }
}

fn read_key(pem: &str) -> Result<PublicKey, Refusal> {
    let key = PublicKey::from_pem(pem.trim())?;
    if key.is_example() {
        return Err(Refusal::new(ErrorKind::TrustExampleKey).found(format!("key {}", key.key_id())));
    }
    Ok(key)
}
