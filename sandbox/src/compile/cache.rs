//! Compiled drivers on disk, in a directory that only the host's user may enter. Files are named by
//! component and engine, and end with a signature. A file is mapped only if its signature verifies.
//! After its code, a file may have facts about the component. They are read without the code.
//! The signing key is in a separate directory, so that a confined process can be kept from it.

mod room;

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::secrecy::ExposeSecret;
use toolward_support::files::{Folder, Links, Protection};
use wasmtime::Engine;
use wasmtime::component::Component;

use self::room::Room;
use super::artifact::{Claim, Footer};
use super::limits::Result;
use super::{artifact, refused};
use crate::error::HostError;

const ARTIFACTS: &str = "artefacts";
const TEMPORARY: &str = "tmp-";
const ARTIFACT: &str = ".cwasm";

/// A directory of compiled drivers, and the key that signs them. A process that has the key can add
/// code that hosts run. Drivers are removed to keep the cache below a [limit](Self::limit).
///
/// ```no_run
/// use toolward_sandbox::compile::Cache;
///
/// let cache = Cache::open("/var/cache/example/drivers")?;
/// # Ok::<(), toolward_sandbox::error::HostError>(())
/// ```
#[derive(Debug)]
pub struct Cache {
    shelf: Shelf,
    key: SigningKey,
    limit: u64,
}

impl Cache {
    /// The most bytes of compiled drivers, unless [`Self::limit`] sets another limit: 4 GiB.
    /// Without a limit, each release of each driver would stay forever.
    pub const DEFAULT_LIMIT_BYTES: u64 = 4 << 30;

    /// Opens the cache in `directory`, which is created with mode 0700 if it does not exist.
    ///
    /// # Errors
    ///
    /// [`HostError::Cache`] when the directory can't be made or read, belongs to another user, or
    /// is accessible to others, who could then run code as this user.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, HostError> {
        let directory = usable(directory.into())?;
        let key = signing_key(&directory).map_err(|error| HostError::Cache {
            directory: directory.clone(),
            source: Box::new(Unusable::Key(error)),
        })?;
        Ok(Self {
            shelf: Shelf { directory },
            key,
            limit: Self::DEFAULT_LIMIT_BYTES,
        })
    }

    /// Sets the most bytes of compiled drivers. When a driver is added, other drivers are removed
    /// to make room: first drivers for other engines, then the oldest. Hosts that run a removed
    /// driver continue. A driver that is larger than the limit is compiled for each host, and not
    /// kept.
    #[must_use]
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// The directory of the cache.
    pub fn directory(&self) -> &Path {
        &self.shelf.directory
    }

    pub(super) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// Loads the component for `engine`. `None` if the cache has no genuine (correctly signed)
    /// artifact of at most `most_bytes`. An error if the engine does not load the artifact.
    pub(super) fn get(
        &self,
        engine: &Engine,
        claim: Claim<'_>,
        most_bytes: u64,
    ) -> Option<Result<Component>> {
        let public = self.key.public();
        self.shelf.get(engine, claim, &public, most_bytes)
    }

    /// Whether the cache has a genuine artifact.
    pub(super) fn holds(&self, claim: Claim<'_>) -> bool {
        self.shelf
            .find(claim, &self.key.public(), u64::MAX)
            .is_some()
    }

    /// Signs an artifact and facts about its component, writes it atomically in place of an earlier
    /// one, and makes room for it. Returns false if the artifact with its signature is larger than
    /// the cache's limit and was not kept.
    pub(super) fn put(&self, claim: Claim<'_>, bytes: &[u8], facts: &[u8]) -> io::Result<bool> {
        let footer = claim.footer(&blake3::hash(bytes), facts, &self.key);
        if bytes.len().saturating_add(footer.len()) as u64 > self.limit {
            return Ok(false);
        }
        let (directory, artifact) = (self.shelf.folder(claim), self.shelf.path(claim));
        let parts = [bytes, &footer];
        match write(&directory, &artifact, parts) {
            // Another process has made room, and removed the empty folder.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                write(&directory, &artifact, parts)?;
            }
            written => written?,
        }
        let room = Room {
            artifacts: &self.shelf.artifacts(),
            newest: &artifact,
            engine: &claim.engine.short(),
            limit: self.limit,
        };
        room.make();
        Ok(true)
    }
}

