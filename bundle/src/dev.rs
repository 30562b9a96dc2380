//! Packs an unsigned working directory in memory: reads its `bundle.toml` and its files, and makes
//! `tools.json` and the manifest, with the same bytes each time. This module writes no file, runs
//! no program and needs no key; `toolward-author` writes and signs bundles.

pub mod bundle_toml;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use semver::Version;
use toolward_contract::diagnostic::{self, Diagnostic, Position};
use toolward_contract::index::Index;
use toolward_signing::digest::Digest;
use toolward_signing::manifest::{Artifacts, FileEntry, Manifest, ToolsEntry};
use toolward_signing::path::BundlePath;
use toolward_signing::timestamp::Timestamp;

use crate::codes;
use crate::documents::{borrowed, role_of};
use crate::error::ReadError;
use crate::files;
use crate::index::{self, TOOLS_JSON};
use crate::libraries::Surroundings;
use crate::rules;

pub use bundle_toml::{BuildEntry, BuildKind, BundleToml, World};

/// The settings of `pack`, apart from the directory.
#[derive(Debug, Clone, Default)]
pub struct PackOptions {
    /// The creation time if `bundle.toml` has no `created`, in seconds since 1970 as in the
    /// environment variable `SOURCE_DATE_EPOCH`.
    pub source_date_epoch: Option<i64>,
    /// Whether the manifest announces provenance, which the signer must then add to the bundle.
    pub provenance: bool,
}

/// The first version of this host that knows `provenance` in a manifest. Earlier versions refuse a
/// manifest with this key.
const PROVENANCE_SINCE: Version = Version::new(0, 1, 0);

/// A bundle ready for signing.
#[derive(Debug, Clone)]
pub struct PackedBundle {
    /// The manifest.
    pub manifest: Manifest,
    /// The bytes of `manifest.toml`, which are to be signed.
    pub manifest_bytes: Vec<u8>,
    /// Every file that the manifest lists, including `tools.json`.
    pub files: BTreeMap<String, Arc<[u8]>>,
    /// Findings that are not errors.
    pub warnings: Vec<Diagnostic>,
}

/// Packs the bundle in the working directory `directory`.
///
/// # Errors
///
/// When `bundle.toml` or a document is invalid, a component is missing or unusable, a file name is
/// not allowed in a bundle, or neither `bundle.toml` nor the options give a time.
pub fn pack(directory: &Path, options: &PackOptions) -> Result<PackedBundle, ReadError> {
    let refused = |source| ReadError::Refused {
        path: directory.to_owned(),
        source,
    };
    let bundle = read_bundle_toml(directory)?;
    let created = match (bundle.created, options.source_date_epoch) {
        (Some(created), _) => created,
        (None, Some(seconds)) => Timestamp::from_unix(seconds).map_err(refused)?,
        (None, None) => return Err(ReadError::NoTime),
    };
    let mut found = files::collect(directory)?;
    let mut bundle_files = std::mem::take(&mut found.files);
    let surroundings = Surroundings::of_author(&bundle.publisher, &bundle.id);
    let authored = index::authored(directory, &bundle_files)?;
    let (index, mut diagnostics) = examine(&bundle_files, authored.as_ref(), surroundings);
    diagnostic::attach(&mut diagnostics, |name| {
        let authored = authored.as_ref().filter(|_| name == TOOLS_JSON);
        let found = authored.or_else(|| bundle_files.get(name));
        found.map(|bytes| bytes.as_ref())
    });
    for one in &mut diagnostics {
        one.file = found.place(&one.file);
    }
    let (errors, mut warnings): (Vec<_>, Vec<_>) =
        diagnostics.into_iter().partition(Diagnostic::is_error);
    if !errors.is_empty() {
        return Err(ReadError::Invalid(errors));
    }
    warnings.extend(found.skipped.iter().map(|path| {
        Diagnostic::new(
            &codes::FILE_SKIPPED,
            path,
            Position::START,
            "hidden files are not packed",
        )
    }));

    // A `tools.json` that the author wrote is packed unchanged.
    let tools_json = authored.unwrap_or_else(|| index.to_bytes().into());
    let tools = ToolsEntry {
        path: BundlePath::parse(TOOLS_JSON).map_err(refused)?,
        blake3: Digest::of(&tools_json),
        size: tools_json.len() as u64,
        version: u64::from(index.version),
    };
    let mut entries = Vec::with_capacity(bundle_files.len());
    for (path, bytes) in &bundle_files {
        entries.push(FileEntry {
            path: BundlePath::parse(path).map_err(refused)?,
            blake3: Digest::of(bytes),
            size: bytes.len() as u64,
            role: role_of(path),
        });
    }
    bundle_files.insert(TOOLS_JSON.to_owned(), tools_json);
    let manifest = Manifest {
        id: bundle.id,
        version: bundle.version,
        sequence: bundle.sequence,
        publisher: bundle.publisher,
        created,
        expires: bundle.expires,
        min_host: match options.provenance {
            true => bundle.min_host.max(Some(PROVENANCE_SINCE)),
            false => bundle.min_host,
        },
        provenance: options.provenance,
        artifacts: Artifacts {
            tools,
            files: entries,
        },
    };
    let manifest_bytes = manifest.to_bytes().map_err(refused)?;
    Ok(PackedBundle {
        manifest,
        manifest_bytes,
        files: bundle_files,
        warnings,
    })
}

/// Reads the `bundle.toml` of an authoring directory.
///
/// # Errors
///
/// When the file is missing or invalid.
pub fn read_bundle_toml(directory: &Path) -> Result<BundleToml, ReadError> {
    if !directory.join(bundle_toml::FILE).is_file() {
        return Err(ReadError::NoBundleToml {
            directory: directory.to_owned(),
        });
    }
    let limit = files::limit_of(bundle_toml::FILE);
    let bytes = files::read(directory, bundle_toml::FILE, limit)?;
    let mut parsed = bundle_toml::parse_bytes(bundle_toml::FILE, &bytes);
    diagnostic::attach(&mut parsed.diagnostics, |_| Some(bytes.as_ref()));
    match parsed.value {
        Some(bundle) => Ok(bundle),
        None => Err(ReadError::Invalid(parsed.diagnostics)),
    }
}

/// Parses the documents and checks them against each other. Returns the author's index, or else an
/// index made from the documents. Also returns the findings.
fn examine(
    files: &files::Files,
    authored: Option<&Arc<[u8]>>,
    surroundings: Surroundings<'_>,
) -> (Index, Vec<Diagnostic>) {
    let (documents, mut diagnostics) = rules::read_in(files, surroundings);
    diagnostics.extend(rules::components(&documents, files));
    let mut whole = files::Files::new();
    let read = authored.and_then(|bytes| {
        whole.clone_from(files);
        whole.insert(TOOLS_JSON.to_owned(), Arc::clone(bytes));
        index::read(&whole, &documents, &mut diagnostics).index
    });
    let brings_tools = read.as_ref().is_some_and(|index| !index.tools.is_empty());
    if diagnostics.is_empty() && !brings_tools {
        diagnostics.extend(rules::not_empty(&documents, files));
    }
    let implementing = documents.implementing();
    let index = read.unwrap_or_else(|| Index::generate(&borrowed(&implementing)));
    (index, diagnostics)
}
