//! `tools.json`, the machine index of a bundle: reads the contracts and drivers of a version 1
//! document, and compares the index with TOOL.md and DRIVER.md.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::Driver;
use toolward_contract::index::Index;
use toolward_contract::json;
use toolward_contract::tool::Tool;
use toolward_signing::manifest::{FileRole, Manifest};
use toolward_support::fields::without_mark_bytes;

use crate::codes;
use crate::documents::{Documents, borrowed, role_of};
use crate::files::{self, Files, FilesError};
use crate::locate::about_file;

/// The name of the machine index in a bundle.
pub const TOOLS_JSON: &str = toolward_signing::manifest::TOOLS_FILE;

/// The `tools.json` of an authoring directory, if its author wrote it. A document of version 1
/// counts as written by the author. In a directory without contracts, a document of any version
/// except 2 does so, too. `pack` replaces all other documents.
///
/// # Errors
/// When it exists and can't be read.
pub fn authored(directory: &Path, files: &Files) -> Result<Option<Arc<[u8]>>, FilesError> {
    if directory.join(TOOLS_JSON).symlink_metadata().is_err() {
        return Ok(None);
    }
    let bytes = files::read(directory, TOOLS_JSON, files::limit_of(TOOLS_JSON))?;
    let document =
        json::parse(without_mark_bytes(&bytes), &json::Limits::default()).unwrap_or_default();
    let has_contracts = files.keys().any(|path| role_of(path) == FileRole::Contract);
    let is_source = match document.get("version").and_then(Value::as_u64) {
        Some(1) => true,
        Some(2) => false,
        _ => !has_contracts,
    };
    Ok(is_source.then_some(bytes))
}

/// The contents of `tools.json`, and the contracts and drivers that it adds to the documents.
#[derive(Default)]
pub(crate) struct IndexContents {
    /// `None` if it is missing or doesn't parse.
    pub(crate) index: Option<Index>,
    /// The contracts of a version 1 document, in a bundle without TOOL.md.
    pub(crate) contracts: Vec<Arc<Tool>>,
    /// The drivers made from version 1 transports.
    pub(crate) drivers: Vec<Arc<Driver>>,
    /// The drivers made from denied version 1 transports.
    pub(crate) denied: Vec<Arc<Driver>>,
}

/// Adds to `found` the findings about `tools.json`, and its disagreements with the documents.
/// Returns the index, if it can be read.
pub fn check(files: &Files, documents: &Documents, found: &mut Vec<Diagnostic>) -> Option<Index> {
    read(files, documents, found).index
}

/// Reads `tools.json` and compares it with the documents.
pub(crate) fn read(
    files: &Files,
    documents: &Documents,
    diagnostics: &mut Vec<Diagnostic>,
) -> IndexContents {
    let Some(bytes) = files.get(TOOLS_JSON) else {
        diagnostics.push(about_file(
            TOOLS_JSON,
            &codes::FILE_UNREADABLE,
            "the bundle has no tools.json",
            "pack the bundle again: `toolward pack`",
        ));
        return IndexContents::default();
    };
    let scope = documents.scope(files);
    let parsed = Index::parse(TOOLS_JSON, bytes, &scope);
    diagnostics.extend(parsed.diagnostics);
    for unread in scope.unread_schemas() {
        // The finding exists already if a contract requested the same schema.
        if !diagnostics.contains(&unread) {
            diagnostics.push(unread);
        }
    }
    let Some(index) = parsed.value else {
        return IndexContents::default();
    };
    let mut contracts = Vec::new();
    if documents.tools.is_empty() && index.version == 1 {
        contracts.extend(index.contracts().into_iter().map(Arc::new));
    } else {
        // The index is compared only if there are no errors, since a document that doesn't parse
        // would look like a difference.
        let readable = !diagnostics.iter().any(Diagnostic::is_error);
        let implementing = documents.implementing();
        if readable && let Err(disagreements) = index.agrees(TOOLS_JSON, &borrowed(&implementing)) {
            diagnostics.extend(disagreements);
        }
    }
    let mut indexed = IndexContents {
        contracts,
        ..IndexContents::default()
    };
    attach(&index, &mut indexed, documents, diagnostics);
    indexed.index = Some(index);
    indexed
}

/// Adds the drivers made from the transports of a version 1 document. A denied transport adds no
/// driver to its contract, but the bundle is still valid.
fn attach(
    index: &Index,
    indexed: &mut IndexContents,
    documents: &Documents,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for entry in index.tools.iter().filter(|_| index.version == 1) {
        let written = documents.tools.iter().map(|tool| &tool.value);
        let mut all = written.chain(&indexed.contracts);
        let contract = all.find(|tool| tool.id == entry.id);
        let Some(contract) = contract else { continue };
        match entry.driver(contract, TOOLS_JSON) {
            None => {}
            Some(Err(denied)) => {
                let driver = entry.denied(contract, &denied);
                indexed.denied.extend(driver.map(Arc::new));
                diagnostics.push(denied);
            }
            Some(Ok(driver)) => {
                let mut others = documents.drivers.iter();
                let id = driver.major_id();
                if let Some(other) = others.find(|other| other.value.major_id() == id) {
                    let code = &codes::DUPLICATE_ID;
                    let message = format!("the driver id {id:?} is taken by {}", other.path);
                    let taken = Diagnostic::new(code, TOOLS_JSON, entry.at, message);
                    let hint = "give one of them another id, or put it into another bundle";
                    diagnostics.push(taken.with_hint(hint));
                }
                indexed.drivers.push(Arc::new(driver));
            }
        }
    }
}

/// Compares the version of `tools.json` with the version in the manifest.
pub(crate) fn check_version(manifest: &Manifest, index: &Index) -> Option<Diagnostic> {
    let (listed, found) = (manifest.artifacts.tools.version, index.version);
    (listed != u64::from(found)).then(|| {
        about_file(
            "manifest.toml",
            &codes::TOOLS_VERSION,
            format!(
                "expected the `version` of [artifacts.tools] to be that of tools.json, {found}, \
                 found {listed}"
            ),
            "pack the bundle again: `toolward pack`",
        )
    })
}
