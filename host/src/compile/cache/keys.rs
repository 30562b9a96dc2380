//! The key pair of a cache. The private half lies in a directory of its own,
//! so that a process can be kept from it and still read all the rest.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::secrecy::ExposeSecret;

const PUBLIC: &str = "public-key.pem";
const PRIVATE_DIRECTORY: &str = "private";
const PRIVATE: &str = "key.pem";

/// More than any key of ours takes as PEM.
const PEM_BYTES: u64 = 4096;

/// The key that signs artifacts; made at the first use. Its public half is
/// written beside it.
pub(super) fn signing(directory: &Path) -> io::Result<SigningKey> {
    let private = directory.join(PRIVATE_DIRECTORY);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&private)?;
    own_and_private(&std::fs::metadata(&private)?, 0o077).map_err(io::Error::other)?;
    let path = private.join(PRIVATE);
    if !path.try_exists()? {
        let key = SigningKey::generate().map_err(io::Error::other)?;
        let pem = key.to_pem().map_err(io::Error::other)?;
        let temporary = private.join(format!("tmp-{}", uuid::Uuid::now_v7()));
        write_new(&temporary, pem.expose_secret().as_bytes(), 0o600)?;
        // Two processes may get here: the first link wins, both read it.
        let linked = std::fs::hard_link(&temporary, &path);
        std::fs::remove_file(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let pem = zeroize::Zeroizing::new(read(&path, 0o077)?);
    let key = SigningKey::from_pem(&pem, None).map_err(io::Error::other)?;
    if public(directory).ok().as_ref() != Some(&key.public()) {
        let pem = key.public().to_pem().map_err(io::Error::other)?;
        let temporary = directory.join(format!("tmp-{}", uuid::Uuid::now_v7()));
        write_new(&temporary, pem.as_bytes(), 0o400)?;
        std::fs::rename(&temporary, directory.join(PUBLIC))?;
    }
    Ok(key)
}

/// The key that artifacts are checked with, where there is one yet.
pub(super) fn public(directory: &Path) -> io::Result<PublicKey> {
    let pem = read(&directory.join(PUBLIC), 0o022)?;
    PublicKey::from_pem(&pem).map_err(io::Error::other)
}

fn read(path: &Path, forbidden: u32) -> io::Result<String> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(
            (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
                .bits()
                .cast_signed(),
        )
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    own_and_private(&metadata, forbidden).map_err(io::Error::other)?;
    let mut text = String::new();
    file.take(PEM_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses what another user owns, or others may do `forbidden` things with.
pub(super) fn own_and_private(metadata: &std::fs::Metadata, forbidden: u32) -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(format!("belongs to user {}, not to {user}", metadata.uid()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & forbidden != 0 {
        return Err(format!(
            "has mode {mode:03o}: others have access; use chmod go-rwx"
        ));
    }
    Ok(())
}

/// Writes a file that must not be there yet, through to the disk.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
