//! Packs a bundle to be signed, which must meet more rules than a bundle under work. Also states
//! the sources from which its components were built. These sources are a publisher's claim, for
//! people who want to build the components again.

use std::path::Path;

use toolward_bundle::dev::{self, PackOptions, PackedBundle};
use toolward_bundle::{ReadError, codes, files};
use toolward_contract::diagnostic::Severity;
use toolward_signing::provenance::{Provenance, SourceSet, source_digest};

use crate::build::{Built, TARGET};
use crate::error::{AuthorError, none};
use crate::stale::{self, files_of};

/// Packs an authoring directory as a bundle: `tools.json`, the manifest, and all files.
///
/// # Errors
///
/// As [`toolward_bundle::dev::pack`] and [`current`]. Fails also if one of its tools has no
/// description yet.
pub fn pack(directory: &Path, options: &PackOptions) -> Result<PackedBundle, ReadError> {
    let packed = dev::pack(directory, options)?;
    current(directory)?;
    let mut undescribed = packed.warnings.clone();
    undescribed.retain(|warning| warning.code == codes::DESCRIPTION_TODO.code);
    for warning in &mut undescribed {
        warning.severity = Severity::Error;
    }
    none(undescribed).map(|()| packed)
}

/// Checks that no component is older than its sources, if `build` made it in this directory.
///
/// # Errors
///
/// `component-stale` for each older component; otherwise as [`dev::read_bundle_toml`].
pub fn current(directory: &Path) -> Result<(), ReadError> {
    let builds = dev::read_bundle_toml(directory)?.builds;
    none(stale::components(directory, &builds))
}

/// Returns the provenance of the bundle under work in `directory`: one set of sources for each
/// `[[build]]`, named after its source. `compiler` names the compilers in the form of
/// [`compilers`]. It is a parameter, since compilers must be started to get their names, and only
/// `build` starts compilers.
///
/// # Errors
///
/// If `bundle.toml` or the sources can't be read.
pub fn provenance(directory: &Path, compiler: &str) -> Result<Provenance, AuthorError> {
    let bundle = dev::read_bundle_toml(directory)?;
    let mut sets = Vec::with_capacity(bundle.builds.len());
    for entry in &bundle.builds {
        let found = files_of(directory, entry, files::sources)?;
        let found = found.iter();
        sets.push(SourceSet {
            name: entry.source.clone(),
            digest: source_digest(found.map(|(name, bytes)| (name.as_str(), bytes.as_ref()))),
        });
    }
    let (compiler, target) = (compiler.to_owned(), TARGET.to_owned());
    Ok(Provenance::new(sets, compiler, target))
}

/// Returns the names that the tools of these builds give themselves, each once, in the order of the
/// builds: `rustc 1.95.0 (…), go version go1.27.3 linux/amd64`. Empty if no tool was used.
pub fn compilers(built: &[Built]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in built.iter().flat_map(|one| &one.compilers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.join(", ")
}