fn write(directory: &Path, artifact: &Path, parts: [&[u8]; 2]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let temporary = directory.join(format!("{TEMPORARY}{}", uuid::Uuid::now_v7()));
    let written = toolward_support::files::write_new(&temporary, &parts, 0o400).and_then(|()| {
        let folder = File::open(directory)?;
        std::fs::rename(&temporary, artifact)?;
        folder.sync_all()
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// A cache that is opened only for reading. It maps only artifacts that verify.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    directory: PathBuf,
}

impl Shelf {
    /// Opens a cache for reading. Its directory is created with mode 0700 if it does not exist.
    pub(super) fn open(directory: PathBuf) -> Result<Self, HostError> {
        Ok(Self {
            directory: usable(directory)?,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory that contains only artifacts.
    pub(super) fn artifacts(&self) -> PathBuf {
        self.directory.join(ARTIFACTS)
    }

    /// The public key of this cache; `None` if it can't be read, for example because no key has
    /// been made.
    pub(super) fn public_key(&self) -> Option<PublicKey> {
        public_key(&self.directory).ok()
    }

    /// See [`Cache::get`].
    pub(super) fn get(
        &self,
        engine: &Engine,
        claim: Claim<'_>,
        public: &PublicKey,
        most_bytes: u64,
    ) -> Option<Result<Component>> {
        let file = self.find(claim, public, most_bytes)?;
        let loaded = artifact::from_checked_file(engine, &file);
        Some(loaded.map_err(|error| refused(&error)))
    }

    fn find(&self, claim: Claim<'_>, public: &PublicKey, most_bytes: u64) -> Option<File> {
        self.genuine(claim, |path| open_genuine(path, claim, public, most_bytes))
    }

    /// The facts about a component, from its artifact. They are verified, but the code is not.
    pub(super) fn facts(&self, claim: Claim<'_>, public: &PublicKey) -> Option<Vec<u8>> {
        self.genuine(claim, |path| genuine_facts(path, claim, public))
    }

    fn genuine<T>(
        &self,
        claim: Claim<'_>,
        read: impl FnOnce(&Path) -> Result<Option<T>, String>,
    ) -> Option<T> {
        let path = self.path(claim);
        read(&path)
            .inspect_err(|error| {
                let path = path.display();
                tracing::warn!(%error, %path, "a cached driver is not genuine");
            })
            .ok()?
    }

    fn folder(&self, claim: Claim<'_>) -> PathBuf {
        self.artifacts().join(claim.component.to_string())
    }

    /// The file of the artifact of this component for this engine.
    fn path(&self, claim: Claim<'_>) -> PathBuf {
        let name = format!("{}{ARTIFACT}", claim.engine.short());
        self.folder(claim).join(name)
    }
}

/// Opens an artifact, and checks owner and mode. `None` if it does not exist.
fn open(path: &Path) -> Result<Option<File>, String> {
    match toolward_support::files::open(path, Protection::Own, Links::Refuse) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.problem.to_string()),
    }
}

/// Reads the facts of an artifact and checks the signature that covers them, but not the code.
/// `None` if the artifact does not exist or has no facts.
fn genuine_facts(
    path: &Path,
    claim: Claim<'_>,
    public: &PublicKey,
) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    match Footer::read(&file, length, claim, public)? {
        Footer::Facts { facts, .. } => Ok(Some(facts)),
        Footer::Signature(_) => Ok(None),
    }
}

/// Opens an artifact once, and checks owner, mode and signature of the opened file itself. `None`
/// if the artifact does not exist, or has more than `most_bytes`.
fn open_genuine(
    path: &Path,
    claim: Claim<'_>,
    public: &PublicKey,
    most_bytes: u64,
) -> Result<Option<File>, String> {
    let Some(mut file) = open(path)? else {
        return Ok(None);
    };
    let text = |error: io::Error| error.to_string();
    let length = file.metadata().map_err(text)?.len();
    let footer = Footer::read(&file, length, claim, public)?;
    let bytes = length.saturating_sub(footer.length());
    if bytes > most_bytes {
        return Ok(None);
    }
    let mut hasher = blake3::Hasher::new();
    hasher
        .update_reader((&mut file).take(bytes))
        .map_err(text)?;
    match footer.is_of(&hasher.finalize(), claim, public) {
        true => Ok(Some(file)),
        false => Err("its signature is wrong".to_owned()),
    }
}

/// The problems of a cache's directory, in addition to the problems that make any directory unsafe.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("has a key that can't be read or made: {0}")]
    Key(#[source] std::io::Error),
    #[error("can't be created: {0}")]
    Artifacts(#[source] std::io::Error),
}

/// Whether a cache can't be opened only because its disk is full or read-only. It is then not
/// unsafe, but takes no artifacts.
pub(super) fn takes_nothing(error: &HostError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
            return [StorageFull, QuotaExceeded, ReadOnlyFilesystem].contains(&error.kind());
        }
        cause = error.source();
    }
    false
}

/// Creates the cache's directory if it is missing, and checks owner and mode.
fn usable(directory: PathBuf) -> Result<PathBuf, HostError> {
    let fail = |source| HostError::Cache {
        directory: directory.clone(),
        source,
    };
    Folder::make(&directory, Protection::Private).map_err(|error| fail(error.problem.into()))?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory.join(ARTIFACTS))
        .map_err(|error| fail(Box::new(Unusable::Artifacts(error))))?;
    Ok(directory)
}

