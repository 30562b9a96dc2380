//! `policy explain`: declaration, policy, grant and reasons of one tool, side by
//! side.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible;

use super::{Subject, explanations, nothing};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Longest explanation of one driver, in characters: lines to add are of use
/// only whole.
const LONGEST: usize = 256 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool's id, or id@major
    tool: String,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let tool = arguments.tool.as_str();
    let found = explanations(&bundles, &granted.policy, Some(tool));
    if found.is_empty() {
        return Err(nothing(&bundles, Some(tool)));
    }
    if output.json() {
        output.value(&json!({ "ok": true, "policies": granted.files, "drivers": found }))?;
        return Ok(Exit::Fine);
    }
    for (number, explanation) in found.iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        let shown = visible(&explanation.to_string(), LONGEST);
        output.line(shown.trim_end())?;
    }
    if found.iter().any(|one| !one.lines_to_add.is_empty()) {
        output.note(format!("the policy's file is {}", granted.place.display()));
    }
    Ok(Exit::Fine)
}
