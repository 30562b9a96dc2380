//! The state of each tool with each driver: the drivers that name a tool, in the order in which a
//! host uses them, and the obstacles for each. Also the state of a tool with its bundle. No tool is
//! called.

use std::time::SystemTime;

use serde::Serialize;
use toolward_bundle::inspect::ToolView;
use toolward_contract::driver::{Cost, Implements};
use toolward_policy::{
    ExplainedOutcome, Explanation, Grant, Implementation, Rejection, Route, ToolRoutes,
};
use toolward_signing::Digest;
use toolward_signing::timestamp::Timestamp;
use toolward_store::InstalledBundle;

use super::PolicyReview;
use crate::bundles::is_named;
use crate::{Result, unix_seconds};

/// The drivers that name one tool.
#[derive(Debug, Clone, Serialize)]
pub struct ToolCandidates {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The tool's publisher.
    pub publisher: String,
    /// The driver that serves a call whose input uses nothing that the driver drops; `None` if no
    /// driver does.
    pub serves: Option<String>,
    /// Whether the region that the policy requires is the only obstacle for all drivers.
    pub only_region: bool,
    /// The drivers that are not rejected, best first. The policy may still block a call through
    /// them.
    pub candidates: Vec<DriverCandidate>,
    /// The rejected drivers. Drivers that are granted a secret without a value come first.
    pub rejected: Vec<RejectedDriver>,
}

/// A driver that serves a tool unless the policy blocks it.
#[derive(Debug, Clone, Serialize)]
pub struct DriverCandidate {
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub publisher: String,
    /// The driver's kind.
    pub kind: String,
    /// The cost of a call through it, as publishers declare it.
    pub cost: Cost,
    /// `allowed`, `asks` or `blocked`.
    pub decision: &'static str,
    /// Why a person is asked, or why the driver is blocked.
    pub reasons: Vec<String>,
    /// The declared hosts and workspaces that the driver does not get, because of a rule with
    /// `partial`.
    pub without: Vec<String>,
    /// Whether it takes over a call after an earlier driver failed. Never true for a blocked driver
    /// or the first one.
    pub takes_over: bool,
    /// Calls that it does not serve, in words. Their input needs a transform that this host lacks.
    pub except: Vec<String>,
}

/// A driver that names a tool but may not serve it.
#[derive(Debug, Clone, Serialize)]
pub struct RejectedDriver {
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub publisher: String,
    /// The driver's kind.
    pub kind: String,
    /// Every reason; at least one.
    pub reasons: Vec<RejectionReason>,
}

/// Why a driver may not serve a tool.
#[derive(Debug, Clone, Serialize)]
pub struct RejectionReason {
    /// The stable code.
    pub code: &'static str,
    /// In words.
    pub text: String,
}

impl PolicyReview {
    /// Returns the drivers that name the tool, one entry for each of its major versions.
    ///
    /// # Errors
    /// The errors of [`PolicyReview::routes`].
    pub fn candidates(&self, tool: &str) -> Result<Vec<ToolCandidates>> {
        let tools = self.routes(Some(tool))?;
        Ok(tools
            .iter()
            .map(|tool| self.tool_candidates(tool))
            .collect())
    }

    fn tool_candidates(&self, tool: &ToolRoutes<'_>) -> ToolCandidates {
        let mut candidates = Vec::new();
        let mut rejected: Vec<RejectedDriver> = Vec::new();
        for route in &tool.routes {
            let missing = self.secrets_missing(route);
            if missing.is_empty() {
                candidates.push(self.candidate(route));
                continue;
            }
            let reasons = missing.iter().map(|slug| RejectionReason {
                code: "secret-missing",
                text: format!("the secret `{slug}` is granted and has no value"),
            });
            rejected.push(RejectedDriver::new(&route.implementation, reasons));
        }
        rejected.extend(tool.rejected.iter().map(|one| {
            let reasons = one.reasons.iter().map(|reason| RejectionReason {
                code: reason.code(),
                text: reason.to_string(),
            });
            RejectedDriver::new(&one.implementation, reasons)
        }));
        let first = candidates.iter().position(|one| one.decision != "blocked");
        for (at, one) in candidates.iter_mut().enumerate() {
            one.takes_over &= one.decision != "blocked" && first.is_some_and(|first| first < at);
        }
        let serves = first.and_then(|first| candidates.get(first));
        ToolCandidates {
            tool: tool.contract.tool.major_id(),
            publisher: tool.contract.publisher.to_owned(),
            serves: serves.map(|one| one.driver.clone()),
            only_region: tool.lacks_only_region(),
            candidates,
            rejected,
        }
    }

