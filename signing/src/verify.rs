//! Verifies a directory or an archive and returns a [`Verified`] [`Bundle`]: trusted signers signed
//! it, and every byte is unchanged. Other crates parse the files from the verified bytes.
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

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, Take};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use semver::Version;

use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal, io_failed, too_large};
use crate::manifest::{FileDigest, Manifest};
use crate::revocation::Revocations;
use crate::text;
use crate::trust::TrustStore;
use document::{
    BundleHead, Files, VerifiedHead, check_loose, manifest_missing, parse_envelope, parse_manifest,
    provenance_missing,
};

pub use crate::bundle::{Bundle, MAX_BYTES};
pub use crate::document::Verified;
pub use crate::stored::{ReopenFn, UnreadFile};
pub use crate::timestamp::{CLOCK_SKEW, Mode};
pub use document::{SignedManifest, envelope};

/// The size of the read buffer: one whole block of a stored archive with its header.
const READ_BUFFER_BYTES: usize = 128 * 1024 + 3;

/// The progress of a verification, in bytes of listed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes read and hashed.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// A callback that receives the progress.
pub type ProgressFn<'a> = dyn Fn(VerifyProgress) + 'a;

/// The settings of a verification, besides the bundle and the trust store.
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
    /// The time against which ages and expiry are checked; `None` leaves them unchecked.
    pub now: Option<SystemTime>,
    /// The version against which `min_host` is checked; `None` leaves it unchecked.
    pub host_version: Option<Version>,
    /// Whether a wrong age is refused or gives a warning.
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
    /// The current time, this crate's version and [`Mode::Enforce`], without a maximum age, a
    /// demand for provenance, revocations or progress.
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

/// Verifies a bundle directory or a `.toolbundle` file. `path` itself may be a symbolic link; no
/// link below it is followed. Each file is opened once, and hashed while it is read.
///
/// # Errors
/// [`ErrorKind::NotABundle`] if `path` is neither a directory nor a file, or the reason for which
/// the bundle is refused.
pub fn open(
    path: &Path,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (head, files) = read(path, verified(trust, options))?;
    head.with_files(files)
}

/// Verifies an archive in an open file, which is read from its start. The archive is verified while
/// it is read, so no content is in memory twice.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive_file(
    file: &mut File,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (archive, size) = from_start(file)?;
    let (head, files) = archive::read(archive, size, verified(trust, options))?;
    head.with_files(files)
}

/// The facts about the component with this digest, if its content need not be read now. They must
/// come from a source that can't be changed by the author of the archive.
pub type KnownFn<'a> = dyn Fn(&FileDigest) -> Option<Arc<[u8]>> + 'a;

/// Verifies an archive in an open file as [`archive_file`] does, but leaves out the content of
/// components that are `known`: they are in [`Bundle::unread`], and are read from the file that
/// `reopen` opens. The signed manifest, the exact set of
/// names and sizes, and all other files are verified. Only an archive of
/// [`to_stored_bytes`](crate::archive::to_stored_bytes) can be read in this way; any other file is
/// verified whole, and so is a file that would be refused, for the reason.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn stored_file(
    file: &mut File,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
    known: &KnownFn<'_>,
    reopen: &Arc<ReopenFn>,
) -> Result<Verified<Bundle>, Refusal> {
    let verified = verified(trust, options);
    if let Ok(clone) = file.try_clone()
        && let Some(read) = archive::read_stored(clone, reopen, known, verified)
        && let Ok((head, files, unread)) = read
    {
        return head.with_unread(files, unread);
    }
    archive_file(file, trust, options)
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
    let size = bytes.len() as u64;
    let (head, files) = archive::read(bytes, size, verified(trust, options))?;
    head.with_files(files)
}

/// Rewinds a file and returns a reader of its bytes, and its size.
fn from_start(file: &mut File) -> Result<(BufReader<Take<&File>>, u64), Refusal> {
    let io = |error: std::io::Error| io_failed("the archive", error);
    let size = file.metadata().map_err(io)?.len();
    if size > MAX_BYTES {
        return Err(too_large(MAX_BYTES)
            .at("the archive")
            .found(text::bytes(size)));
    }
    file.rewind().map_err(io)?;
    // Bytes that are appended in the meantime are not read.
    let file = (&*file).take(size);
    Ok((BufReader::with_capacity(READ_BUFFER_BYTES, file), size))
}

