//! The key pair of a cache. The private half is in a directory of its own, which a
//! confinement can leave out.

use std::io;
use std::path::Path;

use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::secrecy::ExposeSecret;
use toolward_support::files::{Folder, Links, Protection};

const PUBLIC: &str = "public-key.pem";
const PRIVATE_DIRECTORY: &str = "private";
const PRIVATE: &str = "key.pem";

/// No PEM file of a key is larger.
const MAX_PEM_BYTES: u64 = 4096;

/// The key that signs artifacts. At the first use it is made, and its public half
/// written.
pub(super) fn signing(directory: &Path) -> io::Result<SigningKey> {
    let private = directory.join(PRIVATE_DIRECTORY);
    Folder::make(&private, Protection::Private).map_err(|error| error.problem)?;
    let path = private.join(PRIVATE);
    if !path.try_exists()? {
        let key = SigningKey::generate().map_err(io::Error::other)?;
        let pem = key.to_pem().map_err(io::Error::other)?;
        // Two processes may race here: the first file stays, and both read it.
        match toolward_support::files::create(&path, pem.expose_secret().as_bytes(), 0o600) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let pem = zeroize::Zeroizing::new(read(&path, Protection::Private)?);
    let key = SigningKey::from_pem(&pem, None).map_err(io::Error::other)?;
    if public(directory).ok().as_ref() != Some(&key.public()) {
        let pem = key.public().to_pem().map_err(io::Error::other)?;
        toolward_support::files::replace(&directory.join(PUBLIC), pem.as_bytes(), 0o400)?;
    }
    Ok(key)
}

/// The key that verifies artifacts.
pub(super) fn public(directory: &Path) -> io::Result<PublicKey> {
    let pem = read(&directory.join(PUBLIC), Protection::Own)?;
    PublicKey::from_pem(&pem).map_err(io::Error::other)
}

fn read(path: &Path, protection: Protection) -> io::Result<String> {
    let bytes = toolward_support::files::open(path, protection, Links::Refuse)
        .and_then(|file| toolward_support::files::read(file, path, MAX_PEM_BYTES))
        .map_err(|error| error.problem)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}
