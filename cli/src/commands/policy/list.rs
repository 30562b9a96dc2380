//! `policy list`: what became of each tool of a bundle, and of each prompt and
//! resource, on one line; and which tools a rule about an action covers.

use std::fmt::Write as _;

use toolward_mcp::documents::{DocumentVerdict, verdicts};
use toolward_operator::bundles::SourceKind;
use toolward_operator::policy_review::{PolicyReview, ToolRow};

use super::Subject;
use crate::prelude::*;

/// Longest name or reasons, in characters.
const MAX_SHOWN_CHARS: usize = 1000;
/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let subject = &arguments.subject;
    let review = subject.review(environment, output)?;
    let rows = review.rows()?;
    let documents = documents(&review);
    let refused = subject.source.refused(environment, output)?;
    if rows.is_empty() && documents.is_empty() && refused.is_empty() {
        return Err(review.missing(None));
    }
    for row in &rows {
        output.result(row, tool_line(row))?;
    }
    for (tool, one, failure) in &refused {
        let (id, publisher) = (&one.id, &one.publisher);
        let reason = format!("{} ({})", failure.message, failure.code);
        let value = json!({
            "tool": tool,
            "driver": null,
            "publisher": publisher,
            "state": "refused",
            "bundle": id,
            "code": failure.code,
            "reasons": [reason],
        });
        let reason = shown(&reason);
        output.result(&value, format_args!("REFUSED  {tool} of {id}: {reason}"))?;
    }
    // A grant may be about other bundles than the named ones.
    if subject.source.kind() == SourceKind::Installed && refused.is_empty() {
        for unused in review.unused_rules() {
            output.warning(shown(&unused));
        }
    }
    for rule in review.action_rules() {
        let tools = match rule.tools.as_slice() {
            [] => "no tool".to_owned(),
            tools => shown(&tools.join(", ")),
        };
        output.result(&rule, format_args!("{} covers {tools}", shown(&rule.rule)))?;
    }
    for document in &documents {
        output.result(&document_json(document), document_line(document))?;
    }
    Ok(())
}

fn shown(text: &str) -> String {
    visible_line(text, MAX_SHOWN_CHARS)
}

fn tool_line(row: &ToolRow) -> String {
    let word = match row.state {
        "blocked" => "BLOCKED",
        other => other,
    };
    let mut line = format!("{word:<7}  {}", row.tool);
    if let (Some(id), Some(publisher)) = (&row.driver, &row.driver_publisher) {
        line.push_str(&format!(" with {id}"));
        if *publisher != row.publisher {
            let publisher = visible_line(publisher, MAX_PUBLISHER_CHARS);
            line.push_str(&format!(" by ANOTHER publisher, {publisher}"));
        }
    }
    if !row.reasons.is_empty() {
        line.push_str(&format!(": {}", shown(&row.reasons.join("; "))));
    }
    if !row.without.is_empty() {
        line.push_str(&format!(" (without {})", shown(&row.without.join(", "))));
    }
    line
}

/// Which prompts and resources MCP clients get to see, and why not the others. The server decides by the same verdicts.
pub(in crate::commands) fn documents(review: &PolicyReview) -> Vec<DocumentVerdict<'_>> {
    let bundles = review.bundles.iter();
    let verdicts = bundles.flat_map(|(content, _)| verdicts(content, &review.granted.policy));
    verdicts.collect()
}

pub(in crate::commands) fn document_json(verdict: &DocumentVerdict<'_>) -> Value {
    json!({
        "document": verdict.id,
        "kind": verdict.kind.to_string(),
        "bundle": verdict.content.manifest.id,
        "publisher": verdict.content.origin.publisher(),
        "state": if verdict.hidden.is_none() { "served" } else { "hidden" },
        "name": verdict.name,
        "asks_for": verdict.asks,
        "reasons": verdict.hidden.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// One line, after a word for what becomes of it.
pub(in crate::commands) fn document_line(verdict: &DocumentVerdict<'_>) -> String {
    let word = match verdict.hidden {
        None => "served ",
        Some(_) => "HIDDEN ",
    };
    let (kind, id) = (verdict.kind, shown(verdict.id));
    let bundle = shown(verdict.content.manifest.id.as_str());
    let mut line = format!("{word}  {kind} {id} of {bundle}");
    match &verdict.hidden {
        Some(why) => {
            let _ = write!(line, ": {}", shown(&why.to_string()));
        }
        None if verdict.name != verdict.id => {
            let _ = write!(line, " as {}", shown(&verdict.name));
        }
        None => {}
    }
    if let Some(asks) = &verdict.asks {
        let _ = write!(line, "; it asks to go by {}", shown(asks));
    }
    line
}
