//! Findings for the author: documents that are valid but probably not as intended, and names that
//! can't be in a bundle.

mod credentials;
mod schemas;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use toolward_bundle::codes;
use toolward_bundle::dev::{BuildEntry, bundle_toml};
use toolward_bundle::documents::{Documents, Located, beside, file_name, folder};
use toolward_bundle::files::{DirectoryFiles, Files};
use toolward_bundle::index::TOOLS_JSON;
use toolward_bundle::locate::{about_error, about_file};
use toolward_bundle::rules;
use toolward_bundle::text::list;
use toolward_contract::Outline;
use toolward_contract::capability::{CapabilitySet, Class};
use toolward_contract::diagnostic::{Diagnostic, Position, Severity};
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::index::{Index, IndexEntry};
use toolward_contract::tool::{McpSchemas, Tool};
use toolward_signing::manifest::FileRole;
use toolward_signing::path::{BundlePath, check_set};
use toolward_support::fields::{NearNames, nearest};
use toolward_support::report::Code;

/// Reports names that can't be in a bundle, and files that are left out.
pub(crate) fn names(found: &DirectoryFiles) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut paths = Vec::new();
    for name in found.files.keys() {
        match BundlePath::parse(name) {
            Ok(path) => paths.push(path),
            Err(refusal) => diagnostics.push(about_error(name, &codes::FILE_NAME, &refusal)),
        }
    }
    if let Err(refusal) = check_set(paths.iter()) {
        let place = refusal.place().unwrap_or(bundle_toml::FILE);
        diagnostics.push(about_error(place, &codes::FILE_NAME, &refusal));
    }
    let message = "hidden files are not packed";
    let skipped = found.skipped.iter();
    diagnostics.extend(
        skipped.map(|name| Diagnostic::new(&codes::FILE_SKIPPED, name, Position::START, message)),
    );
    diagnostics
}

/// Reports folders whose names differ from the documents in them.
pub(crate) fn folders(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let tools = documents.tools.iter();
    let tools = tools.map(|tool| (tool.path.as_str(), tool.value.id.as_str()));
    // A DRIVER.md may be in the folder of the TOOL.md that it implements.
    let drivers = documents.drivers.iter().filter(|driver| {
        let neighbour = beside(&driver.path, "TOOL.md");
        let mut unread = documents.unread_of(FileRole::Contract);
        documents.tools.iter().all(|tool| tool.path != neighbour)
            && unread.all(|tool| tool.path != neighbour)
    });
    let drivers = drivers.map(|driver| (driver.path.as_str(), driver.value.id.as_str()));
    tools
        .chain(drivers)
        .filter_map(|(path, id)| {
            let name = file_name(folder(path));
            // Two major versions of an id need two folders.
            let (tools, drivers) = (documents.tools.iter(), documents.drivers.iter());
            let shared = tools.filter(|one| one.value.id.as_str() == id).count() > 1
                || drivers.filter(|one| one.value.id.as_str() == id).count() > 1;
            let fits = name == id || (shared && name.starts_with(id));
            (!fits).then(|| {
                let message = format!("the folder is named {name:?}, the id in it is {id:?}");
                let hint = format!("rename the folder to {id:?}");
                finding(files, &codes::FOLDER_NAME, (path, "/id"), message, hint)
            })
        })
        .collect()
}

