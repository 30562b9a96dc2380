//! The files of a key pair: a private key that only its owner can read, and its public half next to
//! it.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use toolward_signing::secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use crate::error::AuthorError;

/// The most bytes of a file with a key or passphrase.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Returns the path of the public half, `me.pub.pem`, for a private key `me.pem`. Neither path may
/// exist.
///
/// # Errors
///
/// [`AuthorError::Exists`].
pub fn public_half(private: &Path) -> Result<PathBuf, AuthorError> {
    let public = private.with_extension("pub.pem");
    free(private)?;
    free(&public)?;
    Ok(public)
}

/// Checks that nothing exists at a path.
///
/// # Errors
///
/// [`AuthorError::Exists`].
pub fn free(path: &Path) -> Result<(), AuthorError> {
    match path.symlink_metadata() {
        Ok(_) => Err(AuthorError::Exists(path.to_owned())),
        Err(_) => Ok(()),
    }
}

/// Writes a new file that only its owner can read.
///
/// # Errors
///
/// [`AuthorError::Exists`], [`AuthorError::Write`].
pub fn write_private(path: &Path, pem: &SecretString) -> Result<(), AuthorError> {
    write(path, pem.expose_secret().as_bytes(), 0o600)
}

/// Writes a new file that everyone may read.
///
/// # Errors
///
/// The errors of [`write_private`].
pub fn write_public(path: &Path, bytes: &[u8]) -> Result<(), AuthorError> {
    write(path, bytes, 0o666)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AuthorError> {
    let written = toolward_support::files::write_new(path, &[bytes], mode);
    written.map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => AuthorError::Exists(path.to_owned()),
        _ => AuthorError::Write(path.to_owned(), source),
    })
}

/// Reads the first 64 KiB of a file that may hold a secret. The file may be a pipe.
///
/// # Errors
///
/// The operating system's error.
pub fn read(path: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Allocated at its largest size, since growing would leave copies in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES as usize));
    let file = std::fs::File::open(path)?;
    file.take(MAX_SECRET_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as [`read`] does. The file must contain text.
///
/// # Errors
///
/// The operating system's error. Fails also if the file is not UTF-8.
pub fn read_text(path: &Path) -> std::io::Result<SecretString> {
    let bytes = read(path)?;
    let mut text = String::new();
    bytes.as_slice().read_to_string(&mut text)?;
    Ok(SecretString::from(text))
}
