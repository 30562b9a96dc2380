//! `policy list`: what became of each tool of a bundle, and of each prompt and
//! resource, on one line; and which tools a rule about an action covers.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_operator::bundles::SourceKind;
use toolward_operator::policy_review::ToolRow;

use super::{Subject, documents};
use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

/// Longest reasons, in characters.
const MAX_REASONS_CHARS: usize = 1000;
/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let review = arguments.subject.review(environment, output)?;
    let rows = review.rows()?;
    let documents = documents::all(&review);
    let refused = arguments.subject.source.refused(environment, output)?;
    if rows.is_empty() && documents.is_empty() && refused.is_empty() {
        return Err(review.missing(None));
    }
    for row in &rows {
        output.result(row, line(row))?;
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
        let reason = visible_line(&reason, MAX_REASONS_CHARS);
        output.result(&value, format_args!("REFUSED  {tool} of {id}: {reason}"))?;
    }
    if subject_is_installed(arguments) && refused.is_empty() {
        for unused in review.unused_rules() {
            output.warning(visible_line(&unused, MAX_REASONS_CHARS));
        }
    }
    for rule in review.action_rules() {
        let tools = match rule.tools.as_slice() {
            [] => "no tool".to_owned(),
            tools => visible_line(&tools.join(", "), MAX_REASONS_CHARS),
        };
        let line = format!(
            "{} covers {tools}",
            visible_line(&rule.rule, MAX_REASONS_CHARS)
        );
        output.result(&rule, line)?;
    }
    for document in &documents {
        output.result(&documents::json(document), documents::line(document))?;
    }
    Ok(())
}

/// Whether all installed bundles are listed: a grant may be about others than the named ones.
fn subject_is_installed(arguments: &Arguments) -> bool {
    arguments.subject.source.kind() == SourceKind::Installed
}

fn line(row: &ToolRow) -> String {
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
        let reasons = visible_line(&row.reasons.join("; "), MAX_REASONS_CHARS);
        line.push_str(&format!(": {reasons}"));
    }
    if !row.without.is_empty() {
        let without = visible_line(&row.without.join(", "), MAX_REASONS_CHARS);
        line.push_str(&format!(" (without {without})"));
    }
    line
}
