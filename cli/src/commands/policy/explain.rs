//! `policy explain`: declaration, policy, grant and reasons of one tool, side by
//! side; or which documents are served, and why not.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible;

use super::documents::{self, Document};
use super::{Subject, explanations, nothing};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Longest explanation of one driver, in characters: lines to add are of use
/// only whole.
const LONGEST: usize = 256 * 1024;

/// Names that are offered where one is unknown.
const KNOWN: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A tool's id, or id@major; a prompt's id; a file's path below resources/; or
    /// a bundle's id, for all its prompts and resources
    name: String,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let name = arguments.name.as_str();
    let found = explanations(&bundles, &granted.policy, Some(name));
    let mut documents = documents::all(&bundles, &granted.policy);
    let known: Vec<String> = documents.iter().map(|one| one.id().to_owned()).collect();
    documents.retain(|document| document.is_meant(name));
    let mut ids = bundles
        .iter()
        .map(|(content, _)| content.manifest.id.as_str());
    if found.is_empty() && documents.is_empty() && !ids.any(|id| id == name) {
        let contents = bundles.iter().map(|(content, _)| content);
        let source = &arguments.subject.source;
        if let Some(failure) = source.withheld(name, contents, environment, output)? {
            return Err(failure);
        }
        let failure = nothing(&bundles, Some(name));
        return Err(match known.get(..known.len().min(KNOWN)) {
            Some([first, more @ ..]) => {
                let more: String = more.iter().map(|id| format!(", {id}")).collect();
                failure.hint(format!("prompts and resources are: {first}{more}"))
            }
            _ => failure,
        });
    }
    let missing = documents::suggest(documents.iter());
    if output.json() {
        let documents: Vec<_> = documents.iter().map(Document::json).collect();
        output.value(&json!({
            "ok": true,
            "policies": granted.files,
            "drivers": found,
            "documents": documents,
            "lines_to_add": missing,
        }))?;
        return Ok(Exit::Fine);
    }
    for (number, explanation) in found.iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        let shown = visible(&explanation.to_string(), LONGEST);
        output.line(shown.trim_end())?;
    }
    if !found.is_empty() && !documents.is_empty() {
        output.line("")?;
    }
    for document in &documents {
        output.line(document.line())?;
    }
    if found.is_empty() && documents.is_empty() {
        output.line(format!("{name} brings no prompts and no resources"))?;
    }
    if !missing.is_empty() {
        let missing = visible(&missing, LONGEST);
        let missing = missing.trim_end();
        output.line(format!(
            "\nto have it served, add to the policy:\n\n{missing}"
        ))?;
    }
    if found.iter().any(|one| !one.lines_to_add.is_empty()) || !missing.is_empty() {
        output.note(format!("the policy's file is {}", granted.place.display()));
    }
    Ok(Exit::Fine)
}
