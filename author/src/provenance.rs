//! From what a bundle's components were built: a publisher's claim, for those
//! who want to build them again.

use std::path::Path;

use toolward_bundle::dev::read_bundle_toml;
use toolward_bundle::files;
use toolward_signing::provenance::{Provenance, SourceSet, source_digest};

use crate::build::{Built, TARGET};
use crate::error::AuthorError;
use crate::stale::files_of;

/// The provenance of the bundle under work in `directory`: one set of sources
/// for each `[[build]]`, named as its source; `compiler` is how the compilers name
/// themselves, as [`compilers`] has it. It is a parameter, since a packer need not have
/// built: naming a compiler starts it, which `build` alone does.
///
/// # Errors
///
/// When `bundle.toml` or the sources can't be read.
pub fn provenance(directory: &Path, compiler: &str) -> Result<Provenance, AuthorError> {
    let bundle = read_bundle_toml(directory)?;
    let mut sets = Vec::with_capacity(bundle.builds.len());
    for entry in &bundle.builds {
        let found = files_of(directory, entry, files::sources)?;
        let digest = source_digest(
            found
                .iter()
                .map(|(name, bytes)| (name.as_str(), bytes.as_ref())),
        );
        sets.push(SourceSet {
            name: entry.source.clone(),
            digest,
        });
    }
    Ok(Provenance::new(
        sets,
        compiler.to_owned(),
        TARGET.to_owned(),
    ))
}

/// How the tools of these builds name themselves, in the order of the builds and each
/// once: `rustc 1.95.0 (…), go version go1.27.3 linux/amd64`. Empty if no tool was used.
#[must_use]
pub fn compilers(built: &[Built]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in built.iter().flat_map(|one| &one.compilers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.join(", ")
}
