//! The state of each tool with each driver and the reasons, a tool with its bundle, and the rules about actions.

use std::time::SystemTime;

use serde::Serialize;
use toolward_bundle::inspect::ToolView;
use toolward_policy::{ExplainedOutcome, Explanation, Rejection, ToolRoutes};
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;
use toolward_store::InstalledBundle;

use super::PolicyReview;
use crate::bundles::is_named;
use crate::error::Result;

/// The state of one tool with one driver, or of a tool without a driver.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolRow {
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
    /// The declared hosts and workspaces that it is served without, because of a rule with `partial`.
    pub without: Vec<String>,
}

impl PolicyReview {
    /// The state of each tool with each driver that implements it.
    ///
    /// # Errors
    /// The errors of [`PolicyReview::routes`].
    pub fn rows(&self) -> Result<Vec<ToolRow>> {
        let mut rows = Vec::new();
        for tool in self.routes(None)? {
            let served = tool.routes.iter().map(|route| self.explain(route));
            rows.extend(served.map(ToolRow::of));
            rows.extend(unserved(&tool));
        }
        Ok(rows)
    }
}

impl ToolRow {
    /// The row that decides on calls of this tool: the row of the first driver that serves it, else the first row.
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
                ExplainedOutcome::Allow => "allowed",
                ExplainedOutcome::Ask => "asks",
                ExplainedOutcome::Deny => "blocked",
            },
        }
    }
}

/// A row for a tool without a driver, and one for each driver that implements the tool
/// but may not serve it.
fn unserved(tool: &ToolRoutes<'_>) -> Vec<ToolRow> {
    let none = ToolRow {
        tool: tool.contract.tool.major_id(),
        driver: None,
        publisher: tool.contract.publisher.to_owned(),
        driver_publisher: None,
        state: "blocked",
        reasons: vec!["no driver serves it".to_owned()],
        without: Vec::new(),
    };
    let rejected = tool.rejected.iter().map(|rejected| ToolRow {
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
    let mut rows: Vec<ToolRow> = rejected.collect();
    if tool.routes.is_empty() {
        rows.insert(0, none);
    }
    rows
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
    let program = one.program.as_ref();
    let program =
        program.and_then(|program| Some(format!("program: {}", program.missing.as_ref()?)));
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

/// One tool. All text in it is its publisher's.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolStatus {
    /// `id@major`.
    pub tool: String,
    /// Its contract.
    #[serde(flatten)]
    pub contract: ToolView,
    /// Its publisher, as verified; `dev:<dir>` for a bundle under work.
    pub publisher: String,
    /// `allowed`, `asks` or `blocked`.
    pub state: &'static str,
    /// Why a person is asked, or why it is blocked.
    pub reasons: Vec<String>,
    /// What the sandbox gets for its declaration; empty if it is blocked.
    pub grants: Vec<String>,
    /// The declared hosts and workspaces that it is served without, because of a rule with `partial`.
    pub without: Vec<String>,
    /// The driver that serves it, or else the first that does not.
    pub driver: Option<String>,
    /// That driver's publisher.
    pub driver_publisher: Option<String>,
    /// The id of the bundle that brings it.
    pub bundle: String,
    /// The bundle's version.
    pub bundle_version: String,
    /// The bundle's sequence.
    pub sequence: u64,
    /// BLAKE3 of the bundle's manifest.
    pub digest: Digest,
    /// Where the bundle was installed from.
    pub source: Option<String>,
    /// When it was installed.
    pub installed: Option<String>,
    /// When its signatures and files were verified last: at this reading. `None` for a bundle under work.
    pub verified: Option<String>,
}

impl PolicyReview {
    /// The tools with this id, `id@major` or former name. `installed` is what the store knows of the bundles.
    ///
    /// # Errors
    /// The errors of [`PolicyReview::routes`].
    pub fn tools_named(
        &self,
        name: &str,
        installed: &[InstalledBundle],
    ) -> Result<Vec<ToolStatus>> {
        let rows = self.rows()?;
        let routes = self.routes(Some(name))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok());
        let now = now.and_then(|now| Timestamp::from_unix(now).ok());
        let mut found = Vec::new();
        for (content, publisher) in &self.bundles {
            let (manifest, digest) = (&content.manifest, content.manifest_digest);
            let from = installed.iter().find(|one| one.digest == digest);
            let verified = now.filter(|_| !content.origin.is_dev());
            for entry in &content.tools {
                if !is_named(&entry.tool, name) {
                    continue;
                }
                let tool = entry.tool.major_id();
                let row = ToolRow::of_tool(&rows, &tool);
                let driver = row.and_then(|row| row.driver.clone());
                let served = routes.iter().flat_map(|tool| &tool.routes);
                let grants = served
                    .map(|route| route.explain(&self.granted.policy, &self.machine))
                    .filter(|one| one.tool == tool && Some(&one.driver) == driver.as_ref())
                    .flat_map(|one| one.capabilities)
                    .flat_map(|capability| capability.granted);
                found.push(ToolStatus {
                    grants: grants.collect(),
                    tool,
                    contract: ToolView::of(&entry.tool),
                    publisher: publisher.clone(),
                    state: row.map_or("blocked", |row| row.state),
                    reasons: row.map(|row| row.reasons.clone()).unwrap_or_default(),
                    without: row.map(|row| row.without.clone()).unwrap_or_default(),
                    driver,
                    driver_publisher: row.and_then(|row| row.driver_publisher.clone()),
                    bundle: manifest.id.clone(),
                    bundle_version: manifest.version.to_string(),
                    sequence: manifest.sequence,
                    digest,
                    source: from.map(|one| one.source.clone()),
                    installed: from.map(|one| one.at.to_string()),
                    verified: verified.map(|now| now.to_string()),
                });
            }
        }
        Ok(found)
    }
}

/// A `[[grant]]` with `action`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ActionRule {
    /// The rule, in words.
    pub rule: String,
    /// The action's id.
    pub action: String,
    /// The publisher of the action.
    pub library: String,
    /// The publisher of the tools.
    pub publisher: String,
    /// The tools that it covers, by id with the major version.
    pub tools: Vec<String>,
}

impl PolicyReview {
    /// Each rule that is about an action, in order.
    pub fn action_rules(&self) -> Vec<ActionRule> {
        let contracts = self.contracts();
        let rules = self.granted.policy.action_grants();
        let rules = rules.filter_map(|(id, rule)| {
            let action = rule.action.as_ref()?;
            let covered = contracts.iter().filter(|contract| rule.is_about(contract));
            Some(ActionRule {
                rule: id.to_string(),
                action: action.id.clone(),
                library: action.library.to_string(),
                publisher: rule.publisher.to_string(),
                tools: covered.map(|contract| contract.tool.major_id()).collect(),
            })
        });
        rules.collect()
    }
}
