//! The ledger's directory: which files lie in it, and its key.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use secrecy::ExposeSecret as _;
use toolward_signing::key::{MAX_PEM_BYTES, SigningKey};
use toolward_support::files::{Folder, Links, Protection};

use crate::checkpoint::Verifier;
use crate::error::Error;

/// A ledger's directory.
#[derive(Clone, Debug)]
pub(crate) struct Place(PathBuf);

impl Place {
    /// Makes the directory where it is missing.
    pub(crate) fn make(directory: &Path) -> Result<Self, Error> {
        Folder::make(directory, Protection::Private)?;
        Self::open(directory)
    }

    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        Folder::open(directory, Protection::Private)?;
        let resolved = directory.canonicalize();
        Ok(Self(
            resolved.map_err(|error| Error::io("the ledger", error))?,
        ))
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.0.join("records.sqlite")
    }

    pub(crate) fn payloads(&self) -> PathBuf {
        self.0.join("payloads.sqlite")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.0.join("index.sqlite")
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.0.join("sessions")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    fn vkey(&self) -> PathBuf {
        self.0.join("ledger.vkey")
    }

    /// The key that signs. It is made for a ledger that has no rows: for another one, a new key would hide that
    /// the old one is gone.
    pub(crate) fn signing_key(&self, is_new: bool) -> Result<SigningKey, Error> {
        let path = self.key();
        match toolward_support::files::open(&path, Protection::Private, Links::Refuse) {
            Ok(file) => {
                let bytes = toolward_support::files::read(file, &path, MAX_PEM_BYTES as u64)?;
                let key = SigningKey::import(&bytes, None).map_err(Error::key)?;
                self.publish(&key)?;
                Ok(key)
            }
            Err(error) if error.is_missing() && is_new => {
                let key = SigningKey::generate().map_err(Error::key)?;
                let pem = key.to_pem().map_err(Error::key)?;
                match toolward_support::files::create(&path, pem.expose_secret().as_bytes(), 0o600)
                {
                    // Another process was faster.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        self.signing_key(false)
                    }
                    Err(error) => Err(Error::io("the ledger's key", error)),
                    Ok(()) => {
                        self.publish(&key)?;
                        Ok(key)
                    }
                }
            }
            Err(error) if error.is_missing() => Err(Error::key("key.pem is missing")),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the public half beside it, unless it is there.
    fn publish(&self, key: &SigningKey) -> Result<(), Error> {
        let verifier = Verifier::new(key.public());
        let line = format!("{}\n", verifier.to_vkey());
        match toolward_support::files::create(&self.vkey(), line.as_bytes(), 0o600) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match self.verifier()? {
                found if found == verifier => Ok(()),
                _ => Err(Error::key("ledger.vkey is another key's")),
            },
            Err(error) => Err(Error::io("the ledger's public key", error)),
        }
    }

    /// Whose checkpoints are the ledger's.
    pub(crate) fn verifier(&self) -> Result<Verifier, Error> {
        let path = self.vkey();
        let file = toolward_support::files::open(&path, Protection::Own, Links::Refuse)?;
        let bytes = toolward_support::files::read(file, &path, 1024)?;
        std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| Verifier::from_vkey(text.trim_end()))
            .ok_or_else(|| Error::key("ledger.vkey is not a verifier key"))
    }
}
