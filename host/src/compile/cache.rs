//! Compiled drivers on disk. A cache of the host's own making: in a directory
//! that only its user may enter, each file authenticated by a key that lies
//! there too, keyed by component and engine. Anything that is not exactly what
//! this host wrote is removed and compiled again.

use std::fs::{File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use toolward_signing::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::artefact;
use crate::error::HostError;

const KEY_FILE: &str = "key";

/// A directory of compiled drivers.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    key: [u8; 32],
}

impl Cache {
    /// Opens the cache in `directory`, making it with mode 0700 if it is not
    /// there.
    ///
    /// # Errors
    ///
    /// [`HostError::Cache`] when the directory can't be made or read, belongs
    /// to another user, or may be written by others: somebody who can write
    /// there could run code as this user.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, HostError> {
        let directory = directory.into();
        let fail = |problem: String| HostError::Cache {
            directory: directory.clone(),
            problem,
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| fail(format!("can't be created: {error}")))?;
        let metadata = std::fs::metadata(&directory)
            .map_err(|error| fail(format!("can't be read: {error}")))?;
        own_and_private(&metadata, 0o077).map_err(fail)?;
        let key = read_or_make_key(&directory)
            .map_err(|error| fail(format!("its key can't be read or made: {error}")))?;
        Ok(Self { directory, key })
    }

    /// Where the cache lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The component compiled for `engine`, where a genuine artefact is there.
    pub(super) fn get(&self, engine: &Engine, digest: &Digest) -> Option<Component> {
        let engine_hash = engine_hash(engine);
        let prefix = format!("{engine_hash}-");
        let directory = self.directory.join(digest.to_string());
        for entry in std::fs::read_dir(&directory).ok()?.flatten() {
            let name = entry.file_name();
            let Some(code) = name.to_str().and_then(|name| name.strip_prefix(&prefix)) else {
                continue;
            };
            let path = directory.join(&name);
            match self.open_checked(&path, digest, &engine_hash, code) {
                Ok(file) => match artefact::from_checked_file(engine, &file) {
                    Ok(component) => return Some(component),
                    Err(error) => {
                        tracing::warn!(%error, "a cached driver was refused by the engine");
                    }
                },
                Err(error) => tracing::warn!(%error, "a cached driver is not genuine"),
            }
            // Whatever it is, it is of no use: make room for a genuine one.
            let _ = std::fs::remove_file(&path);
        }
        None
    }

    /// Opens an artefact once, and checks owner, mode and authentication code
    /// of the very file that was opened.
    fn open_checked(
        &self,
        path: &Path,
        digest: &Digest,
        engine_hash: &str,
        code: &str,
    ) -> Result<File, String> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(
                (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
                    .bits()
                    .cast_signed(),
            )
            .open(path)
            .map_err(|error| error.to_string())?;
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err("not a regular file".to_owned());
        }
        own_and_private(&metadata, 0o022)?;
        let mut hasher = self.hasher(digest, engine_hash);
        let read = hasher
            .update_reader(&mut file)
            .map(|_| ())
            .and_then(|()| file.rewind());
        read.map_err(|error| error.to_string())?;
        let expected = code
            .strip_suffix(".cwasm")
            .and_then(|hex| blake3::Hash::from_hex(hex).ok());
        // `blake3::Hash` compares in constant time.
        if expected != Some(hasher.finalize()) {
            return Err("its authentication code is wrong".to_owned());
        }
        Ok(file)
    }

    /// Stores an artefact: whole and synced under another name first, then
    /// renamed, so that no reader ever sees a part of it.
    pub(super) fn put(&self, engine: &Engine, digest: &Digest, bytes: &[u8]) -> io::Result<()> {
        let engine_hash = engine_hash(engine);
        let mut hasher = self.hasher(digest, &engine_hash);
        hasher.update(bytes);
        let name = format!("{engine_hash}-{}.cwasm", hasher.finalize().to_hex());
        let directory = self.directory.join(digest.to_string());
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)?;

        let temporary = directory.join(format!("tmp-{}", uuid::Uuid::now_v7()));
        let written = write_new(&temporary, bytes, 0o400)
            .and_then(|()| std::fs::rename(&temporary, directory.join(name)))
            .and_then(|()| File::open(&directory)?.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn hasher(&self, digest: &Digest, engine_hash: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(digest.as_bytes());
        hasher.update(engine_hash.as_bytes());
        hasher
    }
}

/// Refuses what another user owns, or others may do `forbidden` things with.
fn own_and_private(metadata: &std::fs::Metadata, forbidden: u32) -> Result<(), String> {
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

/// The 32 bytes that authenticate this cache's files.
fn read_or_make_key(directory: &Path) -> io::Result<[u8; 32]> {
    let path = directory.join(KEY_FILE);
    if !path.try_exists()? {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let temporary = directory.join(format!("key-{}", uuid::Uuid::now_v7()));
        write_new(&temporary, &key, 0o400)?;
        // Two processes may get here: the first link wins, both read it.
        let linked = std::fs::hard_link(&temporary, &path);
        std::fs::remove_file(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed())
        .open(&path)?;
    own_and_private(&file.metadata()?, 0o077).map_err(io::Error::other)?;
    let mut key = [0; 32];
    file.read_exact(&mut key)?;
    Ok(key)
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The engine's full compatibility hash: compiler version, target, CPU
/// features, settings and the build of this host.
fn engine_hash(engine: &Engine) -> String {
    struct Blake3(blake3::Hasher);
    impl Hasher for Blake3 {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Blake3(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let hash = hasher.0.finalize().to_hex();
    hash.get(..32).unwrap_or(&hash).to_owned()
}
