//! Which trusted keys signed an envelope, and for which publisher that counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::envelope::{Envelope, Signature};
use crate::key::{KeyId, PublicKey};
use crate::manifest::Manifest;
use crate::refusal::{Reason, Refusal};
use crate::text::quoted;
use crate::trust::{Publisher, TrustStore};

/// How many bytes are hashed for signatures whose key id leads nowhere: nobody is known to have made them.
const GUESSING: usize = 64 * 1024 * 1024;
/// What a guess costs at least, in bytes hashed in the same time.
const GUESS: usize = 32 * 1024;

/// The trusted keys whose signatures verify, distinct, at least one.
///
/// A key id is a hint: where it leads nowhere other keys are tried, as many as [`GUESSING`] allows, which is
/// 256 for the largest manifest and 2048 for a usual one. A signature that claims a trusted
/// key and verifies with none is refused even if others suffice: somebody changed the envelope.
pub(super) fn trusted_signers(
    envelope: &Envelope,
    trust: &TrustStore,
) -> Result<Vec<KeyId>, Refusal> {
    let message = envelope.to_be_signed();
    let mut guesses = GUESSING / message.len().max(GUESS);
    let mut verified: BTreeMap<KeyId, &PublicKey> = BTreeMap::new();
    for signature in envelope.signatures() {
        let hinted = hinted_key(signature, trust);
        let others = trust
            .publishers()
            .flat_map(|publisher| publisher.keys())
            .filter(|key| hinted.is_none_or(|hinted| hinted.key_id() != key.key_id()));
        let verifies = |key: &&PublicKey| key.verify(&message, &signature.sig).is_ok();
        let signer = hinted.filter(verifies).or_else(|| {
            others
                .take_while(|_| {
                    let left = guesses.checked_sub(1);
                    guesses = left.unwrap_or(0);
                    left.is_some()
                })
                .find(verifies)
        });
        match (signer, hinted) {
            (Some(key), _) => {
                verified.insert(key.key_id(), key);
            }
            (None, Some(hinted)) => {
                return Err(Refusal::new(Reason::SignatureInvalid)
                    .found(format!("a signature that claims key {}", hinted.key_id())));
            }
            (None, None) => {}
        }
    }
    if verified.is_empty() {
        let claimed: Vec<_> = envelope
            .signatures()
            .iter()
            .map(|signature| {
                signature
                    .keyid
                    .as_deref()
                    .map_or_else(|| "none".to_owned(), quoted)
            })
            .collect();
        return Err(Refusal::new(Reason::UnknownPublisher)
            .expected("a signature by a key of the trust store")
            .found(format!(
                "signatures that claim these key ids: {}",
                claimed.join(", ")
            )));
    }
    Ok(verified.into_keys().collect())
}

fn hinted_key<'a>(signature: &Signature, trust: &'a TrustStore) -> Option<&'a PublicKey> {
    let id = signature.keyid.as_deref()?.parse().ok()?;
    trust.key(&id)
}

/// The publisher on whose behalf the bundle counts as signed, and its keys among `signers`: the one that
/// the manifest names, else a key that was named for this command.
pub(super) fn publisher(
    manifest: &Manifest,
    signers: &[KeyId],
    trust: &TrustStore,
) -> Result<(Arc<Publisher>, Vec<KeyId>), Refusal> {
    let refusal = match named_publisher(manifest, signers, trust) {
        Ok(found) => return Ok(found),
        Err(refusal) => refusal,
    };
    for publisher in trust.ad_hoc() {
        let keys = keys_among(publisher, signers);
        if keys.len() >= publisher.threshold() {
            return Ok((Arc::clone(publisher), keys));
        }
    }
    Err(refusal)
}

fn named_publisher(
    manifest: &Manifest,
    signers: &[KeyId],
    trust: &TrustStore,
) -> Result<(Arc<Publisher>, Vec<KeyId>), Refusal> {
    let wrong = || {
        let owners: Vec<_> = trust
            .publishers()
            .filter(|publisher| !keys_among(publisher, signers).is_empty())
            .map(|publisher| publisher.name())
            .collect();
        Refusal::new(Reason::WrongPublisher)
            .expected(format!(
                "publisher {}, whose key signed",
                owners.join(" or ")
            ))
            .found(format!("publisher {}", manifest.publisher))
    };
    let publisher = trust.configured(&manifest.publisher).ok_or_else(wrong)?;
    let keys = keys_among(publisher, signers);
    if keys.is_empty() {
        return Err(wrong());
    }
    if keys.len() < publisher.threshold() {
        return Err(Refusal::new(Reason::ThresholdNotMet)
            .at(format!("publisher {}", publisher.name()))
            .expected(format!("{} distinct keys", publisher.threshold()))
            .found(keys.len().to_string()));
    }
    if !trust.covers(publisher, &manifest.id) {
        return Err(prefix_refusal(trust, publisher, &manifest.id));
    }
    Ok((Arc::clone(publisher), keys))
}

fn keys_among(publisher: &Publisher, signers: &[KeyId]) -> Vec<KeyId> {
    let mut keys: Vec<_> = publisher
        .keys()
        .iter()
        .map(PublicKey::key_id)
        .filter(|id| signers.contains(id))
        .collect();
    keys.sort();
    keys
}

/// Says whose the id is instead.
pub(super) fn prefix_refusal(trust: &TrustStore, publisher: &Publisher, id: &str) -> Refusal {
    let prefixes: Vec<_> = publisher
        .prefixes()
        .iter()
        .map(|prefix| prefix.as_str())
        .collect();
    let holder = trust.holder(id).map_or_else(
        || "which no publisher holds".to_owned(),
        |holder| format!("which publisher {} holds by a longer prefix", holder.name()),
    );
    Refusal::new(Reason::PrefixNotGranted)
        .at(format!("publisher {}", publisher.name()))
        .expected(format!("an id below {}", prefixes.join(", ")))
        .found(format!("{}, {holder}", quoted(id)))
}

/// Refuses a provenance envelope that no key of `publisher` signed.
pub(super) fn signed_by(envelope: &Envelope, publisher: &Publisher) -> Result<(), Refusal> {
    let message = envelope.to_be_signed();
    let signed = envelope.signatures().iter().any(|signature| {
        publisher
            .keys()
            .iter()
            .any(|key| key.verify(&message, &signature.sig).is_ok())
    });
    if signed {
        Ok(())
    } else {
        Err(Refusal::new(Reason::ProvenanceUnsigned).expected(format!(
            "a signature by a key of publisher {}",
            publisher.name()
        )))
    }
}
