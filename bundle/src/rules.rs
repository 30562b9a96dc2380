//! What the documents and components of a bundle owe each other: unique ids,
//! components that exist and export the known world, imports that something
//! declares. A host refuses a bundle that breaks one of these; `check` reports
//! them with the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::{Driver, DriverKind, World};
use toolward_contract::tool::Tool;
use toolward_report::Code;
use toolward_signing::digest::Digest;
use toolward_signing::manifest::Manifest;

use crate::codes;
use crate::component::{Component, Function, HANDLER, MadeFor, Surface};
use crate::declared::Declared;
use crate::dev::bundle_toml;
use crate::documents::{Documents, Located, MAX_FINDINGS, beside};
use crate::duplicates::repeated;
use crate::files::Files;
use crate::libraries::Surroundings;
use crate::locate::{about_file, key_position};
use crate::shown;
use crate::text::list;

mod worlds;

/// Reads the documents among `files`, and says what is wrong with them, alone and
/// together; but for components ([`components`]) and `tools.json`
/// ([`index::check`](crate::index::check)). Registry references lead nowhere.
#[must_use]
pub fn read(files: &Files) -> (Documents, Vec<Diagnostic>) {
    read_in(files, Surroundings::NONE)
}

/// [`read`], with what is known around the bundle.
#[must_use]
pub fn read_in(files: &Files, surroundings: Surroundings<'_>) -> (Documents, Vec<Diagnostic>) {
    let mut documents = Documents::read_in(files, surroundings);
    let mut diagnostics = std::mem::take(&mut documents.diagnostics);
    diagnostics.extend(unique_ids(&documents));
    diagnostics.extend(implementations(&documents));
    diagnostics.extend(shown::check(&documents, files));
    diagnostics.extend(undescribed(&documents, files));
    (documents, diagnostics)
}

/// What is wrong with the components of the drivers, as a host sees it.
#[must_use]
pub fn components(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let drivers = documents.drivers.iter();
    let problems = drivers.filter_map(|driver| component(driver, documents, files, None).err());
    problems.map(|problem| *problem).collect()
}

/// Whether the driver of the component at `path` may be given files: it or a contract of its declares a workspace, or
/// that isn't known, since a contract is of another bundle, or no DRIVER.md that can be read names the component.
#[must_use]
pub fn may_use_files(documents: &Documents, path: &str) -> bool {
    let tools = documents.tools.iter().map(|tool| tool.value.as_ref());
    let named = documents.drivers.iter().filter(|driver| {
        let component = driver.value.component.as_deref();
        component.is_some_and(|name| beside(&driver.path, name) == path)
    });
    let mut declared = named
        .map(|driver| Declared::of(&driver.value, tools.clone()))
        .peekable();
    declared.peek().is_none() || declared.any(|declared| declared.accounts_for("wasi:filesystem"))
}

/// That a bundle under work brings something to use.
#[must_use]
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
    let tools = documents.tools.iter();
    let tools = tools.map(|tool| (tool.value.major_id(), tool.path.as_str()));
    let drivers = documents.drivers.iter();
    let drivers = drivers.map(|driver| (driver.value.major_id(), driver.path.as_str()));
    let actions = documents
        .actions
        .iter()
        .map(|action| (action.value.id.clone(), action.path.as_str()));
    repeated("contract id", tools, &mut diagnostics);
    repeated("driver id", drivers, &mut diagnostics);
    repeated("action id", actions, &mut diagnostics);
    diagnostics
}

/// The description that an import leaves to the author.
pub const UNDESCRIBED: &str = "TODO: say what this tool does, and when to use it.";

/// Finds contracts with the description that an import leaves to its author.
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

