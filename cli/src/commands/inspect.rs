//! `inspect`: what a bundle holds and asks for. Needs no trust, and says
//! whether there was any.

use crate::flags::Flagged;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolward_bundle::component::Surface;
use toolward_bundle::content::Content;
use toolward_bundle::inspect::{Difference, InputView, Inspection};
use toolward_bundle::text::visible_line;

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure, Kind, content_error};
use crate::output::{Output, Written};
use toolward_operator::trust::{Trust, is_under_work};

/// Longest text of a bundle's that is shown on a line, in characters.
const MAX_LINE_CHARS: usize = 300;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle (a directory or an archive), a bundle under work, or a .wasm
    /// file
    path: PathBuf,

    /// List every file
    #[arg(long)]
    files: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let path = &arguments.path;
    if path
        .extension()
        .is_some_and(|extension| extension == "wasm")
    {
        component(path, output)?;
        return Ok(Exit::Fine);
    }
    let trust = &arguments.trust;
    let inspection = if !trust.is_named() && is_under_work(path) {
        let content =
            Content::from_dev(path).map_err(|error| content_error(&error, Kind::Failed))?;
        Inspection::of(&content)
    } else if trust.is_given(environment) {
        Inspection::of(&trust.content(path, environment, output)?)
    } else {
        Inspection::unverified(path).map_err(failure::packed)?
    };
    if output.json() {
        output.value(&inspection)?;
    } else {
        show(&inspection, arguments.files, output)?;
    }
    Ok(Exit::Fine)
}

fn show(inspection: &Inspection, files: bool, output: &mut Output) -> Written {
    let manifest = &inspection.manifest;
    output.line(format!(
        "{} {} (sequence {})",
        line(&manifest.id),
        manifest.version,
        manifest.sequence
    ))?;
    if inspection.verified {
        output.line(format!(
            "  publisher  {} (verified)",
            line(&inspection.publisher)
        ))?;
        for signer in &inspection.signers {
            output.line(format!("  signed by  {signer}"))?;
        }
    } else if inspection.publisher.starts_with("dev:") {
        output.line(format!(
            "  publisher  {} (under work, unsigned)",
            line(&inspection.publisher)
        ))?;
    } else {
        output.line(format!(
            "  publisher  {} (NOT VERIFIED: anybody can write this)",
            line(&inspection.publisher)
        ))?;
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
        output.line(format!("  declares   {}", list(&tool.declares)))?;
        output.line(format!(
            "  approval   {}, risk {}, timeout {} ms",
            line(&tool.approval),
            tool.risk_level,
            tool.timeout_ms
        ))?;
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
        for request in &driver.requests {
            output.line(format!("  requests   {}", line(request)))?;
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
fn difference(difference: &Difference, output: &mut Output) -> Written {
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

fn component(path: &Path, output: &mut Output) -> Written {
    let bytes = std::fs::read(path).map_err(|error| Failure::unreadable(path, error))?;
    let surface = Surface::read(&bytes).map_err(|error| {
        let failure = Failure::new(
            Kind::Failed,
            error.code(),
            format!("{}: {error}", path.display()),
        );
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if output.json() {
        let exports: Vec<_> = surface
            .exports
            .iter()
            .map(|export| json!({ "name": export.name, "kind": export.kind }))
            .collect();
        return output.value(&json!({
            "size": surface.size, "imports": surface.imports, "exports": exports,
            "modules": surface.modules, "components": surface.components,
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
    ))
}

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        "nothing".to_owned()
    } else {
        line(&items.join(", "))
    }
}