const PUBLIC: &str = "public-key.pem";
const PRIVATE_DIRECTORY: &str = "private";
const PRIVATE: &str = "key.pem";

/// The most bytes of a key's PEM file.
const MAX_PEM_BYTES: u64 = 4096;

/// Reads the key that signs artifacts, and creates it at the first use. Also writes the public key,
/// unless its file has this key already.
fn signing_key(directory: &Path) -> io::Result<SigningKey> {
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
    let pem = zeroize::Zeroizing::new(read_pem(&path, Protection::Private)?);
    let key = SigningKey::from_pem(&pem, None).map_err(io::Error::other)?;
    if public_key(directory).ok().as_ref() != Some(&key.public()) {
        let pem = key.public().to_pem().map_err(io::Error::other)?;
        toolward_support::files::replace(&directory.join(PUBLIC), pem.as_bytes(), 0o400)?;
    }
    Ok(key)
}

/// The key that verifies artifacts.
fn public_key(directory: &Path) -> io::Result<PublicKey> {
    let pem = read_pem(&directory.join(PUBLIC), Protection::Own)?;
    PublicKey::from_pem(&pem).map_err(io::Error::other)
}

fn read_pem(path: &Path, protection: Protection) -> io::Result<String> {
    let bytes = toolward_support::files::open(path, protection, Links::Refuse)
        .and_then(|file| toolward_support::files::read(file, path, MAX_PEM_BYTES))
        .map_err(|error| error.problem)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use toolward_signing::Digest;

    use super::*;
    use crate::engine::EngineHash;
    use crate::engine::compiling_engine;
    use crate::limiter::MemoryLayout;

    /// An empty component.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    /// A cache in a directory, an engine, and the artifact of the empty component.
    fn compiled(directory: &Path) -> (Cache, Engine, Vec<u8>) {
        let cache = Cache::open(directory.join("cache")).unwrap();
        let engine = compiling_engine(MemoryLayout::Pooled).unwrap();
        let artifact = engine.precompile_component(EMPTY).unwrap();
        (cache, engine, artifact)
    }

    #[test]
    fn an_artifact_of_more_bytes_than_asked_for_is_not_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let (cache, engine, artifact) = compiled(directory.path());
        let claim = Claim {
            component: &Digest::of(EMPTY),
            engine: &EngineHash::of(&engine),
        };
        for facts in [&b""[..], b"facts"] {
            assert!(cache.put(claim, &artifact, facts).unwrap());
            let bytes = artifact.len() as u64;
            assert!(cache.get(&engine, claim, bytes).unwrap().is_ok());
            assert!(cache.get(&engine, claim, bytes - 1).is_none());
        }
    }

    #[test]
    fn facts_are_read_whatever_the_code_and_the_code_is_checked_when_it_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let (cache, engine, artifact) = compiled(directory.path());
        let claim = Claim {
            component: &Digest::of(EMPTY),
            engine: &EngineHash::of(&engine),
        };
        let public = cache.key.public();
        assert_eq!(cache.shelf.facts(claim, &public), None);
        assert!(cache.put(claim, &artifact, b"").unwrap());
        assert_eq!(cache.shelf.facts(claim, &public), None);
        assert!(cache.put(claim, &artifact, b"facts").unwrap());
        assert_eq!(cache.shelf.facts(claim, &public).unwrap(), b"facts");

        let path = cache.shelf.path(claim);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[100] ^= 1;
        std::fs::remove_file(&path).unwrap();
        toolward_support::files::write_new(&path, &[bytes.as_slice()], 0o400).unwrap();
        assert!(cache.get(&engine, claim, u64::MAX).is_none());
        assert_eq!(cache.shelf.facts(claim, &public).unwrap(), b"facts");
        let stranger = SigningKey::from_bytes(&[8; 32]).public();
        assert_eq!(cache.shelf.facts(claim, &stranger), None);
    }
}
