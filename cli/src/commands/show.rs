//! `show`: shows one tool, from its inputs to its permissions here, or one section about it. No
//! tool is called.

mod sections;

use toolward_bundle::inspect::InputView;
use toolward_operator::bundles::SourceKind;
use toolward_operator::policy_review::{
    DriverCandidate, PolicyReview, RejectedDriver, ToolCandidates, ToolStatus,
};
use toolward_store::InstalledBundle;

use super::policy::Subject;
use crate::prelude::*;

/// Longest text of a bundle that is shown on a line, in characters.
const MAX_LINE_CHARS: usize = 1000;

/// Longest cell of the table, in characters.
const MAX_CELL_CHARS: usize = 200;

/// The widest column, in characters. Longer cells are not aligned.
const MAX_COLUMN_CHARS: usize = 40;

/// The aligned columns: driver, publisher, kind, cost. The text after them has any width.
const COLUMNS: usize = 4;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A tool's id, or id@major
    ///
    /// With --policy also a prompt's id, a file's path below resources/, or a bundle's id for all
    /// its prompts and resources.
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
    /// Show which driver serves the tool, and why the others do not
    #[arg(long)]
    drivers: bool,

    /// Show what the tool declares, the rules about it, what it is granted, and why
    #[arg(long)]
    policy: bool,

    /// Show the tool in the form of another specification
    #[arg(long = "as", value_enum, value_name = "FORM")]
    form: Option<sections::ToolForm>,
}

/// A section, as JSON and for people.
struct Shown {
    value: Value,
    lines: String,
    note: Option<String>,
}

