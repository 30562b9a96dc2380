//! What the documents and components of a bundle owe each other: unique ids,
//! components that exist and export the known world, imports that something
//! declares. A host refuses a bundle that breaks one of these; `check` reports
//! them with the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::capability::Class;
use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_contract::driver::{Driver, DriverKind};
use toolward_signing::digest::Digest;

use crate::codes;
use crate::component::{Component, HANDLER, Surface};
use crate::documents::{Documents, Located, beside};
use crate::locate::{key_position, whole};

/// Finds ids that two documents of one kind share.
pub(crate) fn unique_ids(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let tools = documents
        .tools
        .iter()
        .map(|tool| (tool.value.id.as_str(), tool.path.as_str()));
    let drivers = documents
        .drivers
        .iter()
        .map(|driver| (driver.value.id.as_str(), driver.path.as_str()));
    let actions = documents
        .actions
        .iter()
        .map(|action| (action.value.id.as_str(), action.path.as_str()));
    repeated("contract", tools, &mut diagnostics);
    repeated("driver", drivers, &mut diagnostics);
    repeated("action", actions, &mut diagnostics);
    diagnostics
}

/// What a driver says about a contract that it implements and that is at hand:
/// dropped inputs, mapped names, limits.
pub(crate) fn implementations(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for driver in &documents.drivers {
        for tool in &documents.tools {
            if driver
                .value
                .implements_tool(tool.value.id.as_str(), &tool.value.version)
                .is_some()
            {
                diagnostics.extend(driver.value.check_against(&tool.value, &driver.path));
            }
        }
    }
    diagnostics
}

fn repeated<'a>(
    kind: &str,
    ids: impl Iterator<Item = (&'a str, &'a str)>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, path) in ids {
        if let Some(first) = seen.get(id) {
            diagnostics.push(whole(
                path,
                Severity::Error,
                codes::DUPLICATE_ID,
                format!("the {kind} id {id:?} is taken by {first}"),
                Some("give one of them another id, or put it into another bundle".to_owned()),
            ));
        } else {
            seen.insert(id, path);
        }
    }
}

/// Looks at the component of one driver.
///
/// Gives `None` for a driver of another kind, and the first problem as an error.
pub(crate) fn component(
    driver: &Located<Driver>,
    documents: &Documents,
    files: &BTreeMap<String, Arc<[u8]>>,
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
            codes::COMPONENT_MISSING,
            format!("the component {path} is not in the bundle"),
            Some("build it: `toolward build`".to_owned()),
        ));
    };
    let surface = Surface::read(bytes).map_err(|error| {
        report.error(
            "component",
            codes::COMPONENT_INVALID,
            format!("{path}: {error}"),
            error.hint(),
        )
    })?;
    if !surface.exports_handler() {
        return Err(report.world(&path, &surface));
    }
    let unknown = surface.unknown_imports();
    if !unknown.is_empty() {
        return Err(report.error(
            "component",
            codes::COMPONENT_IMPORT,
            format!("{path} imports {}, which no host provides", list(&unknown)),
            Some(
                "a driver may import toolward:driver@0.1 and the WASI 0.2 packages cli, io, clocks, random, filesystem, sockets, http and keyvalue"
                    .to_owned(),
            ),
        ));
    }
    report.declared(&path, &surface, documents)?;
    Ok(Some(Component {
        path,
        digest: Digest::of(bytes),
        bytes: Arc::clone(bytes),
        surface,
    }))
}

struct Report<'a> {
    driver: &'a Located<Driver>,
    files: &'a BTreeMap<String, Arc<[u8]>>,
}

impl Report<'_> {
    fn error(
        &self,
        key: &str,
        code: &'static str,
        message: String,
        hint: Option<String>,
    ) -> Box<Diagnostic> {
        let source = self
            .files
            .get(&self.driver.path)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default();
        let (line, column) = key_position(source, key);
        Box::new(Diagnostic {
            code,
            severity: Severity::Error,
            message,
            file: self.driver.path.clone(),
            line,
            column,
            hint,
        })
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
        let hint = if surface.handler_version().is_some() {
            "build the driver against the version of toolward-guest that belongs to this host"
        } else {
            "export a handler: `toolward_guest::export!`, or the `driver` world of toolward:driver"
        };
        self.error(
            "component",
            codes::COMPONENT_WORLD,
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
        if surface.imports_package("wasi:http") {
            if self.driver.value.egress.is_empty() {
                return Err(self.error(
                    "network",
                    codes::COMPONENT_UNDECLARED,
                    format!(
                        "{path} imports wasi:http, and {} declares no network",
                        self.driver.path
                    ),
                    Some(
                        "name the hosts in `network.egress`, or build the driver without HTTP"
                            .to_owned(),
                    ),
                ));
            }
            if !self.declares(documents, &Class::Network) {
                return Err(self.error(
                    "implements",
                    codes::COMPONENT_UNDECLARED,
                    format!("{path} imports wasi:http, and no contract that it implements declares network"),
                    Some("add `requires.network` to the contract, or build the driver without HTTP".to_owned()),
                ));
            }
        }
        if surface.imports_package("wasi:keyvalue") && !self.declares(documents, &Class::Database) {
            return Err(self.error(
                "component",
                codes::COMPONENT_UNDECLARED,
                format!("{path} imports wasi:keyvalue, and no contract that it implements declares a database"),
                Some("add `mutates: [\"database:NAME\"]` to the contract, or build the driver without it".to_owned()),
            ));
        }
        Ok(())
    }

    /// Whether the driver or a contract that it implements declares a class.
    /// A contract of another bundle can't be asked here; it is given the
    /// benefit of the doubt, since the grant is computed with it at hand.
    fn declares(&self, documents: &Documents, class: &Class) -> bool {
        let driver = &self.driver.value;
        if driver
            .requires
            .capabilities
            .iter()
            .any(|capability| capability.class() == class)
        {
            return true;
        }
        driver.implements.iter().any(|entry| {
            let mut known = documents
                .tools
                .iter()
                .filter(|tool| tool.value.id == entry.tool_id)
                .peekable();
            known.peek().is_none()
                || known.any(|tool| {
                    tool.value
                        .declaration()
                        .iter()
                        .any(|capability| capability.class() == class)
                })
        })
    }
}

/// Names in a sentence, at most eight of them.
pub(crate) fn list(names: &[&str]) -> String {
    let mut text = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(8).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
