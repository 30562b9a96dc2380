//! Makes artifacts (compiled components) trustworthy: a signature covers an artifact's bytes, the
//! component that it was compiled from, and the engine that it was compiled for. The public key can
//! only verify artifacts. A forged byte of a loaded artifact would run as native code, so each
//! function that loads artifacts names the check that makes its input trustworthy.

use std::fs::File;
use std::os::fd::AsRawFd;

use toolward_signing::Digest;
use toolward_signing::envelope::pae;
use toolward_signing::key::{PublicKey, SigningKey};
use wasmtime::component::Component;
use wasmtime::{Engine, Result};

use crate::engine::EngineHash;

/// The type that separates these signatures from all others that a key could make.
const PAYLOAD_TYPE: &str = "application/vnd.toolward.artefact.v1";

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// The component and the engine that an artifact claims to be for.
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

/// Loads bytes that this process's own compiler has just returned, or whose signature by the broker
/// has just been checked.
#[expect(unsafe_code, reason = "deserialising native code")]
pub(super) fn from_own_bytes(engine: &Engine, bytes: &[u8]) -> Result<Component> {
    // SAFETY: the bytes come from `Compiler::compile` of this process, or from the broker with a
    // signature over component digest, engine hash and these bytes. The bytes have stayed in this
    // process's memory since then.
    unsafe { Component::deserialize(engine, bytes) }
}

/// Maps an open file whose signature `open_genuine` has just checked on the same file handle.
#[expect(unsafe_code, reason = "deserialising native code")]
pub(super) fn from_checked_file(engine: &Engine, file: &File) -> Result<Component> {
    // `/proc/self/fd/N` is the file that was checked, even if its path has been replaced since.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the signature over component digest, engine hash and content matched, so the
    // compiling process wrote the file for this engine. The file has mode 0400 and is in a 0700
    // directory that only this user can write to. The signature after the artifact is mapped but
    // not read: the engine reads only the sections that the file's headers name, and the signature
    // covers these.
    unsafe { Component::deserialize_file(engine, path) }
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
