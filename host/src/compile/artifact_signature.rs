//! What makes an artifact trustworthy: a signature over the component that it
//! was compiled from, the engine that it was compiled for, and its own bytes.
//! The public key verifies artifacts and can't make any.

use std::hash::{Hash, Hasher};

use toolward_signing::Digest;
use toolward_signing::envelope::pae;
use toolward_signing::key::{PublicKey, SigningKey};
use wasmtime::Engine;

/// Keeps these signatures apart from all others that a key could make.
const PAYLOAD_TYPE: &str = "application/vnd.toolward.artefact.v1";

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// Everything that compiled code depends on beside the component: compiler
/// version, target, CPU features, settings and the build of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EngineHash([u8; 32]);

impl EngineHash {
    pub(crate) fn of(engine: &Engine) -> Self {
        struct Blake3(blake3::Hasher);
        impl Hasher for Blake3 {
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
            fn finish(&self) -> u64 {
                0
            }
        }
        let mut hasher = Blake3(blake3::Hasher::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        Self(*hasher.0.finalize().as_bytes())
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 32 hexadecimal digits of it, for a file's name; the signature covers it
    /// whole.
    pub(super) fn short(&self) -> String {
        let mut hex = blake3::Hash::from_bytes(self.0).to_hex().to_string();
        hex.truncate(32);
        hex
    }
}

/// What an artifact claims to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) component: &'a Digest,
    pub(crate) engine: &'a EngineHash,
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
