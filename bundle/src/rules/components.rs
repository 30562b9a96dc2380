//! Checks the component of a driver: it exists, exports known worlds, imports only declared
//! interfaces, and exports each function that an entry of `implements` calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::capability::{Class, Import, ImportRefusal};
use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_contract::driver::{Driver, DriverKind, Implements, WitCall, World};
use toolward_signing::digest::Digest;
use toolward_signing::manifest::Manifest;
use toolward_signing::verify::Bundle;
use toolward_support::fields::nearest;
use toolward_support::report::Code;

use super::source;
use crate::codes;
use crate::component::{
    Component, ComponentContent, Function, Functions, HANDLER, MadeFor, Surface, Type,
    WithheldFunction,
};
use crate::declared::{DeclaredCapabilities, is_without_host};
use crate::documents::{Documents, Located, beside};
use crate::files::Files;
use crate::locate::key_position;
use crate::text::list;

/// Checks the component of one driver. Returns `None` for a driver of another kind than
/// `component`. The error is the first problem.
pub(crate) fn component(
    driver: &Located<Driver>,
    documents: &Documents,
    files: &Files,
    manifest: Option<&Manifest>,
    signed: Option<&Bundle>,
) -> Result<Option<Component>, Box<Diagnostic>> {
    let mut component = readable(driver, files, manifest, signed)?;
    if let Some(component) = &mut component {
        component.functions = usable(component, driver, documents, files)?;
    }
    Ok(component)
}

/// Reads the component of one driver, if it has one. If a `manifest` is given, the digest is taken
/// from it, so the caller must have checked that the files match. A component that `signed` has
/// unread is described by its facts.
pub(crate) fn readable(
    driver: &Located<Driver>,
    files: &Files,
    manifest: Option<&Manifest>,
    signed: Option<&Bundle>,
) -> Result<Option<Component>, Box<Diagnostic>> {
    if !matches!(driver.value.kind, DriverKind::Component) {
        return Ok(None);
    }
    let report = DriverReport { driver, files };
    // A driver of this kind always has the field, so the default is never used.
    let name = driver.value.component.as_deref().unwrap_or("driver.wasm");
    let path = beside(&driver.path, name);
    let unread = signed.and_then(|bundle| bundle.unread.get(&*path));
    let known = unread.and_then(|file| Some((file, Surface::from_facts(file.facts())?)));
    let (content, surface) = match (files.get(&path), known) {
        (Some(bytes), _) => {
            let surface = Surface::read(bytes).map_err(|error| {
                report.error(
                    "component",
                    &codes::COMPONENT_INVALID,
                    format!("{path}: {error}"),
                    error.hint().as_deref(),
                )
            })?;
            (ComponentContent::Bytes(Arc::clone(bytes)), surface)
        }
        (None, Some((file, surface))) => (ComponentContent::Unread(file.clone()), surface),
        (None, None) => {
            return Err(report.error(
                "component",
                &codes::COMPONENT_MISSING,
                format!("the component {path} is not in the bundle"),
                Some("build it: `toolward build`"),
            ));
        }
    };
    let listed = manifest.and_then(|manifest| manifest.entry(&path));
    Ok(Some(Component {
        digest: match (listed, &content) {
            (Some(listed), _) => listed.blake3,
            (None, ComponentContent::Bytes(bytes)) => Digest::of(bytes),
            (None, ComponentContent::Unread(file)) => file.expected().blake3,
        },
        path,
        content,
        surface,
        functions: BTreeMap::new(),
    }))
}

/// Checks that a host accepts the component of a driver: its worlds, its imports and their
/// declarations. Returns the functions that a host calls with their own types (the world `wit`), by
/// name.
pub(crate) fn usable(
    component: &Component,
    driver: &Located<Driver>,
    documents: &Documents,
    files: &Files,
) -> Result<BTreeMap<String, Arc<Function>>, Box<Diagnostic>> {
    let report = DriverReport { driver, files };
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
                "a driver may import toolward:driver@0.1 and the WASI 0.2 packages cli, io, clocks, random, filesystem, sockets, http and keyvalue",
            ),
        ));
    }
    report.declared(path, surface, documents)?;
    called_functions(component, &report, documents)
}

