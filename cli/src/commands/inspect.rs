//! `inspect`: shows what a bundle contains and what it asks for. Also shows bundles that are not
//! trusted, and states whether the bundle was verified.

use std::io::Read as _;

use toolward_bundle::component::{Functions, MAX_SIZE, MadeFor, Surface, Usability};
use toolward_bundle::inspect::{ActionView, DriverView, InputView, Inspection, ToolView};
use toolward_operator::bundles::{is_under_work, under_work};
use toolward_operator::installed::{bundle_of, examined, next_step};

use crate::prelude::*;

/// Longest text of a bundle that is shown on a line, in characters.
const MAX_LINE_CHARS: usize = 300;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle, a .wasm file, or the id of an installed bundle or tool
    ///
    /// A bundle is a directory or an archive, signed or under work.
    path: PathBuf,

    /// List every file
    #[arg(long)]
    files: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result {
    let path = &arguments.path;
    if path.extension().is_some_and(|ending| ending == "wasm") {
        return component(path, context);
    }
    let (trust, store) = (&arguments.trust, &arguments.store);
    let inspection = if let Some(content) = installed(arguments, context)? {
        Inspection::of(&content)
    } else if !trust.is_named() && is_under_work(path) {
        Inspection::of(&under_work(path, trust, store, context)?)
    } else if trust.is_given(context) {
        Inspection::of(&trust.content(path, store, context)?)
    } else {
        Inspection::unverified(path).map_err(packed)?
    };
    match context.json() {
        true => context.value(&inspection),
        false => show(&inspection, arguments.files, context),
    }
}

/// Returns the installed bundle with this id, or with a tool of this id, if no file has this name.
fn installed(arguments: &Arguments, context: &Context) -> Result<Option<Content>> {
    let (Some(name), false) = (arguments.path.to_str(), arguments.path.exists()) else {
        return Ok(None);
    };
    let Some(store) = arguments.store.existing(context)? else {
        return Ok(None);
    };
    let Some(id) = bundle_of(&store, name)? else {
        return Ok(None);
    };
    let examined = examined(&store, &arguments.trust, context)?;
    let mut same = examined.into_iter().filter(|one| one.installed.id == id);
    match same.next().and_then(|one| one.read) {
        Some(Ok(content)) => Ok(Some(content)),
        Some(Err(failure)) => Err(failure.hint(next_step(&id))),
        None => Ok(None),
    }
}

fn show(inspection: &Inspection, files: bool, context: &Context) -> Result {
    let manifest = &inspection.manifest;
    let (id, version, sequence) = (line(&manifest.id), &manifest.version, manifest.sequence);
    let mut lines = TextLines::new(format_args!("{id} {version} (sequence {sequence})"));
    let known = match inspection.verified {
        true => "verified",
        false if inspection.publisher.starts_with("dev:") => "under work, unsigned",
        false => "NOT VERIFIED: anybody can write this",
    };
    let publisher = line(&inspection.publisher);
    lines.row("publisher", format_args!("{publisher} ({known})"));
    for signer in inspection.signers.iter().filter(|_| inspection.verified) {
        lines.row("signed by", signer);
    }
    lines.row("manifest", inspection.manifest_digest);
    lines.row("created", line(&manifest.created));
    if let Some(expires) = &manifest.expires {
        lines.row("expires", line(expires));
    }
    if let Some(built) = &inspection.provenance {
        let (compiler, target) = (line(&built.compiler), line(&built.target));
        lines.row("built", format_args!("by {compiler} for {target}"));
    }
    for tool in &inspection.tools {
        add_tool(&mut lines, tool);
    }
    for action in &inspection.actions {
        add_action(&mut lines, action);
    }
    for driver in &inspection.drivers {
        add_driver(&mut lines, driver);
    }
    if files {
        lines.add("\nfiles");
        for file in &inspection.files {
            let (digest, size, role) = (file.blake3, file.size, &file.role);
            let path = line(&file.path);
            lines.add(format_args!("  {digest} {size:>10} {role:<9} {path}"));
        }
    }
    context.line(lines)?;
    for problem in &inspection.problems {
        context.diagnostic(problem)?;
    }
    Ok(())
}

fn add_tool(lines: &mut TextLines, tool: &ToolView) {
    let (id, version) = (line(&tool.id), &tool.version);
    lines.add(format_args!("\ncontract {id} {version}"));
    lines.add(format_args!("  {}", line(&tool.description)));
    for (name, fields) in [("inputs", &tool.inputs), ("outputs", &tool.outputs)] {
        let fields: Vec<String> = fields.iter().map(input).collect();
        lines.row(name, listed(&fields, MAX_LINE_CHARS));
    }
    lines.row("declares", listed(&tool.declares, MAX_LINE_CHARS));
    lines.row("approval", line(&tool.approval));
    lines.row("risk", format_args!("{} of 3", tool.risk_level));
    lines.row("timeout", format_args!("{} ms", tool.timeout_ms));
    lines.row("cost", tool.cost_class);
    add_list(lines, "fires", &tool.fires_events);
    for (name, value) in &tool.budget {
        let budget = format!("{name} {value}, which nothing counts");
        lines.row("budget", line(&budget));
    }
}

