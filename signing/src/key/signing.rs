//! Signing keys and the PKCS#8 files they live in. Secret bytes are wiped when they are dropped.

use std::fmt;

use ed25519_dalek::Signer as _;
use ed25519_dalek::pkcs8::KeypairBytes;
use pkcs8::der::zeroize::Zeroizing;
use pkcs8::pkcs5::{pbes2, scrypt};
use pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, LineEnding, PrivateKeyInfoRef};
use secrecy::{ExposeSecret as _, SecretString};

use super::{MAX_PEM_BYTES, PublicKey};
use crate::refusal::{Reason, Refusal};

/// scrypt's cost for encrypted keys, N = 2^14, r = 8, p = 5: the most that OpenSSL still reads, whose
/// limit on memory refuses N = 2^15. p = 5 makes up for it in time.
const SCRYPT_LOG_N: u8 = 14;
const SCRYPT_R: u32 = 8;
const SCRYPT_P: u32 = 5;

/// An Ed25519 signing key.
pub struct SigningKey(ed25519_dalek::SigningKey);

/// Whether a PEM text is an encrypted signing key, so that a passphrase must be asked for.
#[must_use]
pub fn is_encrypted_pem(pem: &str) -> bool {
    pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----")
}

impl SigningKey {
    /// A new key from the system's random numbers.
    ///
    /// # Errors
    /// [`Reason::Io`] if the system gives none.
    pub fn generate() -> Result<Self, Refusal> {
        let mut seed = Zeroizing::new([0; 32]);
        random(seed.as_mut_slice())?;
        Ok(Self(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// A key from its 32 secret bytes (RFC 8032's private key), for tests and for keys kept elsewhere.
    #[must_use]
    pub fn from_bytes(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// Reads a PKCS#8 PEM file, plain or encrypted. OpenSSL's `genpkey -algorithm ed25519` writes one.
    /// The passphrase is looked at only if the file is encrypted.
    ///
    /// # Errors
    /// [`Reason::PassphraseNeeded`] for an encrypted file without passphrase, [`Reason::PassphraseWrong`]
    /// for another one, [`Reason::KeyInvalid`] for anything that is no Ed25519 key, or whose public half
    /// is another key's: signing with it would give the private half away.
    pub fn from_pem(pem: &str, passphrase: Option<&SecretString>) -> Result<Self, Refusal> {
        let invalid = |found: String| {
            Refusal::new(Reason::KeyInvalid)
                .expected("an Ed25519 signing key in a PKCS#8 PEM file (`BEGIN PRIVATE KEY`)")
                .found(found)
        };
        if pem.len() > MAX_PEM_BYTES {
            return Err(invalid(crate::text::bytes(pem.len() as u64)));
        }
        let pair = if is_encrypted_pem(pem) {
            let passphrase = passphrase.ok_or_else(|| Refusal::new(Reason::PassphraseNeeded))?;
            KeypairBytes::from_pkcs8_encrypted_pem(pem, passphrase.expose_secret()).map_err(
                |error| match error {
                    pkcs8::Error::EncryptedPrivateKey(_) => Refusal::new(Reason::PassphraseWrong),
                    other => invalid(other.to_string()),
                },
            )?
        } else {
            KeypairBytes::from_pkcs8_pem(pem).map_err(|error| invalid(error.to_string()))?
        };
        let key = ed25519_dalek::SigningKey::from_bytes(&pair.secret_key);
        if pair
            .public_key
            .is_some_and(|public| public.0 != *key.verifying_key().as_bytes())
        {
            return Err(invalid("a public half of another key".to_owned()));
        }
        Ok(Self(key))
    }

    /// The key as a PKCS#8 version 1 PEM file, not encrypted. Version 2, which has the public key in it,
    /// is what OpenSSL 3.0 can't read.
    ///
    /// # Errors
    /// [`Reason::KeyInvalid`], should the encoder fail.
    pub fn to_pem(&self) -> Result<SecretString, Refusal> {
        let pem = self
            .pair()
            .to_pkcs8_pem(LineEnding::LF)
            .map_err(encoder_failed)?;
        Ok(SecretString::from(pem.as_str()))
    }

    /// The key as an encrypted PKCS#8 PEM file: scrypt (N = 2^14, r = 8, p = 5) and AES-256-CBC, which
    /// OpenSSL reads.
    ///
    /// # Errors
    /// [`Reason::Io`] if the system gives no random numbers, [`Reason::KeyInvalid`], should the encoder
    /// fail.
    pub fn to_encrypted_pem(&self, passphrase: &SecretString) -> Result<SecretString, Refusal> {
        let mut salt = [0; 16];
        let mut iv = [0; 16];
        random(&mut salt)?;
        random(&mut iv)?;
        let cost = scrypt::Params::new(SCRYPT_LOG_N, SCRYPT_R, SCRYPT_P).map_err(encoder_failed)?;
        let parameters = pbes2::Parameters::generate_scrypt_aes256cbc(cost, &salt, iv)
            .map_err(encoder_failed)?;
        let plain = self.pair().to_pkcs8_der().map_err(encoder_failed)?;
        let encrypted = PrivateKeyInfoRef::try_from(plain.as_bytes())
            .and_then(|key| key.encrypt_with_params(parameters, passphrase.expose_secret()))
            .map_err(encoder_failed)?;
        let pem = encrypted
            .to_pem("ENCRYPTED PRIVATE KEY", LineEnding::LF)
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

    fn pair(&self) -> KeypairBytes {
        KeypairBytes {
            secret_key: *self.0.as_bytes(),
            public_key: None,
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({}, secret)", self.public().key_id())
    }
}

fn random(bytes: &mut [u8]) -> Result<(), Refusal> {
    getrandom::fill(bytes).map_err(|error| {
        Refusal::new(Reason::Io)
            .at("random numbers")
            .found(error.to_string())
    })
}

fn encoder_failed(error: impl fmt::Display) -> Refusal {
    Refusal::new(Reason::KeyInvalid).found(error.to_string())
}
