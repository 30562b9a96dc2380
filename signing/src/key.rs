//! Ed25519 keys: their files, their ids, and strict verification. No file is opened here. A
//! [`PublicKey`] is checked once, when it is made.

mod signing;

use std::fmt;

use ed25519_dalek::pkcs8::spki::EncodePublicKey as _;
use ed25519_dalek::pkcs8::{DecodePublicKey as _, PublicKeyBytes};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};

use crate::digest::impl_hex_text;
use crate::error::{ErrorKind, Refusal};

pub use signing::{SigningKey, is_encrypted, is_encrypted_pem};

/// How long the text of a key file may be, in bytes; a key needs about 400.
pub const MAX_PEM_BYTES: usize = 16 * 1024;

/// The ids of the example keys in `examples/keys/`. Their private halves are public, so a trust
/// store refuses them. `--trust-key` accepts them with a warning.
pub const EXAMPLE_KEY_IDS: &[&str] =
    &["cd841c22fb88b5562fa3e6a5fdd74be5dd34deb54cf96b6b16c43d6c4d4f74a5"];

/// The bytes before the 32 bytes of an Ed25519 key in its SPKI DER (RFC 8410, section 4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// An Ed25519 public key with a canonical encoding, in the prime-order group.
///
/// ```
/// use toolward_signing::Refusal;
/// use toolward_signing::key::{PublicKey, SigningKey};
///
/// # fn main() -> Result<(), Refusal> {
/// let key = SigningKey::generate()?.public();
/// assert_eq!(PublicKey::from_pem(&key.to_pem()?)?.key_id(), key.key_id());
/// let refusal: Refusal = PublicKey::from_pem("ssh-ed25519 AAAA…").unwrap_err();
/// assert_eq!(refusal.code(), "key-invalid");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
    id: KeyId,
}

impl PublicKey {
    /// Reads an SPKI PEM file (`-----BEGIN PUBLIC KEY-----`), as `openssl pkey -pubout` writes it.
    ///
    /// # Errors
    /// [`ErrorKind::KeyInvalid`] if the text is anything else, [`ErrorKind::KeyWeak`] as for
    /// [`PublicKey::from_bytes`].
    pub fn from_pem(pem: &str) -> Result<Self, Refusal> {
        if pem.len() > MAX_PEM_BYTES {
            return Err(Refusal::new(ErrorKind::KeyInvalid)
                .expected("an SPKI PEM file of at most 16 KiB")
                .found(crate::text::bytes(pem.len() as u64)));
        }
        let invalid = Refusal::new(ErrorKind::KeyInvalid)
            .expected("an Ed25519 public key in an SPKI PEM file (`BEGIN PUBLIC KEY`)");
        if pem.contains("PRIVATE KEY-----") {
            return Err(invalid.found("a private key").hinted(
                "name the public key's file; `openssl pkey -in KEY -pubout` writes one. Never hand out the private key",
            ));
        }
        if !pem.contains("-----BEGIN ") {
            return Err(invalid.found("text without a key in it").hinted(
                "name the publisher's public key file; its name mostly ends in `.pub.pem`",
            ));
        }
        if pem.matches("-----BEGIN ").count() > 1 {
            return Err(invalid
                .found("several keys")
                .hinted("name a file that holds one public key, and nothing else"));
        }
        let bytes = PublicKeyBytes::from_public_key_pem(pem)
            .map_err(|error| invalid.found(error.to_string()))?;
        Self::from_bytes(&bytes.0)
    }

    /// Reads a key from a file of either form: SPKI PEM, see [`PublicKey::from_pem`], or SPKI DER,
    /// as `openssl pkey -pubout -outform DER` writes it.
    ///
    /// # Errors
    /// The errors of [`PublicKey::from_pem`].
    pub fn import(bytes: &[u8]) -> Result<Self, Refusal> {
        if let Some(key) = bytes.strip_prefix(&SPKI_PREFIX)
            && let Ok(key) = key.try_into()
        {
            return Self::from_bytes(key);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            Refusal::new(ErrorKind::KeyInvalid)
                .expected("an Ed25519 public key in an SPKI file, PEM or DER")
                .found("something else")
        })?;
        Self::from_pem(text)
    }

    /// A key from its 32 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::KeyInvalid`] if the bytes are not a point of the curve, or not its canonical
    /// encoding (RFC 8032, section 5.1.3); [`ErrorKind::KeyWeak`] if the point is outside the
    /// prime-order group. (A key of small order verifies signatures that its owner never made.)
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, Refusal> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| {
            Refusal::new(ErrorKind::KeyInvalid)
                .expected("a point of the curve")
                .found("32 bytes that are none")
        })?;
        let point = key.to_edwards();
        if key.is_weak() || !point.is_torsion_free() {
            return Err(Refusal::new(ErrorKind::KeyWeak)
                .expected("a point of prime order")
                .found("a point with a component of small order"));
        }
        if point.compress().as_bytes() != bytes {
            return Err(Refusal::new(ErrorKind::KeyInvalid)
                .expected("a canonical encoding")
                .found("another encoding of the same point"));
        }
        Ok(Self::new(key))
    }

    /// Wraps a key that was checked, or the public half of a signing key, which needs no check.
    fn new(key: VerifyingKey) -> Self {
        let spki = Sha256::new_with_prefix(SPKI_PREFIX).chain_update(key.as_bytes());
        Self {
            key,
            id: KeyId(spki.finalize().into()),
        }
    }

    /// The key as an SPKI PEM file, which OpenSSL reads.
    ///
    /// # Errors
    /// [`ErrorKind::KeyInvalid`], should the encoder fail.
    pub fn to_pem(&self) -> Result<String, Refusal> {
        self.key
            .to_public_key_pem(pkcs8::LineEnding::LF)
            .map_err(|error| Refusal::new(ErrorKind::KeyInvalid).found(error.to_string()))
    }

    /// The key as SPKI DER. The key id is the SHA-256 of these bytes.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        [SPKI_PREFIX.as_slice(), self.as_bytes()].concat()
    }

    /// The 32 bytes of its canonical encoding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// The id of the key.
    #[must_use]
    pub fn key_id(&self) -> KeyId {
        self.id
    }

    /// Whether this is the example key, whose private half is published in the repository.
    #[must_use]
    pub fn is_example(&self) -> bool {
        let id = self.id.to_string();
        EXAMPLE_KEY_IDS.contains(&id.as_str())
    }

    /// Verifies a signature strictly: in addition to the rules of RFC 8032, a signature whose point
    /// `R` has small order is refused. So no two keys and no two messages share a signature.
    ///
    /// # Errors
    /// [`ErrorKind::SignatureInvalid`], for signatures of another length than 64 bytes, too.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), Refusal> {
        let refusal = || Refusal::new(ErrorKind::SignatureInvalid).at(format!("key {}", self.id));
        let signature = Signature::from_slice(signature).map_err(|_| {
            refusal()
                .expected("64 bytes")
                .found(crate::text::bytes(signature.len() as u64))
        })?;
        self.key
            .verify_strict(message, &signature)
            .map_err(|_| refusal())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id)
    }
}

/// The SHA-256 of a public key's SPKI DER, written as 64 lower-case hexadecimal digits. It is the
/// `keyid` of DSSE signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    /// The first 12 digits: enough to tell keys apart in a list.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl_hex_text!(KeyId);