struct DriverReport<'a> {
    driver: &'a Located<Driver>,
    files: &'a Files,
}

impl DriverReport<'_> {
    fn error(
        &self,
        key: &str,
        code: &Code,
        message: String,
        hint: Option<&str>,
    ) -> Box<Diagnostic> {
        let at = key_position(source(self.files, &self.driver.path), key);
        let found = Diagnostic::new(code, &self.driver.path, at, message);
        let hint = hint.map(str::to_owned);
        Box::new(Diagnostic { hint, ..found })
    }

    fn world(&self, path: &str, surface: &Surface) -> Box<Diagnostic> {
        let exports = surface.exports.iter();
        let exports: Vec<&str> = exports.map(|export| export.name.as_str()).collect();
        let found = match exports[..] {
            [] => "nothing".to_owned(),
            _ => list(&exports),
        };
        let hint = match MadeFor::of(surface) {
            MadeFor::OtherToolward => {
                "build the driver against the version of toolward-guest that belongs to this host"
            }
            MadeFor::Functions => {
                "to call its functions, say so in `metadata.component`: `toolward import component` writes that"
            }
            MadeFor::Foreign(world) => &format!(
                "to call {}, say so in `metadata.component`: `toolward import {}` writes that",
                world.tool, world.word
            ),
            _ => {
                "export a handler: by `toolward_guest::driver!`, or by the `driver` world of toolward:driver"
            }
        };
        self.error(
            "component",
            &codes::COMPONENT_WORLD,
            format!("{path} exports {found}; expected {HANDLER}"),
            Some(hint),
        )
    }

    /// Refuses undeclared imports for which [`Class::IMPORTS`] has a refusal. They are refused at
    /// load, not only denied at run time.
    fn declared(
        &self,
        path: &str,
        surface: &Surface,
        documents: &Documents,
    ) -> Result<(), Box<Diagnostic>> {
        let tools = documents.tools.iter().map(|tool| tool.value.as_ref());
        let driver = &self.driver.value;
        let declared = DeclaredCapabilities::of(driver, tools);
        let egress = &driver.egress;
        let refused = |key: &str, message: String, hint: &str| {
            Err(self.error(key, &codes::COMPONENT_UNDECLARED, message, Some(hint)))
        };
        for Import {
            name: import,
            refusal,
            ..
        } in Class::IMPORTS
        {
            let imported = surface.imports_package(import) && !is_without_host(import, driver);
            let Some(ImportRefusal { lacks, hint }) = refusal.as_ref().filter(|_| imported) else {
                continue;
            };
            let http = *import == "wasi:http";
            if http && egress.is_empty() {
                return refused(
                    "network",
                    format!(
                        "{path} imports wasi:http, and {} declares no network",
                        self.driver.path
                    ),
                    "name the hosts in `network.egress`, write `egress: []` if it reaches none, or build the driver without HTTP",
                );
            }
            if !declared.accounts_for(import) {
                return refused(
                    if http { "implements" } else { "component" },
                    format!(
                        "{path} imports {import}, and no contract that it implements declares {lacks}"
                    ),
                    hint,
                );
            }
            if http && !declared.shares_a_host(egress) {
                return refused(
                    "network",
                    format!("{path} imports wasi:http, and the contracts declare none of {egress}"),
                    "name hosts in `network.egress` that the contract declares",
                );
            }
        }
        Ok(())
    }
}