/// What a driver says about a contract that it implements and that is at hand:
/// dropped inputs, mapped names, limits.
fn implementations(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    // Of two with one `id@major` the second is refused, and not held against the drivers.
    let mut known = BTreeSet::new();
    let tools = documents.tools.iter();
    let tools: Vec<_> = tools
        .filter(|tool| known.insert(tool.value.major_id()))
        .collect();
    for driver in &documents.drivers {
        if diagnostics.len() > MAX_FINDINGS {
            break;
        }
        let serves = |tool: &Tool| {
            driver
                .value
                .implements_tool(tool.id.as_str(), &tool.version)
                .is_some()
        };
        let served = tools.iter().filter(|tool| serves(&tool.value));
        let served: BTreeSet<&str> = served.map(|tool| tool.value.id.as_str()).collect();
        for tool in &tools {
            // A driver for one major of a contract owes nothing to the others.
            if serves(&tool.value) || !served.contains(tool.value.id.as_str()) {
                diagnostics.extend(driver.value.check_against(&tool.value, &driver.path));
            }
        }
    }
    diagnostics
}

/// Looks at the component of one driver.
///
/// Gives `None` for a driver of another kind, and the first problem as an error.
pub(crate) fn component(
    driver: &Located<Driver>,
    documents: &Documents,
    files: &BTreeMap<String, Arc<[u8]>>,
    manifest: Option<&Manifest>,
) -> Result<Option<Component>, Box<Diagnostic>> {
    let mut component = readable(driver, files, manifest)?;
    if let Some(component) = &mut component {
        component.functions = usable(component, driver, documents, files)?;
    }
    Ok(component)
}

/// The component of one driver, if there is one to look at. Its digest is that of
/// `manifest`, where the files are known to be those of one.
pub(crate) fn readable(
    driver: &Located<Driver>,
    files: &BTreeMap<String, Arc<[u8]>>,
    manifest: Option<&Manifest>,
) -> Result<Option<Component>, Box<Diagnostic>> {
    if !matches!(driver.value.kind, DriverKind::Component) {
        return Ok(None);
    }
    let report = Report { driver, files };
    // A driver of this kind without the field does not parse.
    let name = driver.value.component.as_deref().unwrap_or("driver.wasm");
    let path = beside(&driver.path, name);
    let Some(bytes) = files.get(&path) else {
        return Err(report.error(
            "component",
            &codes::COMPONENT_MISSING,
            format!("the component {path} is not in the bundle"),
            Some("build it: `toolward build`".to_owned()),
        ));
    };
    let surface = Surface::read(bytes).map_err(|error| {
        report.error(
            "component",
            &codes::COMPONENT_INVALID,
            format!("{path}: {error}"),
            error.hint().map(Into::into),
        )
    })?;
    let listed = manifest.and_then(|manifest| manifest.entry(&path));
    Ok(Some(Component {
        digest: listed.map_or_else(|| Digest::of(bytes), |listed| listed.blake3),
        path,
        bytes: Arc::clone(bytes),
        surface,
        functions: BTreeMap::new(),
    }))
}

/// Whether a host takes the component of a driver: its worlds, its imports, and
/// that something declares them. Gives the functions that are called in the world `wit`.
pub(crate) fn usable(
    component: &Component,
    driver: &Located<Driver>,
    documents: &Documents,
    files: &BTreeMap<String, Arc<[u8]>>,
) -> Result<BTreeMap<String, Arc<Function>>, Box<Diagnostic>> {
    let report = Report { driver, files };
    let (path, surface) = (&component.path, &component.surface);
    let entries = &driver.value.implements;
    if entries.iter().any(|entry| entry.world == World::Toolward) && !surface.exports_handler() {
        return Err(report.world(path, surface));
    }
    let unknown = surface.unknown_imports();
    if !unknown.is_empty() {
        return Err(report.error(
            "component",
            &codes::COMPONENT_IMPORT,
            format!("{path} imports {}, which no host provides", list(&unknown)),
            Some(
                "a driver may import toolward:driver@0.1 and the WASI 0.2 packages cli, io, clocks, random, filesystem, sockets, http and keyvalue"
                    .to_owned(),
            ),
        ));
    }
    report.declared(path, surface, documents)?;
    worlds::called(component, driver, documents)
}

