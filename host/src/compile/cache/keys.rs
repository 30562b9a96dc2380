//! The key pair of a cache. The private half lies in a directory of its own,
//! so that a process can be kept from it and still read all the rest.

use std::fs::Metadata;
use std::io;
use std::path::Path;

use toolward_files::{Folder, Links, Protection};
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::secrecy::ExposeSecret;

const PUBLIC: &str = "public-key.pem";
const PRIVATE_DIRECTORY: &str = "private";
const PRIVATE: &str = "key.pem";

/// More than any key of ours takes as PEM.
const MAX_PEM_BYTES: u64 = 4096;

/// The key that signs artifacts; made at the first use. Its public half is
/// written beside it.
pub(super) fn signing(directory: &Path) -> io::Result<SigningKey> {
    let private = directory.join(PRIVATE_DIRECTORY);
    Folder::make(&private, Protection::Private).map_err(|error| error.problem)?;
    let path = private.join(PRIVATE);
    if !path.try_exists()? {
        let key = SigningKey::generate().map_err(io::Error::other)?;
        let pem = key.to_pem().map_err(io::Error::other)?;
        // Two processes may get here: the first one's file stays, both read it.
        match toolward_files::create(&path, pem.expose_secret().as_bytes(), 0o600) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let pem = zeroize::Zeroizing::new(read(&path, Protection::Private)?);
    let key = SigningKey::from_pem(&pem, None).map_err(io::Error::other)?;
    if public(directory).ok().as_ref() != Some(&key.public()) {
        let pem = key.public().to_pem().map_err(io::Error::other)?;
        toolward_files::replace(&directory.join(PUBLIC), pem.as_bytes(), 0o400)?;
    }
    Ok(key)
}

/// The key that artifacts are checked with, where there is one yet.
pub(super) fn public(directory: &Path) -> io::Result<PublicKey> {
    let pem = read(&directory.join(PUBLIC), Protection::Own)?;
    PublicKey::from_pem(&pem).map_err(io::Error::other)
}

fn read(path: &Path, protection: Protection) -> io::Result<String> {
    let bytes = toolward_files::open(path, protection, Links::Refuse)
        .and_then(|file| toolward_files::read(file, path, MAX_PEM_BYTES))
        .map_err(|error| error.problem)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Refuses what another user owns, or others may do `forbidden` things with.
pub(super) fn own_and_private(metadata: &Metadata, forbidden: u32) -> Result<(), String> {
    let protection = match forbidden {
        0o022 => Protection::Own,
        _ => Protection::Private,
    };
    protection
        .check(metadata)
        .map_err(|problem| problem.to_string())
}

/// Writes a file that must not be there yet, through to the disk.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    toolward_files::write_new(path, bytes, mode)
}
