//! `policy list`: what became of each tool of a bundle, and of each prompt and
//! resource, on one line.

use clap::Args;
use serde_json::json;
use toolward_bundle::text::visible_line;
use toolward_policy::{Explanation, Outcome, Rejection, ToolRoutes};

use super::{Subject, documents, nothing, routes};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
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

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let (bundles, granted) = arguments.subject.read(environment, output)?;
    let machine = arguments.subject.machine(&granted, environment)?;
    let tools = routes(&bundles, &granted.policy, &machine, None)?;
    let documents = documents::all(&bundles, &granted.policy);
    let refused = arguments.subject.source.refused(environment, output)?;
    if tools.is_empty() && documents.is_empty() && refused.is_empty() {
        return Err(nothing(&bundles, None));
    }
    for tool in &tools {
        let served = tool.routes.iter();
        let served = served.map(|route| Row::of(&route.explain(&granted.policy, &machine)));
        for row in served.chain(unserved(tool)) {
            match output.json() {
                true => output.value(&row.json())?,
                false => output.line(row.line())?,
            }
        }
    }
    for (tool, one, failure) in &refused {
        let (id, publisher) = (&one.id, &one.publisher);
        let reason = format!("{} ({})", failure.message, failure.code);
        if output.json() {
            output.value(&json!({
                "tool": tool,
                "driver": null,
                "publisher": publisher,
                "state": "refused",
                "bundle": id,
                "code": failure.code,
                "reasons": [reason],
            }))?;
            continue;
        }
        let reason = visible_line(&reason, MAX_REASONS_CHARS);
        output.line(format!("REFUSED  {tool} of {id}: {reason}"))?;
    }
    for document in &documents {
        match output.json() {
            true => output.value(&document.json())?,
            false => output.line(document.line())?,
        }
    }
    Ok(Exit::Fine)
}

/// What became of one tool with one driver, or of a tool that no driver serves.
struct Row {
    tool: String,
    publisher: String,
    /// The driver's id and publisher.
    driver: Option<(String, String)>,
    state: &'static str,
    reasons: Vec<String>,
}

impl Row {
    fn of(one: &Explanation) -> Self {
        Self {
            tool: one.tool.clone(),
            publisher: one.publisher.clone(),
            driver: Some((one.driver.clone(), one.driver_publisher.clone())),
            state: match one.outcome {
                Outcome::Allow => "allowed",
                Outcome::Ask => "asks",
                Outcome::Deny => "blocked",
            },
            reasons: reasons(one),
        }
    }

    fn json(&self) -> serde_json::Value {
        let driver = self.driver.as_ref();
        json!({
            "tool": self.tool,
            "driver": driver.map(|(id, _)| id),
            "publisher": self.publisher,
            "driver_publisher": driver.map(|(_, publisher)| publisher),
            "state": self.state,
            "reasons": self.reasons,
        })
    }

    fn line(&self) -> String {
        let word = match self.state {
            "blocked" => "BLOCKED",
            other => other,
        };
        let mut line = format!("{word:<7}  {}", self.tool);
        if let Some((id, publisher)) = &self.driver {
            line.push_str(&format!(" with {id}"));
            if *publisher != self.publisher {
                let publisher = visible_line(publisher, MAX_PUBLISHER_CHARS);
                line.push_str(&format!(" by ANOTHER publisher, {publisher}"));
            }
        }
        if !self.reasons.is_empty() {
            let reasons = visible_line(&self.reasons.join("; "), MAX_REASONS_CHARS);
            line.push_str(&format!(": {reasons}"));
        }
        line
    }
}

/// The drivers that name a tool and may not serve it; and the tool itself, where
/// no driver serves it.
fn unserved(tool: &ToolRoutes<'_>) -> impl Iterator<Item = Row> {
    let row = move |driver, state, reasons| Row {
        tool: tool.contract.tool.major_id(),
        publisher: tool.contract.publisher.to_owned(),
        driver,
        state,
        reasons,
    };
    let rejected = tool.rejected.iter().map(move |rejected| {
        let implementation = &rejected.implementation;
        let id = implementation.driver.id.to_string();
        // What the operator did not bind blocks nothing.
        let state = match rejected.reasons.contains(&Rejection::NotBound) {
            true => "unbound",
            false => "blocked",
        };
        let reasons = rejected.reasons.iter().map(ToString::to_string).collect();
        row(
            Some((id, implementation.publisher.to_owned())),
            state,
            reasons,
        )
    });
    let none = tool.routes.is_empty().then(|| {
        let reason = "no driver serves it".to_owned();
        row(None, "blocked", vec![reason])
    });
    none.into_iter().chain(rejected)
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
    let context = one
        .context
        .iter()
        .map(|lack| format!("context: {}", lack.why));
    asked.chain(denied).chain(missing).chain(context).collect()
}
