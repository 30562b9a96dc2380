//! Checks the documents and components of a bundle against each other: ids are unique, components
//! exist and export a known world, imports are declared. A host refuses a bundle that breaks one of
//! these rules; `check` reports each violation together with all other findings.

use std::collections::BTreeSet;

use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::tool::Tool;

use crate::codes;
use crate::declared::DeclaredCapabilities;
use crate::dev::bundle_toml;
use crate::documents::{Documents, MAX_FINDINGS, beside, ids, serves};
use crate::files::Files;
use crate::libraries::Surroundings;
use crate::locate::{about_file, key_position, repeated};
use crate::shown;

mod components;

pub(crate) use components::{component, readable, usable};

/// Reads the documents among `files`. The findings are about each document and about all together,
/// but not about components ([`components`](components())) or `tools.json`
/// ([`index::check`](crate::index::check)). Registry references are not resolved.
pub fn read(files: &Files) -> (Documents, Vec<Diagnostic>) {
    read_in(files, Surroundings::NONE)
}

/// As [`read`], but resolves registry references, and references to other bundles, by
/// `surroundings`.
pub fn read_in(files: &Files, surroundings: Surroundings<'_>) -> (Documents, Vec<Diagnostic>) {
    let mut documents = Documents::read_in(files, surroundings);
    let mut diagnostics = std::mem::take(&mut documents.diagnostics);
    diagnostics.extend(unique_ids(&documents));
    diagnostics.extend(implementations(&documents));
    diagnostics.extend(shown::check(&documents, files));
    diagnostics.extend(undescribed(&documents, files));
    (documents, diagnostics)
}

/// The findings about the drivers' components because of which a host refuses the bundle.
pub fn components(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let drivers = documents.drivers.iter();
    let problems =
        drivers.filter_map(|driver| component(driver, documents, files, None, None).err());
    problems.map(|problem| *problem).collect()
}

/// Whether the driver of the component at `path` may get files. True if the driver or one of its
/// contracts declares a workspace. Also true if that is unknown: a contract is in another bundle,
/// or no readable DRIVER.md names the component.
pub fn may_use_files(documents: &Documents, path: &str) -> bool {
    let tools = documents.tools.iter().map(|tool| tool.value.as_ref());
    let named = documents.drivers.iter().filter(|driver| {
        let component = driver.value.component.as_deref();
        component.is_some_and(|name| beside(&driver.path, name) == path)
    });
    let mut declared = named
        .map(|driver| DeclaredCapabilities::of(&driver.value, tools.clone()))
        .peekable();
    declared.peek().is_none() || declared.any(|declared| declared.accounts_for("wasi:filesystem"))
}

/// Checks that a bundle has a document or a resource.
pub fn not_empty(documents: &Documents, files: &Files) -> Option<Diagnostic> {
    documents.is_empty(files).then(|| {
        about_file(
            bundle_toml::FILE,
            &codes::BUNDLE_EMPTY,
            "the bundle has no TOOL.md, no DRIVER.md, no ACTION.md, no prompt and no resource",
            "contracts go to tools/<id>/TOOL.md, drivers to drivers/<id>/DRIVER.md",
        )
    })
}

/// Finds ids that two documents of one kind share.
fn unique_ids(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let tools = ids(&documents.tools, |tool| Some(tool.major_id()));
    let drivers = ids(&documents.drivers, |driver| Some(driver.major_id()));
    let actions = ids(&documents.actions, |action| Some(action.id.clone()));
    repeated("contract id", tools, &mut diagnostics);
    repeated("driver id", drivers, &mut diagnostics);
    repeated("action id", actions, &mut diagnostics);
    diagnostics
}

/// The description that an import writes, for the author to replace.
pub const UNDESCRIBED: &str = "TODO: say what this tool does, and when to use it.";

/// Finds contracts that still have the description that an import writes.
fn undescribed(documents: &Documents, files: &Files) -> impl Iterator<Item = Diagnostic> {
    let todo = documents.tools.iter().filter(|tool| {
        let description = tool.value.description.trim_start();
        description.starts_with(UNDESCRIBED)
    });
    todo.map(move |tool| {
        let message = format!("{} has no description yet", tool.value.id);
        let at = key_position(source(files, &tool.path), "description");
        Diagnostic::new(&codes::DESCRIPTION_TODO, &tool.path, at, message)
            .with_hint("say in `description` what it does, and when to use it")
    })
}

/// Checks drivers against the known contracts that they implement: dropped inputs, mapped names,
/// limits.
fn implementations(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    // If two contracts have the same `id@major`, the second is refused, so it is not checked
    // against drivers.
    let mut known = BTreeSet::new();
    let tools = documents.tools.iter();
    let tools: Vec<_> = tools
        .filter(|tool| known.insert(tool.value.major_id()))
        .collect();
    for driver in &documents.drivers {
        if diagnostics.len() > MAX_FINDINGS {
            break;
        }
        let serves = |tool: &Tool| serves(&driver.value, tool);
        let served = tools.iter().filter(|tool| serves(&tool.value));
        let served: BTreeSet<&str> = served.map(|tool| tool.value.id.as_str()).collect();
        for tool in &tools {
            // If a driver serves a version of a contract, it is not checked against versions that
            // it does not serve.
            if serves(&tool.value) || !served.contains(tool.value.id.as_str()) {
                diagnostics.extend(driver.value.check_against(&tool.value, &driver.path));
            }
        }
    }
    diagnostics
}

/// The text of a document.
fn source<'f>(files: &'f Files, path: &str) -> &'f str {
    let bytes = files.get(path);
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.unwrap_or_default()
}
