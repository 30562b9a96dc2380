//! What is packed to be signed: it holds to more than a bundle under work.

use std::path::Path;

use toolward_bundle::dev::{self, PackOptions, Packed};
use toolward_bundle::{ReadError, codes};
use toolward_contract::diagnostic::Severity;

/// Makes the bundle of an authoring directory: `tools.json`, the manifest, and all files.
///
/// # Errors
///
/// As [`toolward_bundle::dev::pack`], and when one of its tools has no description yet.
pub fn pack(directory: &Path, options: &PackOptions) -> Result<Packed, ReadError> {
    let packed = dev::pack(directory, options)?;
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