fn add_action(lines: &mut TextLines, action: &ActionView) {
    let (id, version) = (line(&action.id), &action.version);
    lines.add(format_args!("\naction {id} {version}"));
    if !action.description.is_empty() {
        lines.add(format_args!("  {}", line(&action.description)));
    }
    lines.row("mutates", listed(&action.mutates, MAX_LINE_CHARS));
    let (approval, risk) = (line(&action.approval), action.risk_level);
    lines.row("at least", format_args!("approval {approval}, risk {risk}"));
    if !action.fires_events.is_empty() {
        let events = listed(&action.fires_events, MAX_LINE_CHARS);
        lines.row("no effect", format_args!("fires_events: {events}"));
    }
    for (kind, reference) in &action.implementations {
        let hint = format!("implementations: {kind} {reference}");
        lines.row("no effect", line(&hint));
    }
}

fn add_driver(lines: &mut TextLines, driver: &DriverView) {
    let (id, version, kind) = (line(&driver.id), &driver.version, line(&driver.kind));
    lines.add(format_args!("\ndriver {id} {version} ({kind})"));
    lines.row("implements", listed(&driver.implements, MAX_LINE_CHARS));
    lines.row("egress", listed(&driver.egress, MAX_LINE_CHARS));
    add_list(lines, "requires", &driver.requires);
    if let Some(path) = &driver.auth_ref {
        lines.row("auth.ref", line(path));
    }
    for request in &driver.requests {
        lines.row("requests", line(request));
    }
    add_list(lines, "region", &driver.region);
    add_list(lines, "tags", &driver.policy_tags);
    for (row, fields) in [("no effect", &driver.unused), ("not run", &driver.fields)] {
        for (name, value) in fields {
            lines.row(row, line(&format!("{name}: {value}")));
        }
    }
    for cost in &driver.costs {
        lines.row("costs", line(&cost.to_string()));
    }
    let Some(component) = &driver.component else {
        return;
    };
    let (path, size, digest) = (line(&component.path), component.size, &component.digest);
    lines.row("component", format_args!("{path} ({size} bytes, {digest})"));
    for name in &component.imports {
        lines.row("imports", line(name));
    }
    for found in &component.difference.undeclared {
        let (import, effect) = match found.refused {
            true => (line(&found.import), "a host refuses it"),
            false => (line(&found.import), "it gets nothing there"),
        };
        let text = format!("{import} is imported and not declared: {effect}");
        lines.row("undeclared", text);
    }
    for capability in &component.difference.unused {
        let capability = line(capability);
        let text = format!("{capability} is declared, and nothing imported uses it");
        lines.row("unused", text);
    }
}

/// Adds a row, if the list is not empty.
fn add_list(lines: &mut TextLines, name: &str, items: &[String]) {
    if !items.is_empty() {
        lines.row(name, listed(items, MAX_LINE_CHARS));
    }
}

fn input(input: &InputView) -> String {
    let optional = if input.required { "" } else { "?" };
    match &input.kind {
        Some(kind) => format!("{}{optional} {kind}", input.name),
        None => format!("{}{optional}", input.name),
    }
}

/// Reads a component's file, at most one byte more than a component may have.
pub(super) fn read_component(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The additional byte shows that a file is too large.
    toolward_support::files::open_regular(path)
        .map_err(|error| Failure::unreadable(path, error.problem))?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::unreadable(path, error))?;
    Ok(bytes)
}

fn component(path: &Path, context: &Context) -> Result {
    let bytes = read_component(path)?;
    let surface = Surface::read(&bytes).map_err(|error| failed(error).in_file(path))?;
    let made_for = MadeFor::of(&surface);
    let usability = Usability::of(&bytes, &surface);
    let functions = match usability {
        Usability::Driver => Functions::default(),
        _ => Functions::read(&bytes, &surface.exports).unwrap_or_default(),
    };
    if context.json() {
        let exports = surface.exports.iter();
        let exports = exports.map(|one| json!({ "name": one.name, "kind": one.kind }));
        let exports: Vec<_> = exports.collect();
        let (import, unusable) = match &usability {
            Usability::Import(world) => (Some(*world), None),
            Usability::Unusable(reason) => (None, Some(reason)),
            _ => (None, None),
        };
        let withheld = functions.withheld.iter().map(|(name, reason)| {
            json!({ "name": name, "reason": reason.to_string(), "code": reason.code() })
        });
        return context.value(&json!({
            "size": surface.size, "imports": surface.imports, "exports": exports,
            "modules": surface.modules, "components": surface.components,
            "world": made_for.word(), "driver": usability == Usability::Driver,
            "import": import, "unusable": unusable,
            "functions": functions.offered.keys().collect::<Vec<_>>(),
            "withheld": withheld.collect::<Vec<_>>(),
        }));
    }
    let mut lines = TextLines::default();
    for name in &surface.imports {
        lines.add(format_args!("imports {}", line(name)));
    }
    for export in &surface.exports {
        let (name, kind) = (line(&export.name), &export.kind);
        lines.add(format_args!("exports {name} ({kind})"));
    }
    let (size, modules, components) = (surface.size, surface.modules, surface.components);
    lines.add(format_args!(
        "{size} bytes, {modules} modules and {components} components inside"
    ));
    for name in functions.offered.keys() {
        lines.add(format_args!("function {}", line(name)));
    }
    if let more @ 1.. = functions.uncounted {
        lines.add(format_args!("{more} more functions can't be called"));
    }
    for (name, reason) in &functions.withheld {
        lines.add(line(&format!("function {name} can't be called: {reason}")));
    }
    let what = made_for.description();
    lines.add(match usability {
        Usability::Driver => format!("{what}: a contract can be bound to it"),
        Usability::Import(word) => {
            format!("{what}: `toolward import {word}` makes tools of it")
        }
        Usability::Unusable(reason) => line(&format!("{what}, which can't serve here: {reason}")),
    });
    context.line(lines)
}

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}
