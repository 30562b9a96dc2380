//! Makes artifacts (compiled components) trustworthy: a signature covers an artifact's bytes, the
//! component that it was compiled from, and the engine that it was compiled for. The public key can
//! only verify artifacts. A forged byte of a loaded artifact would run as native code, so each
//! function that loads artifacts names the check that makes its input trustworthy.
//!
//! An artifact's file is the code and a [`Footer`]. A footer with facts about the component is
//! verified without the code.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt as _;

use toolward_bundle::component::Surface;
use toolward_signing::Digest;
use toolward_signing::envelope::pae;
use toolward_signing::key::{PublicKey, SigningKey};
use wasmtime::component::Component;
use wasmtime::{Engine, Result};

use crate::engine::EngineHash;

/// The types that separate these signatures from all others that a key could make, and artifacts
/// with facts from artifacts without.
const PAYLOAD_TYPE: &str = "application/vnd.toolward.artefact.v1";
const PAYLOAD_TYPE_WITH_FACTS: &str = "application/vnd.toolward.artefact.v2";

/// Bytes of a signature.
pub(super) const SIGNATURE: usize = 64;

/// The most bytes of facts about a component: they are held in memory before their signature is
/// verified.
pub(super) const MAX_FACTS_BYTES: usize = 64 << 10;

/// Before the signature of a footer with facts.
const MARK: [u8; 8] = *b"TWfacts2";

/// The bytes of a footer after the facts: their length, the hash of the code, the mark and the
/// signature.
const FOOTER_END: usize = size_of::<u64>() + blake3::OUT_LEN + MARK.len() + SIGNATURE;

/// The facts about a component, for its artifact. Empty if it has none, or too many.
pub(super) fn facts(wasm: &[u8]) -> Vec<u8> {
    let facts = Surface::facts(wasm).unwrap_or_default();
    match facts.len() {
        0..=MAX_FACTS_BYTES => facts,
        _ => Vec::new(),
    }
}

/// The component and the engine that an artifact claims to be for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'a> {
    pub(super) component: &'a Digest,
    pub(super) engine: &'a EngineHash,
}

impl Claim<'_> {
    fn message(&self, artifact: &blake3::Hash, facts: &[u8]) -> Vec<u8> {
        let payload = [
            *self.component.as_bytes(),
            *self.engine.as_bytes(),
            *artifact.as_bytes(),
            *blake3::hash(facts).as_bytes(),
        ];
        match (payload.split_last(), facts) {
            (Some((_, payload)), []) => pae(PAYLOAD_TYPE, payload.as_flattened()),
            _ => pae(PAYLOAD_TYPE_WITH_FACTS, payload.as_flattened()),
        }
    }

    pub(super) fn sign(&self, artifact: &blake3::Hash, key: &SigningKey) -> [u8; SIGNATURE] {
        key.sign(&self.message(artifact, &[]))
    }

    pub(super) fn holds(
        &self,
        artifact: &blake3::Hash,
        signature: &[u8; SIGNATURE],
        key: &PublicKey,
    ) -> bool {
        key.verify(&self.message(artifact, &[]), signature).is_ok()
    }

    /// The bytes after the code in the artifact's file. Empty facts are left out, and so are facts
    /// of more than [`MAX_FACTS_BYTES`].
    pub(super) fn footer(&self, code: &blake3::Hash, facts: &[u8], key: &SigningKey) -> Vec<u8> {
        if facts.is_empty() || facts.len() > MAX_FACTS_BYTES {
            return self.sign(code, key).to_vec();
        }
        let signature = key.sign(&self.message(code, facts));
        let length = (facts.len() as u64).to_le_bytes();
        [facts, &length, code.as_bytes(), &MARK, &signature].concat()
    }
}

/// The bytes after the code in an artifact's file.
#[derive(Debug)]
pub(super) enum Footer {
    /// A signature that covers facts about the component and the hash of the code. It was verified;
    /// the code was not compared with the hash.
    Facts { facts: Vec<u8>, code: blake3::Hash },
    /// A signature that was not verified yet, since it needs the hash of the code.
    Signature([u8; SIGNATURE]),
}

