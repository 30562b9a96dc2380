//! The drivers that name a tool, in the order in which a host takes them, and what is in the way of each. Nothing is
//! called.

use serde::Serialize;
use toolward_contract::driver::{Cost, Implements};
use toolward_policy::{Grant, Rejected, Rejection, Route, ToolRoutes};

use super::PolicyReview;
use super::row::Row;
use crate::error::Error;

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
    /// Whether only the region that the policy asks for is in the way of all.
    pub only_region: bool,
    /// The drivers that may serve it, best first.
    pub candidates: Vec<Candidate>,
    /// The drivers that may not, by id.
    pub rejected: Vec<RejectedDriver>,
}

/// A driver that may serve a tool.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub publisher: String,
    /// The driver's kind.
    pub kind: String,
    /// What a call through it costs, as publishers say.
    pub cost: Cost,
    /// `allowed`, `asks` or `blocked`.
    pub decision: &'static str,
    /// Why a person is asked, or why the driver is blocked.
    pub reasons: Vec<String>,
    /// The declared hosts and workspaces that it is used without, because a rule says `partial`.
    pub without: Vec<String>,
    /// Whether calls fall to it once a driver before it failed: never to a blocked one, nor to the first.
    pub takes_over: bool,
    /// Calls that it does not serve, in words: those that give an input whose transform no
    /// host knows.
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
    pub reasons: Vec<Reason>,
}

/// Why a driver may not serve a tool.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Reason {
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
    pub fn candidates(&self, tool: &str) -> Result<Vec<ToolCandidates>, Error> {
        let tools = self.routes(Some(tool))?;
        Ok(tools.iter().map(|tool| self.of_tool(tool)).collect())
    }

    fn of_tool(&self, tool: &ToolRoutes<'_>) -> ToolCandidates {
        let mut candidates = Vec::new();
        let mut rejected: Vec<RejectedDriver> = Vec::new();
        for route in &tool.routes {
            match self.secrets_missing(route).as_slice() {
                [] => candidates.push(self.candidate(route)),
                slugs => rejected.push(RejectedDriver::without(slugs, route)),
            }
        }
        rejected.extend(tool.rejected.iter().map(RejectedDriver::of));
        let first = candidates.iter().position(|one| one.decision != "blocked");
        for (at, one) in candidates.iter_mut().enumerate() {
            one.takes_over &= one.decision != "blocked" && first.is_some_and(|first| first < at);
        }
        let serves = candidates.iter().find(|one| one.decision != "blocked");
        ToolCandidates {
            tool: tool.contract.tool.major_id(),
            publisher: tool.contract.publisher.to_owned(),
            serves: serves.map(|one| one.driver.clone()),
            only_region: tool.lacks_only_region(),
            candidates,
            rejected,
        }
    }

    fn candidate(&self, route: &Route<'_>) -> Candidate {
        let driver = route.implementation.driver;
        let row = Row::of(route.explain(&self.granted.policy, &self.machine));
        Candidate {
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
    fn without(slugs: &[String], route: &Route<'_>) -> Self {
        let driver = route.implementation.driver;
        let reason = |slug: &String| Reason {
            code: "secret-missing",
            text: format!("the secret `{slug}` is granted and has no value"),
        };
        Self {
            driver: driver.id.to_string(),
            publisher: route.implementation.publisher.to_owned(),
            kind: driver.kind.to_string(),
            reasons: slugs.iter().map(reason).collect(),
        }
    }

    fn of(one: &Rejected<'_>) -> Self {
        let driver = one.implementation.driver;
        let reason = |reason: &Rejection| Reason {
            code: reason.code(),
            text: reason.to_string(),
        };
        Self {
            driver: driver.id.to_string(),
            publisher: one.implementation.publisher.to_owned(),
            kind: driver.kind.to_string(),
            reasons: one.reasons.iter().map(reason).collect(),
        }
    }
}
