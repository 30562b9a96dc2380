//! `inspect`: what a bundle holds and asks for. Needs no trust, and shows
//! whether there was any.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolward_bundle::component::{Functions, MAX_SIZE, MadeFor, Surface, Usability};
use toolward_bundle::content::Content;
use toolward_bundle::inspect::{ActionView, DeclarationDifference, InputView, Inspection};
use toolward_bundle::text::visible_line;
use toolward_operator::bundles::{is_under_work, under_work};
use toolward_operator::installed::{StoreLocation, bundle_of, examined, next_step};
use toolward_operator::trust::Trust;

use crate::environment::Environment;
use crate::failure::{self, Failure, Kind, Result};
use crate::flags::Flagged;
use crate::output::Output;

/// Longest text of a bundle's that is shown on a line, in characters.
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

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let path = &arguments.path;
    if path
        .extension()
        .is_some_and(|extension| extension == "wasm")
    {
        return component(path, output);
    }
    let (trust, store) = (&arguments.trust, &arguments.store);
    let inspection = if let Some(content) = installed(arguments, environment, output)? {
        Inspection::of(&content)
    } else if !trust.is_named() && is_under_work(path) {
        Inspection::of(&under_work(path, trust, store, environment, output)?)
    } else if trust.is_given(environment) {
        Inspection::of(&trust.content(path, store, environment, output)?)
    } else {
        Inspection::unverified(path).map_err(failure::packed)?
    };
    match output.json() {
        true => output.value(&inspection),
        false => show(&inspection, arguments.files, output),
    }
}

/// The installed bundle that is meant, where no file has this name.
fn installed(
    arguments: &Arguments,
    environment: &Environment,
    output: &Output,
) -> Result<Option<Content>> {
    let (Some(name), false) = (arguments.path.to_str(), arguments.path.exists()) else {
        return Ok(None);
    };
    let Some(store) = arguments.store.existing(environment)? else {
        return Ok(None);
    };
    let Some(id) = bundle_of(&store, name)? else {
        return Ok(None);
    };
    let examined = examined(&store, &arguments.trust, environment, output)?;
    let mut same = examined.into_iter().filter(|one| one.installed.id == id);
    match same.next().and_then(|one| one.read) {
        Some(Ok(content)) => Ok(Some(content)),
        Some(Err(failure)) => Err(failure.hint(next_step(&id))),
        None => Ok(None),
    }
}

fn show(inspection: &Inspection, files: bool, output: &mut Output) -> Result {
    let manifest = &inspection.manifest;
    output.line(format!(
        "{} {} (sequence {})",
        line(&manifest.id),
        manifest.version,
        manifest.sequence
    ))?;
    let known = match inspection.verified {
        true => "verified",
        false if inspection.publisher.starts_with("dev:") => "under work, unsigned",
        false => "NOT VERIFIED: anybody can write this",
    };
    let publisher = line(&inspection.publisher);
    output.line(format!("  publisher  {publisher} ({known})"))?;
    if inspection.verified {
        for signer in &inspection.signers {
            output.line(format!("  signed by  {signer}"))?;
        }
    }
    output.line(format!("  manifest   {}", inspection.manifest_digest))?;
    output.line(format!("  created    {}", line(&manifest.created)))?;
    if let Some(expires) = &manifest.expires {
        output.line(format!("  expires    {}", line(expires)))?;
    }
    if let Some(provenance) = &inspection.provenance {
        output.line(format!(
            "  built      by {} for {}",
            line(&provenance.compiler),
            line(&provenance.target)
        ))?;
    }
    for tool in &inspection.tools {
        output.line(format!("\ncontract {} {}", line(&tool.id), tool.version))?;
        output.line(format!("  {}", line(&tool.description)))?;
        let inputs: Vec<String> = tool.inputs.iter().map(input).collect();
        output.line(format!("  inputs     {}", list(&inputs)))?;
        let outputs: Vec<String> = tool.outputs.iter().map(input).collect();
        output.line(format!("  outputs    {}", list(&outputs)))?;
        output.line(format!("  declares   {}", list(&tool.declares)))?;
        output.line(format!("  approval   {}", line(&tool.approval)))?;
        output.line(format!("  risk       {} of 3", tool.risk_level))?;
        output.line(format!("  timeout    {} ms", tool.timeout_ms))?;
        output.line(format!("  cost       {}", tool.cost_class))?;
        if !tool.fires_events.is_empty() {
            output.line(format!("  fires      {}", list(&tool.fires_events)))?;
        }
        for (name, value) in &tool.budget {
            let budget = format!("{name} {value}, which nothing counts");
            output.line(format!("  budget     {}", line(&budget)))?;
        }
    }
    for action in &inspection.actions {
        show_action(action, output)?;
    }
    for driver in &inspection.drivers {
        output.line(format!(
            "\ndriver {} {} ({})",
            line(&driver.id),
            driver.version,
            line(&driver.kind)
        ))?;
        output.line(format!("  implements {}", list(&driver.implements)))?;
        output.line(format!("  egress     {}", list(&driver.egress)))?;
        if !driver.requires.is_empty() {
            output.line(format!("  requires   {}", list(&driver.requires)))?;
        }
        if let Some(path) = &driver.auth_ref {
            output.line(format!("  auth.ref   {}", line(path)))?;
        }
        for request in &driver.requests {
            output.line(format!("  requests   {}", line(request)))?;
        }
        if !driver.region.is_empty() {
            output.line(format!("  region     {}", list(&driver.region)))?;
        }
        if !driver.policy_tags.is_empty() {
            output.line(format!("  tags       {}", list(&driver.policy_tags)))?;
        }
        for (name, value) in &driver.unused {
            output.line(format!(
                "  no effect  {}",
                line(&format!("{name}: {value}"))
            ))?;
        }
        for (name, value) in &driver.fields {
            output.line(format!(
                "  not run    {}",
                line(&format!("{name}: {value}"))
            ))?;
        }
        for cost in &driver.costs {
            output.line(format!("  costs      {}", line(&cost.to_string())))?;
        }
        if let Some(component) = &driver.component {
            output.line(format!(
                "  component  {} ({} bytes, {})",
                line(&component.path),
                component.size,
                component.digest
            ))?;
            for name in &component.imports {
                output.line(format!("  imports    {}", line(name)))?;
            }
            difference(&component.difference, output)?;
        }
    }
    if files {
        output.line("\nfiles")?;
        for file in &inspection.files {
            output.line(format!(
                "  {} {:>10} {:<9} {}",
                file.blake3,
                file.size,
                file.role,
                line(&file.path)
            ))?;
        }
    }
    for problem in &inspection.problems {
        output.diagnostic(problem)?;
    }
    Ok(())
}

