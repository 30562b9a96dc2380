//! `show --drivers`: which driver would serve a call of the tool, and why the others would not.

use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_operator::policy_review::{
    DriverCandidate, PolicyReview, RejectedDriver, ToolCandidates,
};

use super::Shown;
use crate::failure::Result;

/// Longest cell of the table, in characters.
const MAX_CELL_CHARS: usize = 200;

/// Longest reasons of one driver, in characters.
const MAX_REASONS_CHARS: usize = 1000;

/// The widest that a column is made for the sake of alignment, in characters.
const MAX_COLUMN_CHARS: usize = 40;

/// Driver, publisher, kind, cost; what follows them is of any width.
const COLUMNS: usize = 4;

pub(super) fn of(review: &PolicyReview, name: &str) -> Result<Option<Shown>> {
    let tools = review.candidates(name)?;
    let lines: Vec<String> = tools.iter().map(shown).collect();
    let value = json!({ "ok": true, "policies": review.granted.files, "tools": tools });
    Ok((!tools.is_empty()).then(|| Shown::new(value, lines.join("\n\n"))))
}

fn shown(tool: &ToolCandidates) -> String {
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
    let mut decision = match one.reasons.first() {
        None => one.decision.to_owned(),
        Some(first) => {
            let first = visible_line(first, MAX_REASONS_CHARS);
            format!("{}: {first}", one.decision)
        }
    };
    if one.takes_over {
        decision.push_str("; takes over where another fails");
    }
    if !one.without.is_empty() {
        let without = visible_line(&one.without.join(", "), MAX_REASONS_CHARS);
        decision.push_str(&format!("; without {without}"));
    }
    if !one.except.is_empty() {
        let except = visible_line(&one.except.join("; "), MAX_REASONS_CHARS);
        decision.push_str(&format!("; not for {except}"));
    }
    let cost = cell(&one.cost.to_string());
    let (driver, kind) = (cell(&one.driver), cell(&one.kind));
    [driver, cell(&one.publisher), kind, cost, decision]
}

fn rejected(one: &RejectedDriver) -> [String; COLUMNS + 1] {
    let reasons: Vec<&str> = one.reasons.iter().map(|one| one.text.as_str()).collect();
    let reasons = visible_line(&reasons.join("; "), MAX_REASONS_CHARS);
    let (driver, kind) = (cell(&one.driver), cell(&one.kind));
    let decision = format!("rejected: {reasons}");
    [driver, cell(&one.publisher), kind, "-".to_owned(), decision]
}

fn cell(text: &str) -> String {
    visible_line(text, MAX_CELL_CHARS)
}

/// The rows as lines, with their columns below each other.
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
