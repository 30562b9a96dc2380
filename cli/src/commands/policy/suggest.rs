//! `policy suggest`: the fewest lines that let a bundle's tools run, and its
//! documents be seen, for the operator to read, and to add as far as they agree.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;
use toolward_bundle::text::{visible, visible_line};

use super::{Subject, documents};
use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

/// Longest suggestion, in characters: it is of use only whole.
const MAX_SUGGESTION_CHARS: usize = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only for this tool
    tool: Option<String>,

    /// Only for this driver. Lines that let a driver of another publisher carry a
    /// tool out are written for the one that is named here, and no other
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let review = arguments.subject.review(environment, output)?;
    let tool = arguments.tool.as_deref();
    let driver = arguments.driver.as_deref();
    let documents = match (tool, driver) {
        (None, None) => documents::all(&review),
        _ => Vec::new(),
    };
    let suggestion = review.suggest(tool, driver)?;
    if suggestion.is_none() && documents.is_empty() {
        return Err(review.missing(tool));
    }
    let suggestion = suggestion.unwrap_or_default();
    let (tools, remarks) = (suggestion.lines, suggestion.remarks);
    let narrower = suggestion.narrower;
    let documents = toolward_mcp::documents::suggest(&documents);
    let between = if tools.is_empty() || documents.is_empty() {
        ""
    } else {
        "\n"
    };
    let lines = tools + between + &documents;
    let place = &review.granted.place;
    let mut text = String::new();
    for (content, publisher) in &review.bundles {
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
        text.push_str("# No line is missing.\n");
    } else {
        let lines = visible(&lines, MAX_SUGGESTION_CHARS);
        let _ = writeln!(text, "\n{}", lines.trim_end());
    }
    if let Some(narrower) = &narrower {
        // A comment: the output is appended to a file as it is.
        text.push_str("\n# Or only this, with the hosts and workspaces that you choose:\n");
        for line in visible(narrower, MAX_SUGGESTION_CHARS).trim_end().lines() {
            let _ = writeln!(text, "# {line}");
        }
    }
    let value = json!({ "ok": true, "file": place.display().to_string(), "lines": lines, "narrower_lines": narrower, "remarks": remarks });
    output.result(&value, text.trim_end())?;
    output.note(format!("the policy's file is {}", place.display()));
    Ok(())
}
