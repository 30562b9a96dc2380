//! Signing keys and their PKCS#8 files. Secret bytes are wiped when they are dropped.

use std::fmt;

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::ALGORITHM_ID;
use pkcs8::der::SecretDocument;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::pem::PemLabel as _;
use pkcs8::der::zeroize::Zeroizing;
use pkcs8::pkcs5::pbes2::{self, Kdf};
use pkcs8::pkcs5::{EncryptionScheme, scrypt};
use pkcs8::{EncryptedPrivateKeyInfoRef, LineEnding, PrivateKeyInfoRef};
use secrecy::{ExposeSecret as _, SecretString};

use super::{MAX_PEM_BYTES, PublicKey};
use crate::error::{ErrorKind, Refusal};

/// scrypt's cost for encrypted keys: N = 2^14, r = 8, p = 5. OpenSSL's memory limit refuses
/// `N = 2^15`. With `p = 5`, an attempt takes as long as with a higher N.
const SCRYPT_LOG_N: u8 = 14;
const SCRYPT_R: u32 = 8;
const SCRYPT_P: u32 = 5;
/// How much decrypting an untrusted key file may cost: 256 MiB of memory, ten million rounds. More
/// would stall or end this process.
const MAX_SCRYPT_BYTES: u64 = 256 * 1024 * 1024;
const MAX_SCRYPT_PARALLELIZATION: u16 = 64;
const MAX_PBKDF2_ROUNDS: u32 = 10_000_000;
/// The bytes before the 32 secret bytes in a PKCS#8 private key: the header of an inner octet
/// string (RFC 8410, section 7).
const INNER_HEAD: [u8; 2] = [0x04, 0x20];

/// An Ed25519 signing key.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// Whether a key file in any form that [`SigningKey::import`] accepts is encrypted, and so needs a
/// passphrase.
#[must_use]
pub fn is_encrypted(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(is_encrypted_pem)
        || EncryptedPrivateKeyInfoRef::try_from(bytes).is_ok()
}

