//! From what a bundle's components were built: a publisher's claim, for those
//! who want to build them again.

use std::path::Path;

use toolward_bundle::dev::read_bundle_toml;
use toolward_bundle::files;
use toolward_signing::provenance::{Provenance, SourceSet};
use toolward_signing::sources;

use crate::build::TARGET;
use crate::error::AuthorError;

/// The provenance of the bundle under work in `directory`: one set of sources
/// for each `[[build]]`, named as its crate; `compiler` is how the compiler
/// names itself, such as `rustc 1.95.0 (…)`.
///
/// # Errors
///
/// When `bundle.toml` or the sources can't be read.
pub fn provenance(directory: &Path, compiler: &str) -> Result<Provenance, AuthorError> {
    let bundle = read_bundle_toml(directory)?;
    let mut sets = Vec::with_capacity(bundle.builds.len());
    for entry in &bundle.builds {
        let found = files::sources(&directory.join(&entry.krate))?;
        let digest = sources::digest(
            found
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.as_ref())),
        );
        sets.push(SourceSet {
            name: entry.krate.clone(),
            digest,
        });
    }
    Ok(Provenance::new(
        sets,
        compiler.to_owned(),
        TARGET.to_owned(),
    ))
}
