//! `policy grant`: what `policy suggest` prints, added to the policy's file after a person has seen it and typed a yes.

use std::path::Path;

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_operator::lasting_changes::{LastingChange, LastingChanges, TextEdit};
use toolward_policy::{Choices, OpenChoice, Policy};

use super::Subject;
use super::choices::{self, ChoiceFlags};
use crate::change;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Failure, Kind, OperatorCode, Result};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tools, each an id or id@major
    #[arg(required = true)]
    tools: Vec<String>,

    /// Let their calls run without asking a person. Not for a tool of risk 3, or one
    /// that always asks
    #[arg(long)]
    preapprove: bool,

    /// Only for this driver, which the lines bind to the tools where it is another
    /// publisher's
    #[arg(long, value_name = "ID")]
    driver: Option<String>,

    #[command(flatten)]
    choices: ChoiceFlags,

    #[command(flatten)]
    subject: Subject,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
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
    // The rest of the file, too, has to be valid with them.
    let folder = place.parent().unwrap_or(Path::new("/"));
    Policy::from_toml_in(&after, &place.display().to_string(), folder)
        .map_err(|error| Failure::with_code(Kind::Failed, error.code(), &error).in_file(&place))?;
    let by = arguments
        .driver
        .iter()
        .map(|driver| format!(" by {driver}"));
    let by: String = by.collect();
    let what = format!("granted what {}{by} declares", arguments.tools.join(", "));
    let change = LastingChange::new("policy grant", what, &place);
    let changes = LastingChanges::of(environment)?;
    let made = change::make(edit, &after, change, &changes, output);
    made.map_err(|failure| match has_terminal() {
        true => failure,
        // Nobody was asked: the lines are for whoever adds them.
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
    Failure::new(Kind::Denied, OperatorCode::ChoiceOpen, message).hint(format!(
        "choose it: {}",
        visible_line(&hints.join(", "), 1000)
    ))
}
