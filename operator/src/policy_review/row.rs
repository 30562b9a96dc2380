//! The state of each tool with each driver, and the reasons.

use serde::Serialize;
use toolward_policy::{Explanation, Outcome, Rejection, ToolRoutes};

use super::PolicyReview;
use crate::error::Error;

/// The state of one tool with one driver, or of a tool without a driver.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The driver's id.
    pub driver: Option<String>,
    /// The tool's publisher.
    pub publisher: String,
    /// The driver's publisher.
    pub driver_publisher: Option<String>,
    /// `allowed`, `asks` or `blocked`; `unbound` for a driver of another publisher.
    pub state: &'static str,
    /// Why a person is asked, or why the driver does not serve the tool.
    pub reasons: Vec<String>,
    /// The declared hosts and workspaces that it is served without, because a rule says `partial`.
    pub without: Vec<String>,
}

impl PolicyReview {
    /// The state of each tool with each driver that implements it.
    ///
    /// # Errors
    /// The errors of [`PolicyReview::routes`].
    pub fn rows(&self) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        for tool in self.routes(None)? {
            let served = tool.routes.iter();
            let served = served.map(|route| self.explain(route));
            rows.extend(served.map(Row::of));
            rows.extend(unserved(&tool));
        }
        Ok(rows)
    }
}

impl Row {
    /// The row that says what becomes of calls of this tool: that of the first driver that
    /// serves it, else the first.
    pub fn of_tool<'r>(rows: &'r [Self], major_id: &str) -> Option<&'r Self> {
        let mut own = rows.iter().filter(|row| row.tool == major_id);
        let serves = |row: &&Self| matches!(row.state, "allowed" | "asks");
        own.clone().find(serves).or_else(|| own.next())
    }

    pub(super) fn of(one: Explanation) -> Self {
        Self {
            reasons: reasons(&one),
            without: one.without.iter().map(ToString::to_string).collect(),
            tool: one.tool,
            driver: Some(one.driver),
            publisher: one.publisher,
            driver_publisher: Some(one.driver_publisher),
            state: match one.outcome {
                Outcome::Allow => "allowed",
                Outcome::Ask => "asks",
                Outcome::Deny => "blocked",
            },
        }
    }
}

/// A row for a tool without a driver, and one for each driver that implements the tool
/// but may not serve it.
fn unserved(tool: &ToolRoutes<'_>) -> Vec<Row> {
    let none = Row {
        tool: tool.contract.tool.major_id(),
        driver: None,
        publisher: tool.contract.publisher.to_owned(),
        driver_publisher: None,
        state: "blocked",
        reasons: vec!["no driver serves it".to_owned()],
        without: Vec::new(),
    };
    let rejected = tool.rejected.iter().map(|rejected| Row {
        driver: Some(rejected.implementation.driver.id.to_string()),
        driver_publisher: Some(rejected.implementation.publisher.to_owned()),
        // A driver that the operator did not bind does not block the tool.
        state: match rejected.reasons.contains(&Rejection::NotBound) {
            true => "unbound",
            false => "blocked",
        },
        reasons: rejected.reasons.iter().map(ToString::to_string).collect(),
        ..none.clone()
    });
    let rejected: Vec<Row> = rejected.collect();
    let none = tool.routes.is_empty().then_some(none);
    none.into_iter().chain(rejected).collect()
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
    let program = one
        .program
        .as_ref()
        .and_then(|program| program.missing.as_ref());
    let program = program.map(|why| format!("program: {why}"));
    let secrets = one.secrets_missing.iter();
    let secrets = secrets.map(|slug| format!("the secret `{slug}` has no value"));
    let context = one.context.iter();
    let context = context.map(|lack| format!("context: {}", lack.why));
    asked
        .chain(denied)
        .chain(missing)
        .chain(secrets)
        .chain(program)
        .chain(context)
        .collect()
}
