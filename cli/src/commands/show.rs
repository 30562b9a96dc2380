//! `show`: one tool, from its inputs to what it may do here, or one section about it. Nothing is called.

mod drivers;
mod forms;
mod policy;

use clap::Args;
use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_bundle::inspect::InputView;
use toolward_bundle::text::{visible, visible_line};
use toolward_operator::bundles::{BundleSource, SourceKind};
use toolward_operator::granted::PolicyFiles;
use toolward_operator::policy_review::{PolicyReview, ToolStatus};
use toolward_store::InstalledBundle;

use super::policy::Subject;
use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;
use crate::wrap::wrapped;

/// Longest text of a bundle's that is shown on a line, in characters.
const MAX_LINE_CHARS: usize = 1000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A tool's id, or id@major
    ///
    /// With --policy also a prompt's id, a file's path below resources/, or a bundle's id for all its prompts and
    /// resources.
    #[arg(value_name = "TOOL")]
    name: String,

    #[command(flatten)]
    section: Section,

    #[command(flatten)]
    subject: Subject,
}

/// What is shown in place of the overview.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Section {
    /// Show which driver serves it, and why the others do not
    #[arg(long)]
    drivers: bool,

    /// Show what it declares, the rules about it, what it gets, and why
    #[arg(long)]
    policy: bool,

    /// Show it in the form of another specification
    #[arg(long = "as", value_enum, value_name = "FORM")]
    form: Option<forms::Form>,
}

/// A section, as JSON and for people.
struct Shown {
    value: Value,
    lines: String,
    note: Option<String>,
}

impl Shown {
    fn new(value: Value, lines: String) -> Self {
        Self {
            value,
            lines,
            note: None,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let (subject, section, name) = (&arguments.subject, &arguments.section, &arguments.name);
    let review = subject.review(environment, output)?;
    let shown = match section {
        Section { drivers: true, .. } => drivers::of(&review, name)?,
        Section { policy: true, .. } => policy::of(&review, name)?,
        Section {
            form: Some(form), ..
        } => forms::of(*form, &review, name, subject, environment)?,
        _ => overview(&review, name, &subject.source, environment)?,
    };
    let Some(shown) = shown else {
        if let Some(withheld) = subject.withheld(&review, name, environment, output)? {
            return Err(withheld);
        }
        let failure = review.missing(Some(name));
        return Err(match policy::known_documents(&review) {
            Some(hint) if section.policy => failure.hint(hint),
            _ => failure,
        });
    };
    output.result(&shown.value, shown.lines)?;
    shown.note.iter().for_each(|note| output.note(note));
    Ok(())
}

fn overview(
    review: &PolicyReview,
    name: &str,
    source: &BundleSource,
    environment: &Environment,
) -> Result<Option<Shown>> {
    let found = review.tools_named(name, &installed(source, environment)?)?;
    let about: Vec<String> = found.iter().map(lines).collect();
    let value = json!({ "ok": true, "tools": found });
    Ok((!found.is_empty()).then(|| Shown::new(value, about.join("\n\n"))))
}

/// The lines about a tool of bundles that were read already; `None` if they have none of this name.
pub(super) fn about(
    name: &str,
    contents: &[Content],
    source: &BundleSource,
    policies: &PolicyFiles,
    environment: &Environment,
) -> Result<Option<String>> {
    let review = PolicyReview::of(contents.to_vec(), &source.trust, policies, environment)?;
    let found = review.tools_named(name, &installed(source, environment)?)?;
    Ok(found.first().map(lines))
}

/// What the store knows of the bundles that the tools come from.
fn installed(source: &BundleSource, environment: &Environment) -> Result<Vec<InstalledBundle>> {
    match (source.kind(), source.store.existing(environment)?) {
        (SourceKind::Installed, Some(store)) => Ok(store.list()?),
        _ => Ok(Vec::new()),
    }
}

fn lines(tool: &ToolStatus) -> String {
    let contract = &tool.contract;
    let mut lines = vec![
        format!("{} {}", line(&tool.tool), contract.version),
        format!(
            "  {}",
            wrapped(&visible(&contract.description, MAX_LINE_CHARS), "\n  ")
        ),
    ];
    let mut row = |name: &str, text: String| lines.push(format!("  {name:<10} {text}"));
    row("publisher", line(&tool.publisher));
    let state = match tool.state {
        "blocked" => "BLOCKED",
        state => state,
    };
    row(
        "state",
        match tool.reasons.as_slice() {
            [] => state.to_owned(),
            reasons => format!("{state}: {}", line(&reasons.join("; "))),
        },
    );
    fields("inputs", &contract.inputs, &mut row);
    fields("outputs", &contract.outputs, &mut row);
    row("declares", list(&contract.declares));
    row("grants", list(&tool.grants));
    if !tool.without.is_empty() {
        row("not given", list(&tool.without));
    }
    row("approval", line(&contract.approval));
    row("risk", format!("{} of 3", contract.risk_level));
    row("timeout", format!("{} ms", contract.timeout_ms));
    row("cost", contract.cost_class.to_string());
    for (name, value) in &contract.budget {
        row(
            "budget",
            line(&format!("{name} {value}, which nothing counts")),
        );
    }
    if let (Some(driver), Some(publisher)) = (&tool.driver, &tool.driver_publisher) {
        let other = match *publisher == tool.publisher {
            true => String::new(),
            false => format!(" by ANOTHER publisher, {}", line(publisher)),
        };
        row("driver", format!("{}{other}", line(driver)));
    }
    row(
        "bundle",
        format!(
            "{} {} (sequence {})",
            line(&tool.bundle),
            tool.bundle_version,
            tool.sequence
        ),
    );
    if let Some(source) = &tool.source {
        row("source", line(source));
    }
    if let Some(installed) = &tool.installed {
        row("installed", installed.clone());
    }
    row(
        "verified",
        match &tool.verified {
            Some(verified) => verified.clone(),
            None => "never: under work, unsigned".to_owned(),
        },
    );
    lines.join("\n")
}

/// The properties of an input or output, one on a line.
fn fields(name: &str, fields: &[InputView], row: &mut impl FnMut(&str, String)) {
    if fields.is_empty() {
        row(name, "nothing".to_owned());
    }
    for (number, field) in fields.iter().enumerate() {
        let kind = field.kind.as_deref().unwrap_or("any");
        let needed = if field.required { ", required" } else { "" };
        let name = if number == 0 { name } else { "" };
        row(
            name,
            format!("{}: {}{needed}", line(&field.name), line(kind)),
        );
    }
}

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

fn list(items: &[String]) -> String {
    match items {
        [] => "nothing".to_owned(),
        items => line(&items.join(", ")),
    }
}
