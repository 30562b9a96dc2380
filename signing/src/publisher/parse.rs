//! Reading a publisher document.

use std::collections::HashSet;

use serde::Deserialize;
use toml::Spanned;

use super::{KIND, MAX_ENTRIES, MAX_REASON, PublisherDocument, Reset, RevokedKey};
use crate::document::{DocumentText, free_text, number, number_or_zero};
use crate::error::{ErrorKind, Refusal};
use crate::key::PublicKey;
use crate::signers::MAX_KEYS;

/// The document as TOML has it; each value remembers where it stands.
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
    revoked_keys: Vec<RawRevoked>,
    #[serde(default)]
    resets: Vec<RawReset>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    pem: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRevoked {
    key_id: Spanned<String>,
    since: Option<Spanned<String>>,
    reason: Spanned<String>,
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
    /// [`DocumentInvalid`](crate::ErrorKind::DocumentInvalid), [`DocumentSchema`](crate::ErrorKind::DocumentSchema),
    /// [`TrustExampleKey`](crate::ErrorKind::TrustExampleKey), or the reason of the value that is wrong, such as
    /// [`KeyWeak`](crate::ErrorKind::KeyWeak).
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        document(bytes)
    }
}

fn document(bytes: &[u8]) -> Result<PublisherDocument, Refusal> {
    let (source, raw) = DocumentText::read::<Raw>(KIND.format(), bytes)?;
    source.schema(&raw.schema)?;
    let lengths = [raw.keys.len(), raw.revoked_keys.len(), raw.resets.len()];
    for (length, (table, max)) in lengths.into_iter().zip([
        ("keys", MAX_KEYS),
        ("revoked_keys", MAX_ENTRIES),
        ("resets", MAX_ENTRIES),
    ]) {
        if length > max {
            return Err(source
                .invalid()
                .expected(format!("at most {max} `[[{table}]]`"))
                .found(length.to_string()));
        }
    }
    let document = PublisherDocument {
        name: source.name(&raw.name)?,
        version: source.value(&raw.version, number)?,
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
        keys: raw
            .keys
            .iter()
            .map(|key| source.value(&key.pem, |pem| self::key(pem)))
            .collect::<Result<_, _>>()?,
        revoked_keys: raw
            .revoked_keys
            .iter()
            .map(|revoked| {
                Ok(RevokedKey {
                    key_id: source.parsed(&revoked.key_id)?,
                    since: source.optional(revoked.since.as_ref(), |text| text.parse())?,
                    reason: source.value(&revoked.reason, |text| free_text(text, MAX_REASON))?,
                })
            })
            .collect::<Result<_, Refusal>>()?,
        resets: raw
            .resets
            .iter()
            .map(|reset| {
                Ok(Reset {
                    id: source.name(&reset.id)?,
                    sequence: source.value(&reset.sequence, number_or_zero)?,
                    digest: source.parsed(&reset.digest)?,
                })
            })
            .collect::<Result<_, Refusal>>()?,
    };
    source.check_times(document.created, document.expires)?;
    check_sets(&document).map_err(|refusal| refusal.at(KIND.name))?;
    Ok(document)
}

fn key(pem: &str) -> Result<PublicKey, Refusal> {
    let key = PublicKey::from_pem(pem.trim())?;
    if key.is_example() {
        return Err(Refusal::new(ErrorKind::TrustExampleKey).found(format!("key {}", key.key_id())));
    }
    Ok(key)
}

/// Nothing twice, and no key that is both in use and revoked.
fn check_sets(document: &PublisherDocument) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    let keys = document.keys.iter().map(PublicKey::key_id);
    let revoked = document.revoked_keys.iter().map(|revoked| revoked.key_id);
    for key in keys.chain(revoked) {
        if !seen.insert(key) {
            return Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each key once, in `[[keys]]` or in `[[revoked_keys]]`")
                .found(format!("key {key} twice")));
        }
    }
    let mut seen = HashSet::new();
    for reset in &document.resets {
        if !seen.insert(&reset.id) {
            return Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each id once in `[[resets]]`")
                .found(format!("{} twice", reset.id)));
        }
    }
    Ok(())
}