/// The text of a document.
fn source<'f>(files: &'f Files, path: &str) -> &'f str {
    let bytes = files.get(path);
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.unwrap_or_default()
}

struct Report<'a> {
    driver: &'a Located<Driver>,
    files: &'a BTreeMap<String, Arc<[u8]>>,
}

impl Report<'_> {
    fn error(
        &self,
        key: &str,
        code: &Code,
        message: String,
        hint: Option<String>,
    ) -> Box<Diagnostic> {
        let at = key_position(source(self.files, &self.driver.path), key);
        let found = Diagnostic::new(code, &self.driver.path, at, message);
        Box::new(Diagnostic { hint, ..found })
    }

    fn world(&self, path: &str, surface: &Surface) -> Box<Diagnostic> {
        let exports: Vec<&str> = surface
            .exports
            .iter()
            .map(|export| export.name.as_str())
            .collect();
        let found = if exports.is_empty() {
            "nothing".to_owned()
        } else {
            list(&exports)
        };
        let hint = match MadeFor::of(surface) {
            MadeFor::OtherToolward => {
                "build the driver against the version of toolward-guest that belongs to this host"
            }
            MadeFor::Functions => {
                "to call its functions, say so in `metadata.component`: `toolward import component` writes that"
            }
            MadeFor::Amplifier => {
                "to call a tool of Amplifier, say so in `metadata.component`: `toolward import amplifier` writes that"
            }
            _ => {
                "export a handler: by `toolward_guest::driver!`, or by the `driver` world of toolward:driver"
            }
        };
        self.error(
            "component",
            &codes::COMPONENT_WORLD,
            format!("{path} exports {found}; expected {HANDLER}"),
            Some(hint.to_owned()),
        )
    }

    /// A component that imports what nothing declares is refused at load, not
    /// only denied at run time.
    fn declared(
        &self,
        path: &str,
        surface: &Surface,
        documents: &Documents,
    ) -> Result<(), Box<Diagnostic>> {
        let tools = documents.tools.iter().map(|tool| tool.value.as_ref());
        let declared = Declared::of(&self.driver.value, tools);
        let egress = &self.driver.value.egress;
        let refused = |key: &str, message: String, hint: &str| {
            Err(self.error(
                key,
                &codes::COMPONENT_UNDECLARED,
                message,
                Some(hint.to_owned()),
            ))
        };
        // An empty list grants nothing: toolchains bring HTTP in, used or not.
        let without_host = self.driver.value.declares_network && egress.is_empty();
        if surface.imports_package("wasi:http") && !without_host {
            if egress.is_empty() {
                return refused(
                    "network",
                    format!(
                        "{path} imports wasi:http, and {} declares no network",
                        self.driver.path
                    ),
                    "name the hosts in `network.egress`, write `egress: []` if it reaches none, or build the driver without HTTP",
                );
            }
            if !declared.accounts_for("wasi:http") {
                return refused(
                    "implements",
                    format!(
                        "{path} imports wasi:http, and no contract that it implements declares network"
                    ),
                    "add `requires.network` to the contract, or build the driver without HTTP",
                );
            }
            if !declared.shares_a_host(egress) {
                return refused(
                    "network",
                    format!("{path} imports wasi:http, and the contracts declare none of {egress}"),
                    "name hosts in `network.egress` that the contract declares",
                );
            }
        }
        if surface.imports_package("wasi:keyvalue") && !declared.accounts_for("wasi:keyvalue") {
            return refused(
                "component",
                format!(
                    "{path} imports wasi:keyvalue, and no contract that it implements declares a database"
                ),
                "add `mutates: [\"database:NAME\"]` to the contract, or build the driver without it",
            );
        }
        Ok(())
    }
}
