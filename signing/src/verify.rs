//! From a directory or an archive to a [`Verified`] [`Bundle`]: its signers are known and trusted, and every byte is
//! the one that was signed. Other crates parse the files, from the verified bytes.
//!
//! ```no_run
//! use toolward_signing::key::PublicKey;
//! use toolward_signing::trust::TrustStore;
//! use toolward_signing::verify::{self, VerifyOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = PublicKey::from_pem(&std::fs::read_to_string("acme.pub.pem")?)?;
//! let trust = TrustStore::for_key(key);
//! let bundle = verify::open("text-stats.toolbundle".as_ref(), &trust, &VerifyOptions::default())?;
//! println!("{} {}, signed by {:?}", bundle.manifest.id, bundle.manifest.version, bundle.signers);
//! # Ok(())
//! # }
//! ```

mod archive;
mod directory;
mod document;
mod signers;
mod unsigned;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use semver::Version;

use crate::error::{ErrorKind, Refusal, io_failed};
use crate::revocation::Revocations;
use crate::text;
use crate::trust::TrustStore;

pub use crate::bundle::{Bundle, MAX_BYTES};
pub use crate::document::Verified;
pub use crate::timestamp::{CLOCK_SKEW, Mode};
pub use document::{SignedManifest, envelope};
pub use unsigned::{UnsignedBundle, unsigned};

use document::{BundleHead as _, VerifiedHead};

/// The progress of a verification, in bytes of listed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes read and hashed.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Called with the progress.
pub type ProgressFn<'a> = dyn Fn(VerifyProgress) + 'a;

/// What verification depends on besides the bundle and the trust store.
///
/// ```no_run
/// use std::time::Duration;
/// use toolward_signing::Refusal;
/// use toolward_signing::revocation::Revocations;
/// use toolward_signing::trust::TrustStore;
/// use toolward_signing::verify::{self, Mode, VerifyOptions};
///
/// fn audit(trust: &TrustStore, revocations: &Revocations) -> Result<(), Refusal> {
///     let options = VerifyOptions {
///         mode: Mode::Audit,
///         max_age: Some(Duration::from_secs(90 * 24 * 60 * 60)),
///         revocations: Some(revocations),
///         ..VerifyOptions::default()
///     };
///     let bundle = verify::open("text-stats.toolbundle".as_ref(), trust, &options)?;
///     println!("{}", bundle.into_inner().publisher.name());
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct VerifyOptions<'a> {
    /// The time against which `created` and `expires` are checked; `None` leaves both unchecked.
    pub now: Option<SystemTime>,
    /// The version against which `min_host` is checked; `None` leaves it unchecked.
    pub host_version: Option<Version>,
    /// Whether age refuses or warns.
    pub mode: Mode,
    /// How old a bundle may be, counted from `created`, if there is a limit.
    pub max_age: Option<Duration>,
    /// Whether to refuse a bundle whose manifest doesn't announce provenance.
    pub require_provenance: bool,
    /// The known revocations, if any.
    pub revocations: Option<&'a Revocations>,
    /// Called repeatedly while files are read.
    pub progress: Option<&'a ProgressFn<'a>>,
}

impl Default for VerifyOptions<'_> {
    /// The current time, this crate's version, [`Mode::Enforce`]; no maximum age, no demand for provenance,
    /// no revocations, no progress.
    fn default() -> Self {
        Self {
            now: Some(SystemTime::now()),
            host_version: Version::parse(env!("CARGO_PKG_VERSION")).ok(),
            mode: Mode::Enforce,
            max_age: None,
            require_provenance: false,
            revocations: None,
            progress: None,
        }
    }
}

impl fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyOptions")
            .field("now", &self.now)
            .field("host_version", &self.host_version)
            .field("mode", &self.mode)
            .field("max_age", &self.max_age)
            .field("require_provenance", &self.require_provenance)
            .field("revocations", &self.revocations.is_some())
            .finish_non_exhaustive()
    }
}

/// Verifies a bundle directory or a `.toolbundle` file. `path` itself may be a symbolic link; none below it is
/// followed. Each file is opened once, and hashed while it is read.
///
/// # Errors
/// [`ErrorKind::NotABundle`] if `path` is neither, or the reason for which the bundle is refused.
pub fn open(
    path: &Path,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    match open_source(path)? {
        BundleSource::Archive(bytes) => archive_bytes(&bytes, trust, options),
        BundleSource::Directory(root) => {
            let (head, files) = directory::read(&root, |envelope, manifest| {
                VerifiedHead::new(envelope, manifest, trust, options)
            })?;
            head.with_files(files)
        }
    }
}

/// Verifies an archive in an open file, from its start. One that isn't compressed, as
/// [`to_stored_bytes`](crate::archive::to_stored_bytes) makes it, is verified while it is read: nothing is in memory
/// twice. Any other archive is read first.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive_file(
    file: &mut File,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (head, files) = archive::read_file(file, |envelope, manifest| {
        VerifiedHead::new(envelope, manifest, trust, options)
    })?;
    head.with_files(files)
}

/// Verifies an archive in memory.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive_bytes(
    bytes: &[u8],
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (head, files) = archive::read(bytes, |envelope, manifest| {
        VerifiedHead::new(envelope, manifest, trust, options)
    })?;
    head.with_files(files)
}

/// Verifies a bundle again as of now: signatures, threshold, prefix, age, revocation, provenance. The files still match
/// the manifest, and are not compared again.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn again(
    bundle: &Verified<Bundle>,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let envelope = Some(&*bundle.envelope_bytes);
    let mut head = VerifiedHead::new(envelope, Some(&bundle.manifest_bytes), trust, options)?;
    if let Some(provenance) = &bundle.provenance_bytes {
        head.provenance(provenance)?;
    }
    head.with_files(bundle.files.clone())
}

/// An opened bundle, not verified.
enum BundleSource {
    Directory(Dir),
    Archive(Vec<u8>),
}

fn open_source(path: &Path) -> Result<BundleSource, Refusal> {
    let place = || path.display().to_string();
    let io = |error: std::io::Error| io_failed(place(), error);
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        let directory = Dir::open_ambient_dir(path, ambient_authority());
        return directory.map(BundleSource::Directory).map_err(io);
    }
    // Before opening: a pipe would block.
    if !metadata.is_file() {
        return Err(Refusal::new(ErrorKind::NotABundle).at(place()));
    }
    let file = cap_std::fs::File::open_ambient(path, ambient_authority()).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length > MAX_BYTES {
        return Err(too_large(MAX_BYTES, &place()).found(text::bytes(length)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    read_archive(file, MAX_BYTES, &mut bytes, &place())?;
    Ok(BundleSource::Archive(bytes))
}

fn read_archive(
    reader: impl Read,
    most: u64,
    bytes: &mut Vec<u8>,
    place: &str,
) -> Result<(), Refusal> {
    reader
        .take(most.saturating_add(1))
        .read_to_end(bytes)
        .map_err(|error| io_failed(place, error))?;
    if bytes.len() as u64 > most {
        return Err(too_large(most, place));
    }
    Ok(())
}

fn too_large(most: u64, place: &str) -> Refusal {
    Refusal::new(ErrorKind::TooLarge)
        .at(place)
        .expected(format!("at most {most} bytes"))
}