/// The functions of a component that a host calls with their own types (the world `wit`), by name.
/// Also checks the functions of foreign worlds.
fn called_functions(
    component: &Component,
    report: &DriverReport<'_>,
    documents: &Documents,
) -> Result<BTreeMap<String, Arc<Function>>, Box<Diagnostic>> {
    let mut called = BTreeMap::new();
    let (path, entries) = (&component.path, &report.driver.value.implements);
    if entries.iter().all(|entry| entry.world == World::Toolward) {
        return Ok(called);
    }
    let bytes = component.read().map_err(|problem| {
        report.entry_error(0, &codes::COMPONENT_INVALID, format!("{path}: {problem}"))
    })?;
    let functions = Functions::read(&bytes, &component.surface.exports)
        .map_err(|error| report.entry_error(0, &codes::COMPONENT_INVALID, error.to_string()))?;
    for (index, entry) in entries.iter().enumerate() {
        match &entry.world {
            World::Wit(call) => {
                let function = report.function(path, index, &call.export, &functions)?;
                report.fits(path, index, function, (call, entry), documents)?;
                called.insert(call.export.clone(), Arc::new(function.clone()));
            }
            World::Foreign(world) => {
                let export = world.export();
                let function = report.function(path, index, export, &functions)?;
                if !is_execute(function) {
                    let message = format!(
                        "{export} of {path} is no func(list<u8>) -> result<list<u8>, string>"
                    );
                    return Err(report.entry_error(index, &codes::COMPONENT_SIGNATURE, message));
                }
            }
            _ => {}
        }
    }
    Ok(called)
}

/// Whether this is `func(input: list<u8>) -> result<list<u8>, string>`.
fn is_execute(function: &Function) -> bool {
    let result = match function.result.as_deref() {
        Some(Type::Result {
            ok: Some(ok),
            err: Some(err),
        }) => ok.is_bytes() && **err == Type::String,
        _ => false,
    };
    result && matches!(&function.parameters[..], [(_, input)] if input.is_bytes())
}

impl DriverReport<'_> {
    /// A finding about an entry of `implements`.
    fn entry_error(&self, index: usize, code: &Code, message: String) -> Box<Diagnostic> {
        let entry = self.driver.value.implements.get(index);
        let at = entry.map_or(Position::START, |entry| entry.at);
        Box::new(Diagnostic::new(code, &self.driver.path, at, message))
    }

    fn function<'f>(
        &self,
        path: &str,
        index: usize,
        name: &str,
        functions: &'f Functions,
    ) -> Result<&'f Function, Box<Diagnostic>> {
        if let Some(function) = functions.offered.get(name) {
            return Ok(function);
        }
        if let Some(reason) = functions.withheld.get(name) {
            let code = match reason {
                WithheldFunction::Unsupported(_) => &codes::COMPONENT_TYPE_UNSUPPORTED,
                WithheldFunction::TooLarge { .. } => &codes::COMPONENT_TYPE_TOO_LARGE,
            };
            let message = format!("{path} exports {name}, which can't be called: {reason}");
            return Err(self.entry_error(index, code, message));
        }
        let all: Vec<&str> = functions.offered.keys().map(String::as_str).collect();
        let found = match all[..] {
            [] => "no function that can be called".to_owned(),
            _ => list(&all),
        };
        let message = format!("{path} has no function {name}; it exports {found}");
        let mut problem = self.entry_error(index, &codes::COMPONENT_EXPORT_MISSING, message);
        let near = nearest(name, all);
        problem.hint = near.map(|near| format!("did you mean {near}?"));
        Err(problem)
    }

    /// Checks a function against the contract that it implements, if the contract is known.
    fn fits(
        &self,
        path: &str,
        index: usize,
        function: &Function,
        (call, entry): (&WitCall, &Implements),
        documents: &Documents,
    ) -> Result<(), Box<Diagnostic>> {
        let driver = &self.driver.value;
        for tool in documents.tools.iter().map(|tool| &tool.value) {
            let serving = driver.implements_tool(tool.id.as_str(), &tool.version);
            if serving.is_none_or(|serving| serving.at != entry.at) {
                continue;
            }
            function.fits(call, entry, tool).map_err(|reason| {
                let export = &call.export;
                let message = format!("{export} of {path} does not fit {}: {reason}", tool.id);
                self.entry_error(index, &codes::COMPONENT_SIGNATURE, message)
            })?;
        }
        Ok(())
    }
}
