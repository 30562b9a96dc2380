//! Reading a revocation list.

use std::collections::HashSet;

use serde::Deserialize;
use toml::Spanned;

use super::list::{KIND, MAX_ENTRIES, RevocationList, RevokedBundle};
use crate::document::{DocumentText, free_text, number};
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Refusal;
use crate::publisher::{MAX_REASON, RevokedKey};

/// The list as TOML has it; each value remembers where it stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    schema: Spanned<u64>,
    publisher: Spanned<String>,
    version: Spanned<u64>,
    created: Spanned<String>,
    expires: Option<Spanned<String>>,
    #[serde(default)]
    keys: Vec<RawKey>,
    #[serde(default)]
    bundles: Vec<RawBundle>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    key_id: Spanned<String>,
    since: Option<Spanned<String>>,
    reason: Spanned<String>,
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
        list(bytes)
    }
}

fn list(bytes: &[u8]) -> Result<RevocationList, Refusal> {
    let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
    source.schema(&raw.schema)?;
    for length in [raw.keys.len(), raw.bundles.len()] {
        if length > MAX_ENTRIES {
            return Err(source
                .invalid()
                .expected(format!("at most {MAX_ENTRIES} entries of a kind"))
                .found(length.to_string()));
        }
    }
    let list = RevocationList {
        publisher: source.name(&raw.publisher)?,
        version: source.value(&raw.version, number)?,
        created: source.parsed(&raw.created)?,
        expires: source.optional(raw.expires.as_ref(), |text| text.parse())?,
        keys: raw
            .keys
            .iter()
            .map(|key| {
                Ok(RevokedKey {
                    key_id: source.parsed(&key.key_id)?,
                    since: source.optional(key.since.as_ref(), |text| text.parse())?,
                    reason: source.value(&key.reason, |text| free_text(text, MAX_REASON))?,
                })
            })
            .collect::<Result<_, Refusal>>()?,
        bundles: raw
            .bundles
            .iter()
            .map(|bundle| {
                Ok(RevokedBundle {
                    digest: source.parsed(&bundle.digest)?,
                    id: bundle.id.as_ref().map(|id| source.name(id)).transpose()?,
                    reason: source.value(&bundle.reason, |text| free_text(text, MAX_REASON))?,
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
