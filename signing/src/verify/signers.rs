//! Finds the trusted keys that signed an envelope, and the publisher for which they count.

use std::sync::Arc;

use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::{KeyId, PublicKey};
use crate::manifest::Manifest;
use crate::revocation::known::Revocations;
use crate::text::quoted;
use crate::trust::{Publisher, TrustStore};

/// The trusted keys whose signatures verify, distinct, at least one.
pub(super) fn trusted_signers(
    envelope: &Envelope,
    trust: &TrustStore,
) -> Result<Vec<KeyId>, Refusal> {
    let keys = trust
        .publishers()
        .flat_map(|publisher| &publisher.keys)
        .collect::<Vec<_>>();
    let verified = crate::signers::verified(envelope, keys.iter().copied())?;
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
        if let Some((key, revoker)) = claimed_revoked(envelope, trust) {
            return Err(Refusal::new(ErrorKind::KeyRevoked)
                .expected("a signature by a key of the trust store")
                .found(format!(
                    "a signature that claims key {key}, which publisher {} has revoked",
                    revoker.name()
                )));
        }
        return Err(Refusal::new(ErrorKind::UnknownPublisher)
            .expected("a signature by a key of the trust store")
            .found(format!(
                "signatures that claim these key ids: {}",
                claimed.join(", ")
            )));
    }
    Ok(verified.into_iter().collect())
}

/// A revoked key that a signature claims. It only affects the message of a refusal.
fn claimed_revoked<'a>(
    envelope: &Envelope,
    trust: &'a TrustStore,
) -> Option<(KeyId, &'a Arc<Publisher>)> {
    envelope.signatures().iter().find_map(|signature| {
        let key = signature.keyid.as_deref()?.parse().ok()?;
        Some((key, trust.revoker(&key)?))
    })
}

/// The publisher that counts as the signer of the bundle, and its keys among `signers`. This is the
/// publisher that the manifest names, or otherwise an ad-hoc key (`--trust-key`).
pub(super) fn publisher(
    manifest: &Manifest,
    signers: &[KeyId],
    trust: &TrustStore,
    revocations: Option<&Revocations>,
) -> Result<(Arc<Publisher>, Vec<KeyId>), Refusal> {
    let mut refusal = match named_publisher(manifest, signers, trust, revocations) {
        Ok(found) => return Ok(found),
        Err(refusal) => refusal,
    };
    for publisher in trust.ad_hoc() {
        match counting(publisher, signers, revocations) {
            Ok(keys) => return Ok((Arc::clone(publisher), keys)),
            // The ad-hoc key did sign but is revoked, so its revocation is reported.
            Err(revoked)
                if revoked.kind() == ErrorKind::KeyRevoked
                    && refusal.kind() == ErrorKind::WrongPublisher =>
            {
                refusal = revoked;
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

fn named_publisher(
    manifest: &Manifest,
    signers: &[KeyId],
    trust: &TrustStore,
    revocations: Option<&Revocations>,
) -> Result<(Arc<Publisher>, Vec<KeyId>), Refusal> {
    let wrong = || {
        let owners = trust.publishers();
        let owners = owners.filter(|publisher| !keys_among(publisher, signers).is_empty());
        let is_bare = owners.clone().any(|owner| owner.is_bare);
        let owners: Vec<_> = owners.map(|publisher| publisher.name()).collect();
        let refusal = Refusal::new(ErrorKind::WrongPublisher)
            .expected(format!(
                "publisher {}, whose key signed",
                owners.join(" or ")
            ))
            .found(format!("publisher {}", manifest.publisher));
        match is_bare {
            // The operator chose the name of a bare key, so it may differ from the name in the
            // manifest.
            true => refusal.hinted(
                "ask the publisher which key signs this bundle. If it is this bare key, trust it under the name that its \
                 bundles have: `toolward trust remove` the other name, then `toolward trust add KEY.pub.pem --name NAME`",
            ),
            false => refusal,
        }
    };
    let publisher = trust.configured(&manifest.publisher).ok_or_else(wrong)?;
    if keys_among(publisher, signers).is_empty() {
        return Err(wrong());
    }
    let keys = counting(publisher, signers, revocations)?;
    if !trust.covers(publisher, &manifest.id) {
        return Err(trust.refuse_id(publisher, &manifest.id));
    }
    Ok((Arc::clone(publisher), keys))
}

/// The publisher's keys among `signers` that are not revoked, at least as many as its threshold.
fn counting(
    publisher: &Publisher,
    signers: &[KeyId],
    revocations: Option<&Revocations>,
) -> Result<Vec<KeyId>, Refusal> {
    publisher
        .quorum()
        .count(keys_among(publisher, signers), &|key| {
            is_revoked(publisher, key, revocations)
        })
        .map_err(|refusal| refusal.at(format!("publisher {}", publisher.name())))
}

fn is_revoked(publisher: &Publisher, key: &KeyId, revocations: Option<&Revocations>) -> bool {
    revocations.is_some_and(|revocations| revocations.key(publisher.name(), key).is_some())
}

fn keys_among(publisher: &Publisher, signers: &[KeyId]) -> Vec<KeyId> {
    let mut keys: Vec<_> = publisher
        .keys
        .iter()
        .map(PublicKey::key_id)
        .filter(|id| signers.contains(id))
        .collect();
    keys.sort();
    keys
}

/// Refuses a provenance envelope without a signature by a key of `publisher` that is not revoked.
pub(super) fn signed_by(
    envelope: &Envelope,
    publisher: &Publisher,
    revocations: Option<&Revocations>,
) -> Result<(), Refusal> {
    let message = envelope.to_be_signed();
    let signed = envelope.signatures().iter().any(|signature| {
        publisher
            .keys
            .iter()
            .filter(|key| !is_revoked(publisher, &key.key_id(), revocations))
            .any(|key| key.verify(&message, &signature.sig).is_ok())
    });
    if signed {
        Ok(())
    } else {
        Err(
            Refusal::new(ErrorKind::ProvenanceUnsigned).expected(format!(
                "a signature by a key of publisher {}",
                publisher.name()
            )),
        )
    }
}
