//! What a host tells of its tools.

use std::sync::Arc;

use toolward_policy::{Confirmed, ContextLack, Decision, Effects};

use crate::catalogue::{Icon, ToolEntry};

/// One tool as a catalogue shows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolInfo {
    /// Its contract. Untrusted text.
    pub contract: Arc<toolward_contract::tool::Tool>,
    /// Who published it; `dev:<dir>` for an unsigned bundle.
    pub publisher: String,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub bundle: String,
    /// The drivers that may serve it, best first.
    pub drivers: Vec<DriverInfo>,
    /// Why drivers of the same publisher that name it do not serve it, for people.
    pub unserved: Vec<String>,
    /// What a call can bring about by any driver that policy lets run, the tools
    /// that it reaches included; `None` where there is no such driver, and so no
    /// call can run.
    pub effects: Option<Effects>,
    /// Why calls that bring no context of their own can't run, where the contract
    /// requires one and the operator gives none to anybody.
    pub context: Option<ContextLack>,
    /// Which claims of the contract the operator confirms.
    pub confirmed: Confirmed,
    /// Its icon, or its bundle's. Untrusted bytes.
    pub icon: Option<Icon>,
}

/// A driver that may serve a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriverInfo {
    /// Its id.
    pub id: String,
    /// Who published it: whose code runs, which may be another publisher's than the
    /// tool's.
    pub publisher: String,
    /// What was decided about it.
    pub decision: Decision,
}

impl DriverInfo {
    /// Whether policy lets it run, asked about or not.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.decision.grant().is_some()
    }
}

impl ToolInfo {
    /// What callers may know of a tool of the catalogue.
    pub(crate) fn of(entry: &ToolEntry) -> Self {
        Self {
            contract: entry.contract.clone(),
            publisher: entry.publisher.clone(),
            bundle: entry.bundle.clone(),
            drivers: entry
                .routes
                .iter()
                .map(|route| DriverInfo {
                    id: route.driver.driver.id.to_string(),
                    publisher: route.driver.publisher.clone(),
                    decision: route.decision.clone(),
                })
                .collect(),
            unserved: entry.unserved.clone(),
            effects: entry.effects(),
            context: entry.context_lack(),
            confirmed: entry.confirmed(),
            icon: entry.icon.clone(),
        }
    }
}
