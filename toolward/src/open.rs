//! Reads the content of a verified bundle from a path.

use std::path::Path;

use toolward_bundle::content::{Content, ContentError};
use toolward_signing::Refusal;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_support::report::codes;

codes! {
    /// Why a bundle can't be used.
    ///
    /// ```
    /// use toolward::{OpenError, TrustStore};
    ///
    /// let error = toolward::open("nowhere.toolbundle", &TrustStore::empty()).unwrap_err();
    /// assert!(matches!(error, OpenError::Refused(_)));
    /// assert_eq!(error.code(), "io");
    /// ```
    #[derive(Debug)]
    pub enum OpenError: Error {
        /// Verification refused the bundle, for example because it was changed or is not signed by
        /// a trusted key.
        Refused(inner: Refusal);
        /// The bundle was verified, but its content is not valid.
        Content(inner: ContentError);
    }
}

/// Verifies a bundle (a directory or an archive), and reads its content. Only verified bytes are
/// used, since nothing is opened twice.
///
/// Expiry is checked against this machine's clock. There is no maximum age, and no revocations are
/// known. Use [`open_with`] for other options.
///
/// ```no_run
/// use toolward::{Host, PublicKey, TrustStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = PublicKey::from_pem(&std::fs::read_to_string("example.pub.pem")?)?;
/// let bundle = toolward::open("text-stats.toolbundle", &TrustStore::for_key(key))?;
/// let host = Host::builder().bundle(bundle).build()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`OpenError::Refused`] if the bundle does not verify, [`OpenError::Content`] if its content is
/// not valid.
pub fn open(path: impl AsRef<Path>, trust: &TrustStore) -> Result<Content, OpenError> {
    open_with(path, trust, &VerifyOptions::default())
}

/// Like [`open`], with options: another clock, a maximum age, revocations.
///
/// ```no_run
/// use std::time::Duration;
/// use toolward::{PublicKey, TrustStore, VerifyOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = PublicKey::from_pem(&std::fs::read_to_string("example.pub.pem")?)?;
/// let options = VerifyOptions {
///     max_age: Some(Duration::from_secs(90 * 24 * 60 * 60)),
///     ..VerifyOptions::default()
/// };
/// let trust = TrustStore::for_key(key);
/// let bundle = toolward::open_with("text-stats.toolbundle", &trust, &options)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The errors of [`open`].
pub fn open_with(
    path: impl AsRef<Path>,
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Content, OpenError> {
    let bundle = verify::open(path.as_ref(), trust, options)?;
    Ok(Content::from_verified(bundle)?)
}