/// Reports drivers that can't run on this machine. This is only a note, since the bundle may be
/// used on another machine.
pub(crate) fn platforms(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    use std::env::consts::{ARCH, OS};
    let mut diagnostics = Vec::new();
    for driver in &documents.drivers {
        let platform = &driver.value.platform;
        let mut add = |key: &str, listed: &[String], own: &str| {
            let message = format!(
                "`requires.{key}` is {}, and this machine is {own}",
                listed.join(", ")
            );
            let hint =
                format!("add {own:?}, or leave `requires.{key}` out: a component runs everywhere");
            let (code, pointer) = (&codes::DRIVER_PLATFORM, &*format!("/requires/{key}"));
            diagnostics.push(finding(files, code, (&driver.path, pointer), message, hint));
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

/// Returns the folders of DRIVER.md files that could not be read. The files of these drivers are
/// unknown.
fn unread_drivers(documents: &Documents) -> Vec<&str> {
    let unread = documents.unread_of(FileRole::Driver);
    unread.map(|driver| folder(&driver.path)).collect()
}

/// Reports contracts without a driver in the bundle, and default drivers that don't implement their
/// contract.
pub(crate) fn drivers(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    if !unread_drivers(documents).is_empty() {
        // An unread driver may implement any contract, so no driver is reported as missing.
        return diagnostics;
    }
    let named = |tool: &Tool| {
        let drivers = documents.drivers.iter();
        let mut entries = drivers.flat_map(|driver| &driver.value.implements);
        entries.any(|entry| entry.is_of(tool.id.as_str()))
    };
    let mut unnamed = Vec::new();
    for tool in &documents.tools {
        let (id, version) = (tool.value.id.as_str(), &tool.value.version);
        let drivers = documents.drivers.iter();
        let drivers = drivers.filter(|one| one.value.implements_tool(id, version).is_some());
        let implementing: Vec<&str> = drivers.map(|one| one.value.id.as_str()).collect();
        if implementing.is_empty() {
            // A driver for other versions was reported already.
            unnamed.extend((!named(&tool.value)).then_some(tool));
        } else if let Some(default) = &tool.value.default_implementation
            && !implementing.contains(&default.as_str())
        {
            let hint = match nearest(default, implementing.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("name one of {}", list(&implementing)),
            };
            let message = format!(
                "`default_implementation` is {default:?}, which implements no such tool here"
            );
            let (code, at) = (&codes::DEFAULT_DRIVER_UNKNOWN, "/default_implementation");
            diagnostics.push(finding(files, code, (&tool.path, at), message, hint));
        }
    }
    let near = misspelt(documents, &unnamed);
    for tool in unnamed {
        let id = tool.value.id.as_str();
        match near.get(id) {
            Some(found) => diagnostics.extend(found.clone()),
            None => {
                let version = &tool.value.version;
                let message = format!("no driver of this bundle implements {id} {version}");
                let (code, at) = (&codes::DRIVER_MISSING, (&*tool.path, "/id"));
                let hint =
                    "add it to `implements` of a DRIVER.md, with a range that holds the version";
                diagnostics.push(finding(files, code, at, message, hint));
            }
        }
    }
    diagnostics
}

/// Returns warnings about references to missing contracts, by the id of the contract that was
/// probably meant: an existing one with a similar id, which no driver names. The warning is `None`
/// if another finding reports the reference, for example as a path that leads nowhere.
fn misspelt<'d>(
    documents: &Documents,
    unnamed: &[&'d Located<Tool>],
) -> BTreeMap<&'d str, Option<Diagnostic>> {
    let mut found = BTreeMap::new();
    let mut near = NearNames::default();
    for driver in &documents.drivers {
        for entry in &driver.value.implements {
            let id = match &entry.tool_id {
                Some(id) => id.as_str(),
                // AIP-14 names the folder after the id.
                None => file_name(folder(&entry.tool)),
            };
            if documents.may_have_tool(id) {
                continue;
            }
            let ids = unnamed.iter().map(|tool| tool.value.id.as_str());
            let Some(near) = near.find(id, ids) else {
                continue;
            };
            let warning = (entry.tool == id).then(|| {
                let message = format!("no contract of this bundle has the id `{id}`");
                let code = &codes::TOOL_REFERENCE_UNKNOWN;
                Diagnostic::new(code, &driver.path, entry.at, message)
                    .with_hint(format!("did you mean `{near}`?"))
            });
            found.entry(near).or_insert(warning);
        }
    }
    found
}

/// Reports values in contracts, drivers and actions that are valid but likely mistakes.
pub(crate) fn contents(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for tool in &documents.tools {
        let contract = &tool.value;
        let mut all = vec![
            ("/inputs", &contract.inputs),
            ("/outputs", &contract.outputs),
        ];
        let context = contract.context_schema.as_ref();
        all.extend(context.map(|context| ("/contextSchema", context)));
        let are_plain = contract.mcp_schemas == McpSchemas::Plain;
        let mut subject = Subject::new(&tool.path, Position::START, Some(files), &mut diagnostics);
        schemas::check(&mut subject, &all, are_plain);
        credentials::check_tool(contract, &mut subject);
        let runloop = contract.metadata.get("runloop");
        let budget = runloop.and_then(|runloop| runloop.get("budget"));
        if budget.is_some_and(|budget| !budget.is_null()) {
            let id = contract.id.as_str();
            diagnostics.push(uncounted(&tool.path, Position::START, id));
        }
    }
    for driver in &documents.drivers {
        egress(driver, documents, files, &mut diagnostics);
        let mut subject =
            Subject::new(&driver.path, Position::START, Some(files), &mut diagnostics);
        credentials::check_driver(&driver.value, &mut subject);
    }
    for action in &documents.actions {
        let mut subject =
            Subject::new(&action.path, Position::START, Some(files), &mut diagnostics);
        credentials::check_action(&action.value, &mut subject);
    }
    diagnostics
}

/// Like [`contents`], for a tools.json of version 1. A tools.json of version 2 only repeats its
/// contracts.
pub(crate) fn index(index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let entries = index.tools.iter().enumerate();
    for (number, entry) in entries.filter(|_| index.version == 1) {
        let pointer = format!("/tools/{number}");
        let inputs = format!("{pointer}/input_schema");
        let outputs = format!("{pointer}/result_schema");
        let all = [
            (&*inputs, &entry.input_schema),
            (&*outputs, &entry.result_schema),
        ];
        let mut subject = Subject::new(TOOLS_JSON, entry.at, None, &mut diagnostics);
        schemas::check(&mut subject, &all, true);
        credentials::check_entry(entry, &pointer, &mut subject);
        if !entry.budget.is_empty() {
            diagnostics.push(uncounted(TOOLS_JSON, entry.at, entry.id.as_str()));
        }
        any_host(entry, &mut diagnostics);
    }
    diagnostics
}

/// Checks the hosts that an entry of tools.json declares.
fn any_host(entry: &IndexEntry, diagnostics: &mut Vec<Diagnostic>) {
    if reaches_all(&entry.capabilities) {
        let message = format!("`capabilities` of {} have `net:*`: any host", entry.id);
        let found = Diagnostic::new(&codes::EGRESS_ANY, TOOLS_JSON, entry.at, message);
        diagnostics.push(found.with_hint("name the host of its `url`, and no other"));
    }
}

/// Compares the network access of a driver with the needs of its contracts.
fn egress(
    driver: &Located<Driver>,
    documents: &Documents,
    files: &Files,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let egress = &driver.value.egress;
    if reaches_all(egress) {
        let message = "`network.egress` has `*`: the driver may send what it gets to any host";
        let hint = "name the hosts that it needs: many operators grant no others";
        let at = (&*driver.path, "/network/egress");
        diagnostics.push(finding(files, &codes::EGRESS_ANY, at, message, hint));
    }
    if !egress.is_empty() || driver.value.kind != DriverKind::Component {
        return;
    }
    let networked = |class: &Class| matches!(class, Class::Network | Class::External);
    let needing = documents.tools.iter().find(|tool| {
        let declaration = tool.value.declaration();
        let (id, version) = (tool.value.id.as_str(), &tool.value.version);
        driver.value.implements_tool(id, version).is_some()
            && declaration.iter().any(|one| networked(one.class()))
    });
    if let Some(tool) = needing {
        let message = format!(
            "`network.egress` is empty, and {} needs the network: every request is refused",
            tool.value.id
        );
        let at = (&*driver.path, "/network");
        let hint = "list the hosts in `network.egress`";
        diagnostics.push(finding(files, &codes::EGRESS_EMPTY, at, message, hint));
    }
}

fn reaches_all(set: &CapabilitySet) -> bool {
    let mut hosts = set.iter().filter_map(|one| one.host());
    hosts.any(|host| host.host() == "*")
}

/// Returns the finding about a budget that nothing enforces yet.
fn uncounted(file: &str, at: Position, id: &str) -> Diagnostic {
    let message = format!("the budget of {id} is shown, and nothing counts it yet");
    Diagnostic::new(&codes::BUDGET_NOT_COUNTED, file, at, message)
}

/// A document, or an entry of tools.json, with the findings about its values.
struct Subject<'a> {
    file: &'a str,
    /// Where the document or entry starts.
    at: Position,
    files: Option<&'a Files>,
    /// Read when the first finding is added.
    outline: OnceCell<Option<Outline>>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Subject<'a> {
    /// Without `files`, findings about all values have the position `at`.
    fn new(
        file: &'a str,
        at: Position,
        files: Option<&'a Files>,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            file,
            at,
            files,
            outline: OnceCell::new(),
            found,
        }
    }

    fn outline(&self) -> Option<&Outline> {
        let read = || outline(self.files?, self.file);
        self.outline.get_or_init(read).as_ref()
    }

    /// Adds a finding about the value at a JSON pointer.
    fn add(&mut self, code: &Code, pointer: &str, message: String, hint: impl Into<String>) {
        let outline = self.outline();
        let at = outline.map_or(self.at, |outline| outline.position(pointer));
        let found = Diagnostic::new(code, self.file, at, message);
        self.found.push(found.with_hint(hint));
    }
}

