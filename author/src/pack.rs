//! What is packed to be signed: it holds to more than a bundle under work.

use std::path::Path;

use toolward_bundle::dev::{self, PackOptions, PackedBundle};
use toolward_bundle::{ReadError, codes};
use toolward_contract::diagnostic::Severity;

use crate::stale;

/// Makes the bundle of an authoring directory: `tools.json`, the manifest, and all files.
///
/// # Errors
///
/// As [`toolward_bundle::dev::pack`], when one of its tools has no description yet, and as [`current`].
pub fn pack(directory: &Path, options: &PackOptions) -> Result<PackedBundle, ReadError> {
    let packed = dev::pack(directory, options)?;
    current(directory)?;
    let todo = packed.warnings.iter();
    let todo = todo.filter(|warning| warning.code == codes::DESCRIPTION_TODO.code);
    let undescribed: Vec<_> = todo
        .cloned()
        .map(|mut warning| {
            warning.severity = Severity::Error;
            warning
        })
        .collect();
    match undescribed.is_empty() {
        true => Ok(packed),
        false => Err(ReadError::Invalid(undescribed)),
    }
}

/// Checks that no component is older than its sources, as far as `build` made it here.
///
/// # Errors
///
/// `component-stale` for each that is; as [`dev::read_bundle_toml`].
pub fn current(directory: &Path) -> Result<(), ReadError> {
    let stale = stale::components(directory, &dev::read_bundle_toml(directory)?.builds);
    match stale.is_empty() {
        true => Ok(()),
        false => Err(ReadError::Invalid(stale)),
    }
}
