//! An envelope before its bundle: who signed which manifest. A download checks it first, and
//! verifies all of the bundle afterwards.

use super::announced::Announced;
use super::document::{Signed, parse_envelope};
use super::{Verified, VerifyOptions};
use crate::error::Refusal;
use crate::trust::TrustStore;

/// Verifies `manifest.dsse.json` alone, as strictly as [`open`](super::open) does: signatures, threshold,
/// prefix, age, revocation.
///
/// # Errors
/// Those of [`open`](super::open) that are about envelope and manifest.
pub fn envelope(
    bytes: &[u8],
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Announced>, Refusal> {
    let manifest = parse_envelope(bytes)?.into_payload();
    let signed = Signed::new(Some(bytes), Some(&manifest), trust, options)?;
    Ok(Verified::new(signed.announced()))
}
