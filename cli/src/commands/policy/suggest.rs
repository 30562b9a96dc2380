//! `policy suggest`: the fewest lines that let a bundle's tools run, and its
//! documents be seen, for the operator to read, and to add as far as they agree.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use toolward_bundle::text::{visible, visible_line};
use toolward_policy::{AskReason, Outcome, Policy};

use super::{Bundles, Subject, documents, explanations, nothing, pairs};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Longest suggestion, in characters: it is of use only whole.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only for this tool
    tool: Option<String>,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let tool = arguments.tool.as_deref();
    let documents = match tool {
        Some(_) => Vec::new(),
        None => documents::all(&bundles, &granted.policy),
    };
    if pairs(&bundles, tool).next().is_none() && documents.is_empty() {
        return Err(nothing(&bundles, tool));
    }
    let mut lines = toolward_policy::suggest(pairs(&bundles, tool), &granted.policy);
    let shown = documents::suggest(documents.iter());
    if !lines.is_empty() && !shown.is_empty() {
        lines.push('\n');
    }
    lines.push_str(&shown);
    let remarks = remarks(&bundles, &granted.policy, tool, &lines);
    if output.json() {
        output.value(&json!({
            "ok": true, "file": granted.place, "lines": lines, "remarks": remarks,
        }))?;
        return Ok(Exit::Fine);
    }
    let mut text = String::new();
    for (content, publisher) in &bundles {
        let manifest = &content.manifest;
        let _ = writeln!(
            text,
            "# What {} {} by {} needs beyond the policy that there is.",
            visible_line(manifest.id.as_str(), 200),
            manifest.version,
            visible_line(publisher, 500)
        );
    }
    if lines.contains("# choose") {
        text.push_str(
            "# A line with `# choose` waits for your decision: until then it gives nothing.\n",
        );
    }
    for remark in &remarks {
        let _ = writeln!(text, "# {}", visible_line(remark, 1000));
    }
    if lines.is_empty() {
        text.push_str("# Nothing is missing.\n");
    } else {
        let _ = writeln!(text, "\n{}", visible(&lines, LONGEST).trim_end());
    }
    output.line(text.trim_end())?;
    output.note(format!("the policy's file is {}", granted.place.display()));
    Ok(Exit::Fine)
}

/// What the lines leave to a person, call by call.
fn remarks(bundles: &Bundles, policy: &Policy, tool: Option<&str>, lines: &str) -> Vec<String> {
    let Ok(Ok(after)) = Policy::from_toml(lines).map(|more| policy.clone().layer(more)) else {
        return Vec::new();
    };
    let asking = explanations(bundles, &after, tool).into_iter();
    asking
        .filter(|one| one.outcome == Outcome::Ask)
        .map(|one| {
            let reasons: Vec<String> = one.ask.iter().map(ToString::to_string).collect();
            let reasons = reasons.join("; ");
            let standing = if one.ask.iter().all(AskReason::can_be_preapproved) {
                ", unless its grant says `preapproved = true`"
            } else {
                ""
            };
            format!(
                "{}: a person is asked before each call{standing}: {reasons}.",
                one.tool
            )
        })
        .collect()
}
