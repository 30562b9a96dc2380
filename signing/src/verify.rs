//! From a directory or an archive to a [`Verified`] [`Bundle`]: who signed it is known and trusted, and
//! every byte is the one signed. What the files mean is for others to parse, from the verified bytes.
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

mod announced;
mod archive;
mod directory;
mod document;
mod envelope_only;
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

pub use crate::age::{CLOCK_SKEW, Mode};
pub use crate::bundle::{Bundle, MAX_BYTES};
pub use crate::verified::Verified;
pub use announced::Announced;
pub use envelope_only::envelope;
pub use unsigned::{Unsigned, unsigned};

use document::{Head as _, Signed};

/// How far a verification has come, in bytes of listed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes that were read and hashed.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Whom to tell about progress.
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
    /// Whether a bundle is refused whose manifest doesn't announce provenance.
    pub require_provenance: bool,
    /// What is known to be revoked, if anything is.
    pub revocations: Option<&'a Revocations>,
    /// Called now and then while files are read.
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

/// Verifies a bundle directory or a `.toolbundle` file, whichever `path` is.
///
/// # Errors
/// Those of [`directory`] and [`archive`]; [`ErrorKind::NotABundle`] if it is neither.
pub fn open(
    path: &Path,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    match locate(path)? {
        Form::Directory(root) => in_directory(&root, trust, options),
        Form::Archive(bytes) => archive_bytes(&bytes, trust, options),
    }
}

/// Verifies a bundle directory. `path` itself may be a symbolic link; none below it is followed. Each file
/// is opened once, and hashed while it is read.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn directory(
    path: &Path,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    in_directory(&open_directory(path)?, trust, options)
}

/// Verifies a `.toolbundle` file, which is opened once.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive(
    path: &Path,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    archive_bytes(&open_archive(path)?, trust, options)
}

/// Verifies an archive that comes from a reader. All of it is read first, at most [`MAX_BYTES`].
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive_reader(
    reader: impl Read,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let mut bytes = Vec::new();
    read_archive(reader, MAX_BYTES, &mut bytes, "the archive")?;
    archive_bytes(&bytes, trust, options)
}

/// Verifies an archive in an open file, from its beginning. One that isn't compressed, as
/// [`to_stored_bytes`](crate::archive::to_stored_bytes) makes it, is verified while it is read: nothing is in memory
/// twice. Any other is read first.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn archive_file(
    file: &mut File,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (signed, files) = archive::read_file(file, |envelope, manifest| {
        Signed::new(envelope, manifest, trust, options)
    })?;
    signed.with_files(files)
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
    let (signed, files) = archive::read(bytes, |envelope, manifest| {
        Signed::new(envelope, manifest, trust, options)
    })?;
    signed.with_files(files)
}

/// Verifies once more what was verified earlier, as it would be now: signatures, threshold, prefix, age,
/// revocation, provenance. That the files are those of the manifest stays true, and isn't compared again.
///
/// # Errors
/// The reason for which the bundle is refused.
pub fn again(
    bundle: &Verified<Bundle>,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let envelope = Some(&*bundle.envelope_bytes);
    let mut signed = Signed::new(envelope, Some(&bundle.manifest_bytes), trust, options)?;
    if let Some(provenance) = &bundle.provenance_bytes {
        signed.provenance(provenance)?;
    }
    signed.with_files(bundle.files.clone())
}

fn in_directory(
    root: &Dir,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Bundle>, Refusal> {
    let (signed, files) = directory::read(root, |envelope, manifest| {
        Signed::new(envelope, manifest, trust, options)
    })?;
    signed.with_files(files)
}

/// What lies at a path.
enum Form {
    Directory(Dir),
    Archive(Vec<u8>),
}

fn locate(path: &Path) -> Result<Form, Refusal> {
    let metadata =
        std::fs::metadata(path).map_err(|error| io_failed(path.display().to_string(), error))?;
    if metadata.is_dir() {
        open_directory(path).map(Form::Directory)
    } else {
        open_archive(path).map(Form::Archive)
    }
}

fn open_directory(path: &Path) -> Result<Dir, Refusal> {
    let place = || path.display().to_string();
    Dir::open_ambient_dir(path, ambient_authority()).map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotADirectory {
            Refusal::new(ErrorKind::NotABundle).at(place())
        } else {
            io_failed(place(), error)
        }
    })
}

fn open_archive(path: &Path) -> Result<Vec<u8>, Refusal> {
    let place = || path.display().to_string();
    let io = |error: std::io::Error| io_failed(place(), error);
    // Before opening: a pipe would be waited for.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(Refusal::new(ErrorKind::NotABundle).at(place()));
    }
    let file = cap_std::fs::File::open_ambient(path, ambient_authority()).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    if length > MAX_BYTES {
        return Err(too_large(MAX_BYTES, &place()).found(text::bytes(length)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    read_archive(file, MAX_BYTES, &mut bytes, &place())?;
    Ok(bytes)
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