impl Footer {
    /// Reads the footer of a file of `length` bytes.
    pub(super) fn read(
        file: &File,
        length: u64,
        claim: Claim<'_>,
        public: &PublicKey,
    ) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        let mut signature = [0; SIGNATURE];
        let place = length.checked_sub(SIGNATURE as u64);
        let place = place.ok_or("it is too short for a signature")?;
        file.read_exact_at(&mut signature, place).map_err(text)?;
        let Some(end) = length.checked_sub(FOOTER_END as u64) else {
            return Ok(Self::Signature(signature));
        };
        let mut fixed = [0; FOOTER_END - SIGNATURE];
        file.read_exact_at(&mut fixed, end).map_err(text)?;
        let parts = fixed
            .split_first_chunk()
            .and_then(|(length, rest)| Some((length, rest.split_first_chunk()?)));
        let Some((size, (code, _))) = parts.filter(|(_, (_, mark))| *mark == MARK) else {
            return Ok(Self::Signature(signature));
        };
        let size = u64::from_le_bytes(*size);
        let bytes = usize::try_from(size).ok();
        let bytes = bytes.filter(|bytes| (1..=MAX_FACTS_BYTES).contains(bytes));
        let (bytes, start) = bytes
            .zip(end.checked_sub(size))
            .ok_or("its facts have a wrong length")?;
        let mut facts = vec![0; bytes];
        file.read_exact_at(&mut facts, start).map_err(text)?;
        let code = blake3::Hash::from_bytes(*code);
        let message = claim.message(&code, &facts);
        match public.verify(&message, &signature) {
            Ok(()) => Ok(Self::Facts { facts, code }),
            Err(_) => Err("its signature is wrong".to_owned()),
        }
    }

    /// The length of the footer.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Facts { facts, .. } => facts.len().saturating_add(FOOTER_END) as u64,
            Self::Signature(_) => SIGNATURE as u64,
        }
    }

    /// Whether the footer is of this code.
    pub(super) fn is_of(&self, code: &blake3::Hash, claim: Claim<'_>, public: &PublicKey) -> bool {
        match self {
            Self::Facts { code: signed, .. } => signed == code,
            Self::Signature(signature) => claim.holds(code, signature, public),
        }
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
    // directory that only this user can write to. The footer after the code is mapped but not read:
    // the engine reads only the sections that the file's headers name, and the signature covers
    // these.
    unsafe { Component::deserialize_file(engine, path) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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

    #[test]
    fn a_footer_with_facts_is_verified_without_the_code_and_holds_for_it_only() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let (component, engine) = (Digest::of(b"a"), EngineHash::from_bytes([1; 32]));
        let claim = Claim {
            component: &component,
            engine: &engine,
        };
        let read = |bytes: &[u8], claim: Claim<'_>| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            Footer::read(&file, bytes.len() as u64, claim, &key.public())
        };
        let code = blake3::hash(b"code");
        let bytes = [&b"code"[..], &claim.footer(&code, b"facts", &key)].concat();
        let footer = read(&bytes, claim).unwrap();
        assert_eq!(footer.length() as usize, bytes.len() - 4);
        assert!(matches!(&footer, Footer::Facts { facts, .. } if facts == b"facts"));
        assert!(footer.is_of(&code, claim, &key.public()));
        assert!(!footer.is_of(&blake3::hash(b"Code"), claim, &key.public()));

        let other = Digest::of(b"b");
        let of_other = Claim {
            component: &other,
            ..claim
        };
        read(&bytes, of_other).unwrap_err();
        // No change of a footer gives other facts.
        for position in 4..bytes.len() {
            for flip in [0x01, 0x80] {
                let mut changed = bytes.clone();
                changed[position] ^= flip;
                let footer = read(&changed, claim);
                let is_genuine = footer.is_ok_and(|footer| match footer {
                    Footer::Facts { .. } => true,
                    footer => footer.is_of(
                        &blake3::hash(&changed[..bytes.len() - SIGNATURE]),
                        claim,
                        &key.public(),
                    ),
                });
                assert!(!is_genuine, "byte {position}");
            }
        }
        for length in 0..bytes.len() {
            let footer = read(&bytes[bytes.len() - length..], claim);
            let has_facts = matches!(footer, Ok(Footer::Facts { .. }));
            assert_eq!(has_facts, length >= bytes.len() - 4, "{length}");
        }
    }

    #[test]
    fn an_artifact_of_the_earlier_form_has_no_facts_and_still_holds() {
        let key = SigningKey::from_bytes(&[7; 32]);
        let (component, engine) = (Digest::of(b"a"), EngineHash::from_bytes([1; 32]));
        let claim = Claim {
            component: &component,
            engine: &engine,
        };
        let code = blake3::hash(&[7; 200]);
        let footer = claim.footer(&code, b"", &key);
        assert_eq!(footer, claim.sign(&code, &key));
        assert_eq!(
            footer,
            claim.footer(&code, &vec![b' '; MAX_FACTS_BYTES + 1], &key)
        );
        let bytes = [&[7; 200][..], &footer].concat();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let footer = Footer::read(&file, bytes.len() as u64, claim, &key.public()).unwrap();
        assert!(matches!(footer, Footer::Signature(_)));
        assert!(footer.is_of(&code, claim, &key.public()));
    }
}