/// Returns the positions of a document's values.
pub(crate) fn outline(files: &Files, path: &str) -> Option<Outline> {
    Outline::read(str::from_utf8(files.get(path)?).ok()?)
}

/// Returns a finding about the value of a document at a JSON pointer.
pub(crate) fn finding(
    files: &Files,
    code: &Code,
    (path, pointer): (&str, &str),
    message: impl Into<String>,
    hint: impl Into<String>,
) -> Diagnostic {
    let outline = outline(files, path);
    let at = outline.map_or(Position::START, |outline| outline.position(pointer));
    Diagnostic::new(code, path, at, message).with_hint(hint)
}

/// Reports components and outputs of builds that no driver names, and snapshots of drivers that may
/// be given files.
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
            let message = "no DRIVER.md beside it names this component";
            let hint = "remove it, or name it as `component` of a driver";
            diagnostics.push(about_file(path, &codes::COMPONENT_STRAY, message, hint));
        }
    }
    for build in builds {
        if !named.contains(&build.output) && !unread.contains(&folder(&build.output)) {
            let message = format!("no driver names the component {:?}", build.output);
            let (file, code) = (bundle_toml::FILE, &codes::BUILD_OUTPUT_UNUSED);
            let hint = "`output` is the `component` of a DRIVER.md, beside it";
            diagnostics.push(about_file(file, code, message, hint));
        }
    }
    diagnostics.extend(builds.iter().filter_map(|build| snapshot(documents, build)));
    diagnostics
}