/// Whether a PEM text is an encrypted signing key, and so needs a passphrase.
#[must_use]
pub fn is_encrypted_pem(pem: &str) -> bool {
    pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

impl SigningKey {
    /// A new key from the system's random numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system gives none.
    pub fn generate() -> Result<Self, Refusal> {
        let mut seed = Zeroizing::new([0; 32]);
        random(seed.as_mut_slice())?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// A key from its 32 secret bytes (RFC 8032's private key), for tests and for keys that are
    /// stored elsewhere.
    #[must_use]
    pub fn from_bytes(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Reads a PKCS#8 PEM file, plain or encrypted. OpenSSL's `genpkey -algorithm ed25519` writes
    /// one. The passphrase is used only if the file is encrypted.
    ///
    /// # Errors
    /// [`ErrorKind::PassphraseNeeded`] for an encrypted file without a passphrase;
    /// [`ErrorKind::PassphraseWrong`] for a wrong passphrase; [`ErrorKind::KeyInvalid`] for a file
    /// that is not an Ed25519 key, or whose public half belongs to another key, since signing with
    /// it would reveal the private half. If the file is encrypted, these two errors are
    /// [`ErrorKind::PassphraseWrong`], too.
    pub fn from_pem(pem: &str, passphrase: Option<&SecretString>) -> Result<Self, Refusal> {
        if pem.len() > MAX_PEM_BYTES {
            return Err(invalid(crate::text::bytes(pem.len() as u64)));
        }
        let (label, document) =
            SecretDocument::from_pem(pem).map_err(|error| invalid(error.to_string()))?;
        if label == PrivateKeyInfoRef::PEM_LABEL {
            return read(&document).map_err(invalid);
        }
        if label != EncryptedPrivateKeyInfoRef::PEM_LABEL {
            return Err(invalid(format!("{label:?}")));
        }
        decrypt(&document, passphrase)
    }

    /// Reads a key from a file of any supported form: PKCS#8, version 1 or 2, plain or encrypted,
    /// as PEM or as DER. Copies made here are wiped; the caller wipes `bytes`.
    ///
    /// # Errors
    /// The errors of [`SigningKey::from_pem`].
    pub fn import(bytes: &[u8], passphrase: Option<&SecretString>) -> Result<Self, Refusal> {
        if let Ok(text) = std::str::from_utf8(bytes)
            && text.contains("-----BEGIN ")
        {
            return Self::from_pem(text, passphrase);
        }
        if bytes.len() > MAX_PEM_BYTES {
            return Err(invalid(crate::text::bytes(bytes.len() as u64)));
        }
        if PublicKey::import(bytes).is_ok() {
            return Err(invalid("a public key".to_owned()));
        }
        let document = SecretDocument::try_from(bytes)
            .map_err(|_| invalid("neither PEM nor DER".to_owned()))?;
        if EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).is_ok() {
            decrypt(&document, passphrase)
        } else {
            read(&document).map_err(invalid)
        }
    }

    /// The key as a PKCS#8 version 1 PEM file, not encrypted. OpenSSL 3.0 can't read version 2,
    /// which contains the public key.
    ///
    /// # Errors
    /// [`ErrorKind::KeyInvalid`], should the encoder fail.
    pub fn to_pem(&self) -> Result<SecretString, Refusal> {
        let pem = self
            .document()?
            .to_pem(PrivateKeyInfoRef::PEM_LABEL, LineEnding::LF)
            .map_err(encoder_failed)?;
        Ok(SecretString::from(pem.as_str()))
    }

    /// The key as an encrypted PKCS#8 PEM file: scrypt (N = 2^14, r = 8, p = 5) and AES-256-CBC,
    /// which OpenSSL reads.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the system gives no random numbers, [`ErrorKind::KeyInvalid`], should
    /// the encoder fail.
    pub fn to_encrypted_pem(&self, passphrase: &SecretString) -> Result<SecretString, Refusal> {
        let mut salt = [0; 16];
        let mut iv = [0; 16];
        random(&mut salt)?;
        random(&mut iv)?;
        let cost = scrypt::Params::new(SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P).map_err(encoder_failed)?;
        let parameters = pbes2::Parameters::generate_scrypt_aes256cbc(cost, &salt, iv)
            .map_err(encoder_failed)?;
        let plain = self.document()?;
        let encrypted = PrivateKeyInfoRef::try_from(plain.as_bytes())
            .and_then(|key| key.encrypt_with_params(parameters, passphrase.expose_secret()))
            .map_err(encoder_failed)?;
        let pem = encrypted
            .to_pem(EncryptedPrivateKeyInfoRef::PEM_LABEL, LineEnding::LF)
            .map_err(encoder_failed)?;
        Ok(SecretString::from(pem.as_str()))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::new(self.0.verifying_key())
    }

    /// Signs a message (RFC 8032, deterministic).
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// The key as PKCS#8 version 1, which has no public key.
    fn document(&self) -> Result<SecretDocument, Refusal> {
        let mut inner = Zeroizing::new(Vec::with_capacity(34));
        inner.extend_from_slice(&INNER_HEAD);
        inner.extend_from_slice(self.0.as_bytes());
        let octets = OctetStringRef::new(&inner).map_err(encoder_failed)?;
        SecretDocument::encode_msg(&PrivateKeyInfoRef::new(ALGORITHM_ID, octets))
            .map_err(encoder_failed)
    }
}

fn invalid(found: String) -> Refusal {
    Refusal::new(ErrorKind::KeyInvalid)
        .expected("an Ed25519 signing key in a PKCS#8 file (`BEGIN PRIVATE KEY`)")
        .found(found)
}

fn decrypt(
    document: &SecretDocument,
    passphrase: Option<&SecretString>,
) -> Result<SigningKey, Refusal> {
    let passphrase = passphrase.ok_or_else(|| Refusal::new(ErrorKind::PassphraseNeeded))?;
    let encrypted = EncryptedPrivateKeyInfoRef::try_from(document.as_bytes())
        .map_err(|error| invalid(error.to_string()))?;
    if !is_affordable(&encrypted.encryption_algorithm) {
        return Err(invalid(
            "an encryption that is unknown or costs too much to open".to_owned(),
        ));
    }
    let document = encrypted
        .decrypt(passphrase.expose_secret())
        .map_err(|_| Refusal::new(ErrorKind::PassphraseWrong))?;
    // About one wrong passphrase in 256 leaves padding that looks valid, so an invalid key most
    // likely means a wrong passphrase.
    read(&document).map_err(|_| Refusal::new(ErrorKind::PassphraseWrong))
}

/// Reads PKCS#8, version 1 or 2; the error describes what the file has instead of an Ed25519 key.
fn read(document: &SecretDocument) -> Result<SigningKey, String> {
    let key =
        PrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|error| error.to_string())?;
    if key.algorithm != ALGORITHM_ID {
        return Err(format!("a key of algorithm {}", key.algorithm.oid));
    }
    let seed: &[u8; 32] = key
        .private_key
        .as_bytes()
        .strip_prefix(&INNER_HEAD)
        .and_then(|seed| seed.try_into().ok())
        .ok_or("a private key of another length than 32 bytes")?;
    let signing = ed25519_dalek::SigningKey::from_bytes(seed);
    match key.public_key {
        Some(public) if public.as_bytes() != Some(signing.verifying_key().as_bytes()) => {
            Err("a public half of another key".to_owned())
        }
        _ => Ok(SigningKey(signing)),
    }
}

/// Whether the cost of trying a passphrase is within the limits.
fn is_affordable(scheme: &EncryptionScheme) -> bool {
    let EncryptionScheme::Pbes2(parameters) = scheme else {
        return false;
    };
    match &parameters.kdf {
        Kdf::Scrypt(cost) => {
            let memory = cost
                .cost_parameter
                .checked_mul(128 * u64::from(cost.block_size));
            cost.cost_parameter > 1
                && memory.is_some_and(|memory| memory <= MAX_SCRYPT_BYTES)
                && cost.parallelization <= MAX_SCRYPT_PARALLELIZATION
        }
        Kdf::Pbkdf2(cost) => cost.iteration_count <= MAX_PBKDF2_ROUNDS,
        _ => false,
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, secret)", self.public().key_id())
    }
}

fn random(bytes: &mut [u8]) -> Result<(), Refusal> {
    getrandom::fill(bytes).map_err(|error| {
        Refusal::new(ErrorKind::Io)
            .at("random numbers")
            .found(error.to_string())
    })
}

fn encoder_failed(error: impl fmt::Display) -> Refusal {
    Refusal::new(ErrorKind::KeyInvalid).found(error.to_string())
}
