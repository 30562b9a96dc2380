//! What is allowed and yet probably not meant: for the author, never a reason
//! for a host to refuse.

use toolward_bundle::codes;
use toolward_bundle::dev::{BuildEntry, bundle_toml};
use toolward_bundle::documents::{Documents, Located, beside, file_name, folder};
use toolward_bundle::files::{Files, Found};
use toolward_bundle::locate::{about_error, about_file};
use toolward_contract::diagnostic::{Diagnostic, Position, Severity};
use toolward_contract::driver::Driver;
use toolward_signing::manifest::FileRole;
use toolward_signing::path::{BundlePath, check_set};

/// Names that can't be in a bundle, and files that are left out.
pub(crate) fn names(found: &Found) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut paths = Vec::new();
    for name in found.files.keys() {
        match BundlePath::parse(name) {
            Ok(path) => paths.push(path),
            Err(refusal) => diagnostics.push(about_error(name, &codes::FILE_NAME, &refusal)),
        }
    }
    if let Err(refusal) = check_set(paths.iter()) {
        diagnostics.push(about_error(
            refusal.place().unwrap_or(bundle_toml::FILE),
            &codes::FILE_NAME,
            &refusal,
        ));
    }
    diagnostics.extend(found.skipped.iter().map(|name| {
        Diagnostic::new(
            &codes::FILE_SKIPPED,
            name,
            Position::START,
            "hidden files are not packed",
        )
    }));
    diagnostics
}

/// Folders named otherwise than what is in them.
pub(crate) fn folders(documents: &Documents) -> Vec<Diagnostic> {
    let tools = documents
        .tools
        .iter()
        .map(|tool| (tool.path.as_str(), tool.value.id.as_str()));
    // A DRIVER.md may stand beside the TOOL.md that it implements.
    let drivers = documents
        .drivers
        .iter()
        .filter(|driver| {
            let neighbour = beside(&driver.path, "TOOL.md");
            let mut unread = documents.unread_of(FileRole::Contract);
            documents.tools.iter().all(|tool| tool.path != neighbour)
                && unread.all(|tool| tool.path != neighbour)
        })
        .map(|driver| (driver.path.as_str(), driver.value.id.as_str()));
    tools
        .chain(drivers)
        .filter_map(|(path, id)| {
            let name = file_name(folder(path));
            (name != id).then(|| {
                about_file(
                    path,
                    &codes::FOLDER_NAME,
                    format!("the folder is named {name:?}, the id in it is {id:?}"),
                    format!("rename the folder to {id:?}"),
                )
            })
        })
        .collect()
}

/// Drivers that can't run on this machine. A bundle is often made elsewhere than it
/// is used: it is only said.
pub(crate) fn platforms(documents: &Documents) -> Vec<Diagnostic> {
    use std::env::consts::{ARCH, OS};
    let mut diagnostics = Vec::new();
    for driver in &documents.drivers {
        let platform = &driver.value.platform;
        let mut add = |key: &str, listed: &[String], own: &str| {
            diagnostics.push(about_file(
                &driver.path,
                &codes::DRIVER_PLATFORM,
                format!(
                    "`requires.{key}` is {}, and this machine is {own}",
                    listed.join(", ")
                ),
                format!("add {own:?}, or leave `requires.{key}` out: a component runs everywhere"),
            ));
        };
        if !platform.runs_on_os(OS) {
            add("os", &platform.os, OS);
        }
        if !platform.runs_on_arch(ARCH) {
            add("arch", &platform.arch, ARCH);
        }
    }
    diagnostics
}

/// The folders of DRIVER.md files that could not be read: what belongs to such a
/// driver is not known.
fn unread_drivers(documents: &Documents) -> Vec<&str> {
    let unread = documents.unread_of(FileRole::Driver);
    unread.map(|driver| folder(&driver.path)).collect()
}

/// Contracts that nothing in the bundle carries out.
pub(crate) fn drivers(documents: &Documents) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if !unread_drivers(documents).is_empty() {
        // Any of them may be the one that is missing.
        return diagnostics;
    }
    for tool in &documents.tools {
        let implementing: Vec<&str> = documents
            .drivers
            .iter()
            .filter(|driver| {
                driver
                    .value
                    .implements_tool(tool.value.id.as_str(), &tool.value.version)
                    .is_some()
            })
            .map(|driver| driver.value.id.as_str())
            .collect();
        let named = |driver: &Located<Driver>| {
            let mut entries = driver.value.implements.iter();
            entries.any(|entry| entry.tool_id == tool.value.id)
        };
        if implementing.is_empty() && documents.drivers.iter().any(named) {
            // For other versions, which the driver was warned of.
            continue;
        }
        if implementing.is_empty() {
            diagnostics.push(about_file(
                &tool.path,
                &codes::DRIVER_MISSING,
                format!(
                    "no driver of this bundle implements {} {}",
                    tool.value.id, tool.value.version
                ),
                "add it to `implements` of a DRIVER.md, with a range that holds the version",
            ));
        } else if let Some(default) = &tool.value.default_implementation
            && !implementing.contains(&default.as_str())
        {
            diagnostics.push(about_file(
                &tool.path,
                &codes::DEFAULT_DRIVER_UNKNOWN,
                format!(
                    "`default_implementation` is {default:?}, which implements no such tool here"
                ),
                format!("name one of {}", implementing.join(", ")),
            ));
        }
    }
    diagnostics
}

/// Components without a driver, and builds without a component.
pub(crate) fn components(
    documents: &Documents,
    files: &Files,
    builds: &[BuildEntry],
) -> Vec<Diagnostic> {
    let named = component_paths(documents);
    let unread = unread_drivers(documents);
    let mut diagnostics = Vec::new();
    for path in files.keys().filter(|path| path.ends_with(".wasm")) {
        if !named.contains(path) && !unread.contains(&folder(path)) {
            diagnostics.push(about_file(
                path,
                &codes::COMPONENT_STRAY,
                "no DRIVER.md beside it names this component",
                "remove it, or name it as `component` of a driver",
            ));
        }
    }
    for build in builds {
        if !named.contains(&build.output) && !unread.contains(&folder(&build.output)) {
            diagnostics.push(about_file(
                bundle_toml::FILE,
                &codes::BUILD_OUTPUT_UNUSED,
                format!("no driver names the component {:?}", build.output),
                "`output` is the `component` of a DRIVER.md, beside it",
            ));
        }
    }
    diagnostics
}

/// A component that a `[[build]]` is going to write is not an error until it
/// is built.
pub(crate) fn soften_unbuilt(
    diagnostic: &mut Diagnostic,
    documents: &Documents,
    builds: &[BuildEntry],
) {
    if diagnostic.code != codes::COMPONENT_MISSING.code {
        return;
    }
    let expected = documents
        .drivers
        .iter()
        .find(|driver| driver.path == diagnostic.file)
        .and_then(|driver| Some(beside(&driver.path, driver.value.component.as_deref()?)));
    if builds
        .iter()
        .any(|build| Some(&build.output) == expected.as_ref())
    {
        diagnostic.severity = Severity::Warning;
        diagnostic.message.push_str(" yet; a [[build]] makes it");
    }
}

fn component_paths(documents: &Documents) -> Vec<String> {
    documents
        .drivers
        .iter()
        .filter_map(|driver| Some(beside(&driver.path, driver.value.component.as_deref()?)))
        .collect()
}
