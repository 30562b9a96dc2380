//! The drivers that name a tool, in the order in which a host takes them, and the obstacles for each. Nothing is called.

use serde::Serialize;
use toolward_contract::driver::{Cost, Implements};
use toolward_policy::{Grant, Implementation, Route, ToolRoutes};

use super::PolicyReview;
use super::status::ToolRow;
use crate::error::Result;

/// The drivers that name one tool.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ToolCandidates {
    /// The tool's id, with its major version.
    pub tool: String,
    /// The tool's publisher.
    pub publisher: String,
    /// The driver that serves a call which uses no input that it drops; `None` if none does.
    pub serves: Option<String>,
    /// Whether the region that the policy asks for is the only obstacle for all.
    pub only_region: bool,
    /// The drivers that may serve it, best first.
    pub candidates: Vec<DriverCandidate>,
    /// The drivers that may not, by id.
    pub rejected: Vec<RejectedDriver>,
}

/// A driver that may serve a tool.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
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
    /// The declared hosts and workspaces that it is used without, because of a rule with `partial`.
    pub without: Vec<String>,
    /// Whether it takes over calls after a driver before it failed: never a blocked driver, nor the first.
    pub takes_over: bool,
    /// Calls that it does not serve, in words: calls with an input whose transform this
    /// host lacks.
    pub except: Vec<String>,
}

/// A driver that names a tool and may not serve it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct RejectionReason {
    /// The stable code.
    pub code: &'static str,
    /// In words.
    pub text: String,
}

impl PolicyReview {
    /// The drivers that name the tool, one entry for each major version of it.
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

    /// The secrets that a route is granted and that have no value for a local call.
    pub(super) fn secrets_missing(&self, route: &Route<'_>) -> Vec<String> {
        let needed = route.decision.grant().into_iter();
        let needed = needed.flat_map(Grant::needed_secrets);
        let missing = needed.filter(|one| {
            let key = (one.publisher.clone(), one.slug.clone());
            !self.secrets_with_values.contains(&key)
        });
        missing.map(|one| one.slug.clone()).collect()
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
