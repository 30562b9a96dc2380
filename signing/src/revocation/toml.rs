//! The TOML of a revocation list. It has one layout, so that writing twice gives the same bytes.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde::Deserialize;
use toml::Spanned;

use super::{KIND, MAX_ENTRIES, RevocationList, RevokedBundle};
use crate::document::{DocumentText, SCHEMA, write_string};
use crate::envelope::Envelope;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Refusal;
use crate::publisher::{MAX_REASON, RawRevokedKey};

/// The list as TOML has it, with the place of each value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<u64>,
    publisher: Spanned<String>,
    version: Spanned<u64>,
    created: Spanned<String>,
    expires: Option<Spanned<String>>,
    #[serde(default)]
    keys: Vec<RawRevokedKey>,
    #[serde(default)]
    bundles: Vec<RawBundle>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBundle {
    digest: Spanned<String>,
    id: Option<Spanned<String>>,
    reason: Spanned<String>,
}

impl RevocationList {
    /// Reads a list. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`], or the reason of the value that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
        source.schema(&raw.schema)?;
        for length in [raw.keys.len(), raw.bundles.len()] {
            source.at_most(length, MAX_ENTRIES, "entries of a kind")?;
        }
        let list = Self {
            publisher: source.name(&raw.publisher)?,
            version: source.number(&raw.version, 1)?,
            created: source.parsed(&raw.created)?,
            expires: source.optional(raw.expires.as_ref(), |text| text.parse())?,
            keys: raw
                .keys
                .iter()
                .map(|key| key.read(&source))
                .collect::<Result<_, _>>()?,
            bundles: raw
                .bundles
                .iter()
                .map(|bundle| {
                    Ok(RevokedBundle {
                        digest: source.parsed(&bundle.digest)?,
                        id: bundle.id.as_ref().map(|id| source.name(id)).transpose()?,
                        reason: source.free_text(&bundle.reason, MAX_REASON)?,
                    })
                })
                .collect::<Result<_, Refusal>>()?,
        };
        source.check_times(list.created, list.expires)?;
        let keys: HashSet<_> = list.keys.iter().map(|key| key.key_id).collect();
        let bundles: HashSet<_> = list.bundles.iter().map(|bundle| bundle.digest).collect();
        if keys.len() != list.keys.len() || bundles.len() != list.bundles.len() {
            return Err(source
                .invalid()
                .expected("each key and each bundle once")
                .found("one of them twice"));
        }
        Ok(list)
    }

    /// Writes the list, the same bytes each time. The bytes have been read back.
    ///
    /// # Errors
    /// Those of [`RevocationList::parse`], for a list that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        let write = |text: &mut String| self.write(text);
        KIND.format().write(self, write, Self::parse)
    }

    /// The list in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// Those of [`RevocationList::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "schema = {SCHEMA}")?;
        write_string(text, "publisher", &*self.publisher)?;
        writeln!(text, "version = {}", self.version)?;
        writeln!(text, "created = \"{}\"", self.created)?;
        if let Some(expires) = self.expires {
            writeln!(text, "expires = \"{expires}\"")?;
        }
        for key in &self.keys {
            key.write(text, "keys")?;
        }
        for bundle in &self.bundles {
            writeln!(text, "\n[[bundles]]")?;
            writeln!(text, "digest = \"{}\"", bundle.digest)?;
            write_string(text, "id", bundle.id.as_deref())?;
            write_string(text, "reason", &*bundle.reason)?;
        }
        Ok(())
    }
}