impl Shown {
    fn new(value: Value, lines: String) -> Self {
        let note = None;
        Self { value, lines, note }
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result {
    let (subject, section, name) = (&arguments.subject, &arguments.section, &arguments.name);
    let review = subject.review(context)?;
    let shown = match section {
        Section { drivers: true, .. } => drivers(&review, name)?,
        Section { policy: true, .. } => sections::policy(&review, name)?,
        Section {
            form: Some(form), ..
        } => sections::form(*form, &review, name, subject, context)?,
        _ => overview(&review, name, &subject.source, context)?,
    };
    let Some(shown) = shown else {
        if let Some(withheld) = subject.withheld(&review, name, context)? {
            return Err(withheld);
        }
        let failure = review.missing(Some(name));
        return Err(match sections::known_documents(&review) {
            Some(hint) if section.policy => failure.hint(hint),
            _ => failure,
        });
    };
    context.result(&shown.value, shown.lines)?;
    shown.note.iter().for_each(|note| context.note(note));
    Ok(())
}

fn overview(
    review: &PolicyReview,
    name: &str,
    source: &BundleSource,
    context: &Context,
) -> Result<Option<Shown>> {
    let found = review.tools_named(name, &installed(source, context)?)?;
    let about: Vec<String> = found.iter().map(lines).collect();
    let value = json!({ "ok": true, "tools": found });
    Ok((!found.is_empty()).then(|| Shown::new(value, about.join("\n\n"))))
}

/// Returns the lines about a tool of bundles that were read already; `None` if no tool has this
/// name.
pub(super) fn about(
    name: &str,
    contents: &[Content],
    source: &BundleSource,
    policies: &PolicyFiles,
    context: &Context,
) -> Result<Option<String>> {
    let review = PolicyReview::of(contents.to_vec(), &source.trust, policies, context)?;
    let found = review.tools_named(name, &installed(source, context)?)?;
    Ok(found.first().map(lines))
}

/// Returns the store's entries of all installed bundles, if the tools come from them.
fn installed(source: &BundleSource, context: &Context) -> Result<Vec<InstalledBundle>> {
    match (source.kind(), source.store.existing(context)?) {
        (SourceKind::Installed, Some(store)) => Ok(store.list()?),
        _ => Ok(Vec::new()),
    }
}

fn lines(tool: &ToolStatus) -> String {
    let contract = &tool.contract;
    let mut lines = TextLines::new(format_args!("{} {}", line(&tool.tool), contract.version));
    let description = visible(&contract.description, MAX_LINE_CHARS);
    lines.add(format_args!("  {}", wrapped(&description, "\n  ")));
    lines.row("publisher", line(&tool.publisher));
    let state = state_word(tool.state);
    match tool.reasons.as_slice() {
        [] => lines.row("state", state),
        reasons => {
            let reasons = line(&reasons.join("; "));
            lines.row("state", format_args!("{state}: {reasons}"));
        }
    }
    fields(&mut lines, "inputs", &contract.inputs);
    fields(&mut lines, "outputs", &contract.outputs);
    lines.row("declares", listed(&contract.declares, MAX_LINE_CHARS));
    lines.row("grants", listed(&tool.grants, MAX_LINE_CHARS));
    if !tool.without.is_empty() {
        lines.row("not given", listed(&tool.without, MAX_LINE_CHARS));
    }
    lines.row("approval", line(&contract.approval));
    lines.row("risk", format_args!("{} of 3", contract.risk_level));
    lines.row("timeout", format_args!("{} ms", contract.timeout_ms));
    lines.row("cost", contract.cost_class);
    for (name, value) in &contract.budget {
        let budget = format!("{name} {value}, which nothing counts");
        lines.row("budget", line(&budget));
    }
    if let (Some(driver), Some(publisher)) = (&tool.driver, &tool.driver_publisher) {
        let other = match *publisher == tool.publisher {
            true => String::new(),
            false => format!(" by ANOTHER publisher, {}", line(publisher)),
        };
        lines.row("driver", format_args!("{}{other}", line(driver)));
    }
    let (bundle, version, sequence) = (line(&tool.bundle), &tool.bundle_version, tool.sequence);
    let release = format!("{bundle} {version} (sequence {sequence})");
    lines.row("bundle", release);
    if let Some(source) = &tool.source {
        lines.row("source", line(source));
    }
    if let Some(installed) = &tool.installed {
        lines.row("installed", installed);
    }
    let verified = tool.verified.as_deref();
    let verified = verified.unwrap_or("never: under work, unsigned");
    lines.row("verified", verified);
    lines.to_string()
}

/// The properties of an input or output, one on a line.
fn fields(lines: &mut TextLines, name: &str, fields: &[InputView]) {
    if fields.is_empty() {
        lines.row(name, "nothing");
    }
    for (number, field) in fields.iter().enumerate() {
        let kind = line(field.kind.as_deref().unwrap_or("any"));
        let needed = if field.required { ", required" } else { "" };
        let name = if number == 0 { name } else { "" };
        lines.row(name, format_args!("{}: {kind}{needed}", line(&field.name)));
    }
}

fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

/// Shows which driver would serve a call to the tool, and why the others would not.
fn drivers(review: &PolicyReview, name: &str) -> Result<Option<Shown>> {
    let tools = review.candidates(name)?;
    let lines: Vec<String> = tools.iter().map(table).collect();
    let value = json!({ "ok": true, "policies": review.granted.files, "tools": tools });
    Ok((!tools.is_empty()).then(|| Shown::new(value, lines.join("\n\n"))))
}

fn table(tool: &ToolCandidates) -> String {
    let (id, publisher) = (&tool.tool, cell(&tool.publisher));
    let mut lines = vec![match (&tool.serves, tool.candidates.as_slice()) {
        (Some(driver), _) => format!("{id} of {publisher}: {driver} serves it"),
        (None, []) if tool.only_region => {
            format!(
                "{id} of {publisher}: no driver serves it in the region that [resolve] asks for"
            )
        }
        (None, []) => format!("{id} of {publisher}: no driver serves it"),
        (None, _) => format!("{id} of {publisher}: blocked, by every driver that may serve it"),
    }];
    let mut rows = Vec::new();
    if !tool.candidates.is_empty() || !tool.rejected.is_empty() {
        let head = ["driver", "publisher", "kind", "cost", "decision"];
        rows.push(head.map(str::to_owned));
    }
    rows.extend(tool.candidates.iter().map(row));
    rows.extend(tool.rejected.iter().map(rejected));
    lines.extend(aligned(&rows));
    lines.join("\n")
}

fn row(one: &DriverCandidate) -> [String; COLUMNS + 1] {
    let mut decision = one.decision.to_owned();
    if let Some(first) = one.reasons.first() {
        decision.push_str(&format!(": {}", line(first)));
    }
    if one.takes_over {
        decision.push_str("; takes over where another fails");
    }
    if !one.without.is_empty() {
        let without = line(&one.without.join(", "));
        decision.push_str(&format!("; without {without}"));
    }
    if !one.except.is_empty() {
        let except = line(&one.except.join("; "));
        decision.push_str(&format!("; not for {except}"));
    }
    let cost = cell(&one.cost.to_string());
    let (driver, kind) = (cell(&one.driver), cell(&one.kind));
    [driver, cell(&one.publisher), kind, cost, decision]
}

fn rejected(one: &RejectedDriver) -> [String; COLUMNS + 1] {
    let reasons: Vec<&str> = one.reasons.iter().map(|one| one.text.as_str()).collect();
    let decision = format!("rejected: {}", line(&reasons.join("; ")));
    let (driver, kind) = (cell(&one.driver), cell(&one.kind));
    [driver, cell(&one.publisher), kind, "-".to_owned(), decision]
}

fn cell(text: &str) -> String {
    visible_line(text, MAX_CELL_CHARS)
}

/// Formats the rows as lines with aligned columns.
fn aligned(rows: &[[String; COLUMNS + 1]]) -> Vec<String> {
    let mut widths = [0_usize; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count().min(MAX_COLUMN_CHARS));
        }
    }
    let line = |row: &[String; COLUMNS + 1]| {
        let cells = row.iter().zip(widths);
        let cells = cells.map(|(cell, width)| format!("  {cell:<width$}"));
        let cells: Vec<String> = cells.collect();
        let last = row.last().map_or("", String::as_str);
        format!("{}  {last}", cells.concat())
    };
    rows.iter().map(line).collect()
}