    fn candidate(&self, route: &Route<'_>) -> DriverCandidate {
        let driver = route.implementation.driver;
        let row = ToolRow::of(route.explain(&self.granted.policy, &self.machine));
        DriverCandidate {
            driver: driver.id.to_string(),
            publisher: route.implementation.publisher.to_owned(),
            kind: driver.kind.to_string(),
            cost: driver.cost(route.contract.tool, route.implements),
            decision: row.state,
            reasons: row.reasons,
            without: row.without,
            takes_over: route.takes_over,
            except: except(route.implements),
        }
    }

    /// Returns the secrets that a route is granted but that have no value for a local call.
    pub(super) fn secrets_missing(&self, route: &Route<'_>) -> Vec<String> {
        let needed = route.decision.grant().into_iter();
        let needed = needed.flat_map(Grant::needed_secrets);
        let missing = needed.filter(|one| {
            let key = (one.publisher.clone(), one.slug.clone());
            !self.secrets_with_values.contains(&key)
        });
        missing.map(|one| one.slug.clone()).collect()
    }

    /// Returns the state of each tool with each driver that implements it.
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

    /// Returns the tools with this id, `id@major` or former name. `installed` holds the store's
    /// facts about the bundles.
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
        let now = Timestamp::from_unix(unix_seconds(SystemTime::now())).ok();
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
                let Some(row) = ToolRow::of_tool(&rows, &tool).cloned() else {
                    continue;
                };
                let served = routes.iter().flat_map(|tool| &tool.routes);
                let grants = served
                    .map(|route| route.explain(&self.granted.policy, &self.machine))
                    .filter(|one| one.tool == tool && Some(&one.driver) == row.driver.as_ref())
                    .flat_map(|one| one.capabilities)
                    .flat_map(|capability| capability.granted);
                found.push(ToolStatus {
                    grants: grants.collect(),
                    tool,
                    contract: ToolView::of(&entry.tool),
                    publisher: publisher.clone(),
                    state: row.state,
                    reasons: row.reasons,
                    without: row.without,
                    driver: row.driver,
                    driver_publisher: row.driver_publisher,
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

fn except(entry: &Implements) -> Vec<String> {
    let missing = entry.mapping.iter().filter_map(|(_, source)| {
        let transform = source.unknown_transform.as_ref()?;
        let from = &source.from;
        Some(format!(
            "calls that give `{from}`: this host lacks the transform `{transform}`"
        ))
    });
    missing.collect()
}

impl RejectedDriver {
    fn new(one: &Implementation<'_>, reasons: impl Iterator<Item = RejectionReason>) -> Self {
        Self {
            driver: one.driver.id.to_string(),
            publisher: one.publisher.to_owned(),
            kind: one.driver.kind.to_string(),
            reasons: reasons.collect(),
        }
    }
}

/// The state of one tool with one driver, or of a tool without a driver.
#[derive(Debug, Clone, Serialize)]
pub struct ToolRow {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The driver's id.
    pub driver: Option<String>,
    /// The tool's publisher.
    pub publisher: String,
    /// The driver's publisher.
    pub driver_publisher: Option<String>,
    /// `allowed`, `asks` or `blocked`; `unbound` for another publisher's driver that no rule binds
    /// to the tool.
    pub state: &'static str,
    /// Why a person is asked, or why the driver does not serve the tool.
    pub reasons: Vec<String>,
    /// The declared hosts and workspaces that the tool does not get, because of a rule with
    /// `partial`.
    pub without: Vec<String>,
}

impl ToolRow {
    /// Returns the row that decides on calls to this tool: the row of the first driver that serves
    /// it, otherwise the first row.
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

/// Returns a row for a tool that no driver serves, and one for each driver that implements the tool
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

/// One tool. Its texts may be untrusted.
#[derive(Debug, Clone, Serialize)]
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
    /// The capabilities that the sandbox grants it; empty if it is blocked.
    pub grants: Vec<String>,
    /// The declared hosts and workspaces that the tool does not get, because of a rule with
    /// `partial`.
    pub without: Vec<String>,
    /// The driver that serves it, otherwise the first blocked driver; `None` if no driver may serve
    /// it.
    pub driver: Option<String>,
    /// That driver's publisher.
    pub driver_publisher: Option<String>,
    /// The id of its bundle.
    pub bundle: String,
    /// The bundle's version.
    pub bundle_version: String,
    /// The bundle's sequence.
    pub sequence: u64,
    /// BLAKE3 of the bundle's manifest.
    pub digest: Digest,
    /// The source from which the bundle was installed.
    pub source: Option<String>,
    /// When it was installed.
    pub installed: Option<String>,
    /// When its signatures and files were last verified, which is when this was read. `None` for a
    /// bundle under work.
    pub verified: Option<String>,
}
