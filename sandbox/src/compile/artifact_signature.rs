//! What makes an artifact trustworthy: a signature over the component that it
//! was compiled from, the engine that it was compiled for, and its own bytes.
//! The public key verifies artifacts and can't make any.

use toolward_signing::Digest;
use toolward_signing::envelope::pae;
use toolward_signing::key::{PublicKey, SigningKey};

use crate::engine::EngineHash;

/// Keeps these signatures apart from all others that a key could make.
const PAYLOAD_TYPE: &str = "application/vnd.toolward.artefact.v1";

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// What an artifact claims to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) component: &'a Digest,
    pub(super) engine: &'a EngineHash,
}

impl Claim<'_> {
    fn message(&self, artifact: &blake3::Hash) -> Vec<u8> {
        let payload = [
            *self.component.as_bytes(),
            *self.engine.as_bytes(),
            *artifact.as_bytes(),
        ];
        pae(PAYLOAD_TYPE, payload.as_flattened())
    }

    pub(super) fn sign(&self, artifact: &blake3::Hash, key: &SigningKey) -> [u8; SIGNATURE] {
        key.sign(&self.message(artifact))
    }

    pub(super) fn holds(
        &self,
        artifact: &blake3::Hash,
        signature: &[u8; SIGNATURE],
        key: &PublicKey,
    ) -> bool {
        key.verify(&self.message(artifact), signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_one_component_engine_and_artifact_only() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let (component, engine) = (Digest::of(b"a"), EngineHash::from_bytes([1; 32]));
        let claim = Claim {
            component: &component,
            engine: &engine,
        };
        let artifact = blake3::hash(b"code");
        let signature = claim.sign(&artifact, &key);
        let public = key.public();
        assert!(claim.holds(&artifact, &signature, &public));

        let other = Digest::of(b"b");
        let claim_of_other = Claim {
            component: &other,
            ..claim
        };
        assert!(!claim_of_other.holds(&artifact, &signature, &public));
        let other = EngineHash::from_bytes([2; 32]);
        let claim_for_other = Claim {
            engine: &other,
            ..claim
        };
        assert!(!claim_for_other.holds(&artifact, &signature, &public));
        assert!(!claim.holds(&blake3::hash(b"Code"), &signature, &public));
        let stranger = SigningKey::from_bytes(&[8; 32]).public();
        assert!(!claim.holds(&artifact, &signature, &stranger));
    }
}