/// What is imported and not declared, and the other way round.
fn difference(difference: &DeclarationDifference, output: &mut Output) -> Result {
    for found in &difference.undeclared {
        let effect = if found.refused {
            "a host refuses it"
        } else {
            "it gets nothing there"
        };
        output.line(format!(
            "  undeclared {} is imported and not declared: {effect}",
            line(&found.import)
        ))?;
    }
    for capability in &difference.unused {
        output.line(format!(
            "  unused     {} is declared, and nothing imported uses it",
            line(capability)
        ))?;
    }
    Ok(())
}

fn input(input: &InputView) -> String {
    let optional = if input.required { "" } else { "?" };
    match &input.kind {
        Some(kind) => format!("{}{optional} {kind}", input.name),
        None => format!("{}{optional}", input.name),
    }
}

/// The bytes of a component's file, or a few more than one may have.
pub(super) fn read_component(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than a component may have, so that a larger one is seen.
    toolward_support::files::open_regular(path)
        .map_err(|error| Failure::unreadable(path, error.problem))?
        .take(MAX_SIZE + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::unreadable(path, error))?;
    Ok(bytes)
}

fn component(path: &Path, output: &mut Output) -> Result {
    let bytes = read_component(path)?;
    let surface =
        Surface::read(&bytes).map_err(|error| Failure::of(Kind::Failed, error).in_file(path))?;
    let made_for = MadeFor::of(&surface);
    let usability = Usability::of(&bytes, &surface);
    let functions = match usability {
        Usability::Driver => Functions::default(),
        _ => Functions::read(&bytes, &surface.exports).unwrap_or_default(),
    };
    if output.json() {
        let exports: Vec<_> = surface
            .exports
            .iter()
            .map(|export| json!({ "name": export.name, "kind": export.kind }))
            .collect();
        let (import, unusable) = match &usability {
            Usability::Import(world) => (Some(*world), None),
            Usability::Unusable(reason) => (None, Some(reason)),
            _ => (None, None),
        };
        let withheld = functions.withheld.iter().map(|(name, reason)| {
            json!({ "name": name, "reason": reason.to_string(), "code": reason.code() })
        });
        return output.value(&json!({
            "size": surface.size, "imports": surface.imports, "exports": exports,
            "modules": surface.modules, "components": surface.components,
            "world": made_for.word(), "driver": usability == Usability::Driver,
            "import": import, "unusable": unusable,
            "functions": functions.offered.keys().collect::<Vec<_>>(),
            "withheld": withheld.collect::<Vec<_>>(),
        }));
    }
    for name in &surface.imports {
        output.line(format!("imports {}", line(name)))?;
    }
    for export in &surface.exports {
        output.line(format!("exports {} ({})", line(&export.name), export.kind))?;
    }
    output.line(format!(
        "{} bytes, {} modules and {} components inside",
        surface.size, surface.modules, surface.components
    ))?;
    for name in functions.offered.keys() {
        output.line(format!("function {}", line(name)))?;
    }
    if functions.uncounted > 0 {
        output.line(format!(
            "{} more functions can't be called",
            functions.uncounted
        ))?;
    }
    for (name, reason) in &functions.withheld {
        output.line(line(&format!("function {name} can't be called: {reason}")))?;
    }
    let what = made_for.description();
    output.line(match usability {
        Usability::Driver => format!("{what}: a contract can be bound to it"),
        Usability::Import(word) => {
            format!("{what}: `toolward import {word}` makes tools of it")
        }
        Usability::Unusable(reason) => line(&format!("{what}, which can't serve here: {reason}")),
        _ => what.to_owned(),
    })
}

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

fn list(items: &[String]) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => line(&items.join(", ")),
    }
}

fn show_action(action: &ActionView, output: &mut Output) -> Result {
    output.line(format!("\naction {} {}", line(&action.id), action.version))?;
    if !action.description.is_empty() {
        output.line(format!("  {}", line(&action.description)))?;
    }
    output.line(format!("  mutates    {}", list(&action.mutates)))?;
    output.line(format!(
        "  at least   approval {}, risk {}",
        line(&action.approval),
        action.risk_level
    ))?;
    if !action.fires_events.is_empty() {
        output.line(format!(
            "  no effect  fires_events: {}",
            list(&action.fires_events)
        ))?;
    }
    for (kind, reference) in &action.implementations {
        let hint = format!("implementations: {kind} {reference}");
        output.line(format!("  no effect  {}", line(&hint)))?;
    }
    Ok(())
}