/// Returns a function that verifies an envelope and a manifest.
fn verified<'a>(
    trust: &'a TrustStore,
    options: &'a VerifyOptions<'a>,
) -> impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<VerifiedHead<'a>, Refusal> {
    move |envelope, manifest| VerifiedHead::new(envelope, manifest, trust, options)
}

/// Verifies a bundle again, under this trust store and these options: signatures, threshold,
/// prefix, age, revocation, provenance. The files were compared with the manifest before and are
/// not compared again.
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
    head.with_unread(bundle.files.clone(), bundle.unread.clone())
}

/// Reads a directory or an archive whose envelope and manifest, if they exist, `open` accepts.
fn read<H: BundleHead>(
    path: &Path,
    open: impl Fn(Option<&[u8]>, Option<&[u8]>) -> Result<H, Refusal>,
) -> Result<(H, Files), Refusal> {
    let place = || path.display().to_string();
    let io = |error: std::io::Error| io_failed(place(), error);
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        let root = Dir::open_ambient_dir(path, ambient_authority()).map_err(io)?;
        return directory::read(&root, open);
    }
    // Checked before opening, since opening a pipe would block.
    if !metadata.is_file() {
        return Err(Refusal::new(ErrorKind::NotABundle).at(place()));
    }
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length > MAX_BYTES {
        return Err(too_large(MAX_BYTES).at(place()).found(text::bytes(length)));
    }
    let (archive, size) = from_start(&mut file)?;
    archive::read(archive, size, open)
}

/// A bundle that matches its manifest. Anyone can make one: no signature was verified.
#[derive(Clone)]
#[non_exhaustive]
pub struct UnsignedBundle {
    /// The manifest. Publisher and id are claims.
    pub manifest: Manifest,
    /// The bytes of `manifest.toml`.
    pub manifest_bytes: Arc<[u8]>,
    /// The digest of these bytes.
    pub manifest_digest: Digest,
    /// The parsed `manifest.dsse.json` over this manifest; `None` for a directory that was packed
    /// but not signed.
    pub envelope: Option<Envelope>,
    /// The bytes of `provenance.dsse.json`, if the bundle has one, not parsed.
    pub provenance_bytes: Option<Arc<[u8]>>,
    /// `tools.json` and all other listed files, by path.
    pub files: Files,
}

impl fmt::Debug for UnsignedBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsignedBundle")
            .field("id", &self.manifest.id)
            .field("version", &self.manifest.version)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

/// Reads a bundle directory or a `.toolbundle` file, as strictly as [`open`] does, but does not
/// check signers, ages, the host's version or the content of the provenance.
///
/// # Errors
/// The errors of [`open`] about the other properties of a bundle.
pub fn unsigned(path: &Path) -> Result<UnsignedBundle, Refusal> {
    let (mut bundle, files) = read(path, UnsignedBundle::head)?;
    if bundle.manifest.provenance && bundle.provenance_bytes.is_none() {
        return Err(provenance_missing());
    }
    bundle.files = files;
    Ok(bundle)
}

impl UnsignedBundle {
    /// A signed or unsigned manifest without the files.
    fn head(envelope: Option<&[u8]>, manifest: Option<&[u8]>) -> Result<Self, Refusal> {
        let manifest_bytes = manifest.ok_or_else(manifest_missing)?;
        let envelope = envelope.map(parse_envelope).transpose()?;
        if let Some(envelope) = &envelope {
            check_loose(envelope, manifest_bytes)?;
        }
        Ok(Self {
            manifest: parse_manifest(manifest_bytes)?,
            manifest_digest: Digest::of(manifest_bytes),
            manifest_bytes: manifest_bytes.into(),
            envelope,
            provenance_bytes: None,
            files: Files::new(),
        })
    }
}

impl BundleHead for UnsignedBundle {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.provenance_bytes = Some(bytes.into());
        Ok(())
    }
}
