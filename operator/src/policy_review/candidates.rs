//! The drivers that name a tool, in the order in which a host takes them, and what is in the way of each. Nothing is
//! called.

use serde::Serialize;
use toolward_contract::driver::Cost;
use toolward_policy::{Rejected, Rejection, Route, ToolRoutes};

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
        let candidates = tool.routes.iter().map(|route| self.candidate(route));
        let candidates: Vec<Candidate> = candidates.collect();
        let serves = candidates.iter().find(|one| one.decision != "blocked");
        ToolCandidates {
            tool: tool.contract.tool.major_id(),
            publisher: tool.contract.publisher.to_owned(),
            serves: serves.map(|one| one.driver.clone()),
            only_region: tool.lacks_only_region(),
            candidates,
            rejected: tool.rejected.iter().map(RejectedDriver::of).collect(),
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
        }
    }
}

impl RejectedDriver {
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
