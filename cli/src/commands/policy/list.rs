//! `policy list`: what became of each tool of a bundle, and of each prompt and
//! resource, on one line.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_policy::{Explanation, Outcome};

use super::{Subject, documents, explanations, nothing};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Longest reasons, in characters.
const REASONS: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let found = explanations(&bundles, &granted.policy, None);
    let documents = documents::all(&bundles, &granted.policy);
    let refused = arguments.subject.source.refused(environment, output)?;
    if found.is_empty() && documents.is_empty() && refused.is_empty() {
        return Err(nothing(&bundles, None));
    }
    for one in &found {
        let (state, word) = match one.outcome {
            Outcome::Allow => ("allowed", "allowed"),
            Outcome::Ask => ("asks", "asks   "),
            Outcome::Deny => ("blocked", "BLOCKED"),
        };
        let reasons = reasons(one);
        if output.json() {
            output.value(&json!({
                "tool": one.tool,
                "driver": one.driver,
                "publisher": one.publisher,
                "state": state,
                "reasons": reasons,
            }))?;
            continue;
        }
        let mut line = format!("{word}  {} with {}", one.tool, one.driver);
        if !reasons.is_empty() {
            let reasons = visible_line(&reasons.join("; "), REASONS);
            line.push_str(&format!(": {reasons}"));
        }
        output.line(line)?;
    }
    for (tool, one, failure) in &refused {
        let (id, publisher) = (&one.id, &one.publisher);
        let reason = format!("{} ({})", failure.message, failure.code);
        if output.json() {
            output.value(&json!({
                "tool": tool,
                "driver": null,
                "publisher": publisher,
                "state": "refused",
                "bundle": id,
                "code": failure.code,
                "reasons": [reason],
            }))?;
            continue;
        }
        let reason = visible_line(&reason, REASONS);
        output.line(format!("REFUSED  {tool} of {id}: {reason}"))?;
    }
    for document in &documents {
        match output.json() {
            true => output.value(&document.json())?,
            false => output.line(document.line())?,
        }
    }
    Ok(Exit::Fine)
}

/// Why a person is asked, or why the tool is blocked.
fn reasons(one: &Explanation) -> Vec<String> {
    let asked = one.ask.iter().map(ToString::to_string);
    let denied = one.denied_by.iter().map(|rule| format!("denied by {rule}"));
    let missing = one.capabilities.iter().filter_map(|capability| {
        let why = capability.missing.as_ref()?;
        let asked = capability.asked.as_ref().unwrap_or(&capability.declared);
        Some(format!("{asked}: {why}"))
    });
    let context = one
        .context
        .iter()
        .map(|lack| format!("context: {}", lack.why));
    asked.chain(denied).chain(missing).chain(context).collect()
}