/// Returns the finding that a driver with a snapshot may be given files.
pub(crate) fn snapshot(documents: &Documents, build: &BuildEntry) -> Option<Diagnostic> {
    let output = &build.output;
    if !build.snapshot || !rules::may_use_files(documents, output) {
        return None;
    }
    let message = match component_paths(documents).contains(output) {
        true => format!("{output} has a snapshot, and its driver may be given files"),
        false => format!("{output} has a snapshot, and no DRIVER.md says that it needs no files"),
    };
    let (file, code) = (bundle_toml::FILE, &codes::SNAPSHOT_FILES);
    let hint = "remove `snapshot` from its [[build]], or `workspace` from its driver and contracts";
    Some(about_file(file, code, message, hint))
}

/// Reports AIP-30's entry files (scripts such as `driver.ts`) next to drivers that run no code.
pub(crate) fn entry_files(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let is_entry = |path: &str| {
        matches!(
            file_name(path),
            "driver.ts" | "driver.js" | "driver.mjs" | "driver.py"
        )
    };
    let mut diagnostics = Vec::new();
    for driver in &documents.drivers {
        let kind = &driver.value.kind;
        let runs_none = kind.is_run() && !kind.runs_code();
        let beside = files
            .keys()
            .filter(|path| is_entry(path) && folder(path) == folder(&driver.path));
        diagnostics.extend(beside.filter(|_| runs_none).map(|path| {
            let message = format!("a driver of kind `{kind}` runs no code");
            let hint = "remove it, or make the driver a component: `toolward new` shows how";
            about_file(path, &codes::DRIVER_ENTRY_UNUSED, message, hint)
        }));
    }
    diagnostics
}

/// Adjusts findings about drivers whose component a `[[build]]` makes. A missing component is only
/// a warning before the build. A misspelt contract is an error, since it makes `build` fail: the
/// compiled component does not serve that tool.
pub(crate) fn judge_built(found: &mut [Diagnostic], documents: &Documents, builds: &[BuildEntry]) {
    let is_of_build = |one: &&mut Diagnostic| is_built(&one.file, documents, builds);
    for one in found.iter_mut().filter(is_of_build) {
        if one.code == codes::COMPONENT_MISSING.code {
            one.severity = Severity::Warning;
            one.message.push_str(" yet; a [[build]] makes it");
        } else if one.code == codes::TOOL_REFERENCE_UNKNOWN.code {
            one.severity = Severity::Error;
        }
    }
}

/// Whether a `[[build]]` makes the component of the driver at this path.
fn is_built(driver: &str, documents: &Documents, builds: &[BuildEntry]) -> bool {
    let mut drivers = documents.drivers.iter();
    let found = drivers.find(|one| one.path == driver);
    let output = found.and_then(component_path);
    output.is_some_and(|output| builds.iter().any(|build| build.output == output))
}

fn component_paths(documents: &Documents) -> Vec<String> {
    let drivers = documents.drivers.iter();
    drivers.filter_map(component_path).collect()
}

fn component_path(driver: &Located<Driver>) -> Option<String> {
    Some(beside(&driver.path, driver.value.component.as_deref()?))
}
