//! `policy suggest`: the fewest lines that let a bundle's tools run, and its documents be seen, for the operator to read
//! and to add. `policy grant`: adds them to the policy's file, once a person has seen them and typed a yes.

use std::fmt::Write as _;

use toolward_operator::lasting_changes::{LastingChange, LastingChanges, TextEdit};
use toolward_policy::{Choices, OpenChoice, Policy};

use super::Subject;
use super::choices::{self, ChoiceFlags};
use super::list::documents;
use crate::approve;
use crate::prelude::*;

/// Longest suggestion, in characters: it is of use only whole.
const MAX_SUGGESTION_CHARS: usize = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Suggest {
    /// Only for this tool
    tool: Option<String>,

    /// Only for this driver
    ///
    /// Lines that let a driver of another publisher carry a tool out are written for this driver
    /// only.
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn suggest(
    arguments: &Suggest,
    environment: &Environment,
    output: &mut Output,
) -> Result {
    let review = arguments.subject.review(environment, output)?;
    let tool = arguments.tool.as_deref();
    let driver = arguments.driver.as_deref();
    let documents = match (tool, driver) {
        (None, None) => documents(&review),
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
    let parts = [tools, documents]
        .into_iter()
        .filter(|part| !part.is_empty());
    let lines = parts.collect::<Vec<_>>().join("\n");
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
        // A comment: the output is appended to a file unchanged.
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

#[derive(Debug, Args)]
pub(crate) struct GrantFlags {
    /// The tools, each an id or id@major
    #[arg(required = true)]
    tools: Vec<String>,

    /// Let their calls run without asking a person
    ///
    /// Not for a tool of risk 3 or with approval `always`.
    #[arg(long)]
    preapprove: bool,

    /// Only for this driver
    ///
    /// The lines bind it to the tools if it is another publisher's.
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    choices: ChoiceFlags,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn grant(
    arguments: &GrantFlags,
    environment: &Environment,
    output: &mut Output,
) -> Result {
    let review = arguments.subject.review(environment, output)?;
    for tool in &arguments.tools {
        let subject = &arguments.subject;
        if let Some(failure) = subject.withheld(&review, tool, environment, output)? {
            return Err(failure);
        }
    }
    let mut choices = arguments.choices.choices()?;
    let with = |choices: &Choices| {
        let driver = arguments.driver.as_deref();
        review.grant(&arguments.tools, driver, arguments.preapprove, choices)
    };
    let mut grant = with(&choices)?;
    if !grant.open.is_empty() && has_terminal() {
        choices::ask(&grant.open, &mut choices)?;
        grant = with(&choices)?;
    }
    let place = std::path::absolute(&review.granted.place)
        .map_err(|error| Failure::unwritable(&review.granted.place, error))?;
    for remark in &grant.remarks {
        output.note(format!("note: {}", visible_line(remark, 1000)));
    }
    if grant.lines.is_empty() {
        let value =
            json!({ "ok": true, "state": "unchanged", "file": place.display().to_string() });
        return output.result(&value, "nothing is missing");
    }
    if !grant.open.is_empty() {
        let failure = open(&grant.open).lines_for(&place, grant.lines);
        return Err(failure.or_only(grant.narrower.unwrap_or_default()));
    }
    let edit = TextEdit::of(&place)?;
    let after = edit.appended(&grant.lines);
    // The rest of the file, too, must be valid with them.
    let folder = place.parent().unwrap_or(Path::new("/"));
    Policy::from_toml_in(&after, &place.display().to_string(), folder)
        .map_err(|error| Failure::with_code(Kind::Failed, error.code(), &error).in_file(&place))?;
    let driver = arguments.driver.iter();
    let by: String = driver.map(|driver| format!(" by {driver}")).collect();
    let what = format!("granted what {}{by} declares", arguments.tools.join(", "));
    let change = LastingChange::new("policy grant", what, &place);
    let changes = LastingChanges::of(environment)?;
    let made = approve::lasting_change(edit, &after, change, &changes, output);
    made.map_err(|failure| match has_terminal() {
        true => failure,
        // No person was asked: the lines are for the operator to add.
        false => (failure.lines_for(&place, grant.lines.clone()))
            .or_only(grant.narrower.clone().unwrap_or_default()),
    })?;
    Ok(())
}

/// The error for lines in which something is not chosen: no file gets them.
fn open(open: &[OpenChoice]) -> Failure {
    let hints = open.iter().map(|one| match one {
        OpenChoice::Workspace(path) => format!("--workspace {path}=DIRECTORY"),
        OpenChoice::Secret {
            publisher, slug, ..
        } => {
            format!("--secret {publisher}:{slug}=env:VARIABLE@https://HOST")
        }
        OpenChoice::Service { name, .. } => format!("--host {name}=HOST"),
        _ => "write the lines below yourself, with what `# choose` marks".to_owned(),
    });
    let hints: Vec<String> = hints.collect();
    let message = "nothing was written: these lines leave something to choose";
    let hints = visible_line(&hints.join(", "), 1000);
    Failure::denied(OperatorCode::ChoiceOpen, message).hint(format!("choose it: {hints}"))
}
