//! What a host knows of a tool, also why no driver serves it: lists over MCP, records, policy reviews and the command
//! show it.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::driver::Cost;
use toolward_policy::{Confirmed, ContextLack, Decision, Effects, Rejection, ToolRoutes, Withheld};

use crate::api::result::Reply;
use crate::catalogue::{Icon, ToolEntry};

/// A tool of a host.
///
/// ```
/// use toolward_host::{DriverFacts, Host, ToolFacts};
/// use toolward_policy::Decision;
///
/// fn list(host: &Host) {
///     for ToolFacts { contract, publisher, drivers, .. } in host.tools() {
///         for DriverFacts { id, decision, .. } in &drivers {
///             let verdict = match decision {
///                 Decision::Allow(_) => "allowed".to_owned(),
///                 Decision::Ask(_, reasons) => format!("asks: {reasons:?}"),
///                 Decision::Deny(denial) => format!("blocked: {denial}"),
///             };
///             println!("{} of {publisher}, by {id}: {verdict}", contract.id);
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolFacts {
    /// Its contract. Untrusted text.
    pub contract: Arc<toolward_contract::tool::Tool>,
    /// Who published it; `dev:<dir>` for an unsigned bundle.
    pub publisher: String,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub bundle: String,
    /// The drivers that may serve it, in order of preference.
    pub drivers: Vec<DriverFacts>,
    /// Why drivers of the same publisher can't serve it.
    pub unserved: Unserved,
    /// The effects of a call by any driver that policy lets run, nested calls included;
    /// `None` without such a driver, so that no call can run.
    pub effects: Option<Effects>,
    /// Why calls without a context can't run, if the contract requires one
    /// and the operator gives none.
    pub context: Option<ContextLack>,
    /// Which claims of the contract the operator confirms.
    pub confirmed: Confirmed,
    /// Its icon, or its bundle's. Untrusted bytes.
    pub icon: Option<Icon>,
}

/// A driver that may serve a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DriverFacts {
    /// Its id.
    pub id: String,
    /// Who published it, which may be another publisher than the tool's.
    pub publisher: String,
    /// What it declares. Untrusted text.
    pub declaration: Arc<toolward_contract::driver::Driver>,
    /// The policy's decision.
    pub decision: Decision,
    /// What a call through it costs, as its publishers say.
    pub cost: Cost,
}

impl DriverFacts {
    /// Whether policy lets it run, with or without approval.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.decision.grant().is_some()
    }

    /// The declared hosts and workspaces that it is used without, because a rule has `partial`.
    #[must_use]
    pub fn without(&self) -> &[Withheld] {
        match &self.decision {
            Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
                let partial = allowed.partial.as_ref();
                partial.map_or(&[], |partial| &partial.withheld)
            }
            Decision::Deny(_) => &[],
        }
    }
}

impl ToolFacts {
    /// The lines of a policy that would let a call pass which the policy blocked. For
    /// people, and no part of a reply: its reader may be an agent.
    #[must_use]
    pub fn lines_to_add(&self, reply: &Reply) -> Option<String> {
        let error = reply.result.as_ref().err()?;
        if !error.is_denial() {
            return None;
        }
        let Some(driver) = &reply.metadata.driver else {
            // Before a driver was picked nothing but its context was found missing.
            return self.context.as_ref().map(ContextLack::lines_to_add);
        };
        self.drivers.iter().find_map(|one| match &one.decision {
            Decision::Deny(denial) if *one.id == **driver => Some(denial.lines_to_add()),
            _ => None,
        })
    }

    /// Fewer lines than [`ToolFacts::lines_to_add`], as an example: they give some of the hosts and workspaces only.
    #[must_use]
    pub fn narrower_lines(&self, reply: &Reply) -> Option<String> {
        let driver = reply.metadata.driver.as_ref()?;
        let denial = self.drivers.iter().find_map(|one| match &one.decision {
            Decision::Deny(denial) if *one.id == **driver => Some(denial),
            _ => None,
        });
        denial.map(|denial| denial.narrower_lines())
    }

    /// The hosts and workspaces that it declares and is served without, because a rule has `partial`: of every
    /// driver that policy lets run.
    #[must_use]
    pub fn without(&self) -> Vec<&Withheld> {
        let mut all: Vec<&Withheld> = Vec::new();
        for driver in &self.drivers {
            for one in driver.without() {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        all
    }

    /// What callers may know of a tool of the catalogue.
    pub(crate) fn of(entry: &ToolEntry) -> Self {
        Self {
            contract: entry.contract.clone(),
            publisher: entry.publisher.to_string(),
            bundle: entry.bundle.to_string(),
            drivers: entry
                .routes
                .iter()
                .map(|route| DriverFacts {
                    id: route.driver.driver.id.to_string(),
                    publisher: route.driver.publisher.to_string(),
                    declaration: route.driver.driver.clone(),
                    decision: route.decision.clone(),
                    cost: route.cost.clone(),
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

/// How many drivers an error names. Each of them may hold [`MAX_TEXT_BYTES`] for each reason.
const MAX_NAMED: usize = 32;

/// Longest text of one reason in an error, in bytes: it quotes the driver's document.
const MAX_TEXT_BYTES: usize = 200;

/// Why drivers of the contract's own publisher do not serve it. Callers learn nothing of other publishers' drivers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Unserved {
    /// Those drivers, by id.
    pub drivers: Vec<UnservedDriver>,
    /// Whether no driver serves the contract, and only the region that the policy asks for is in the way.
    pub only_region: bool,
}

/// A driver that declares a contract, and does not serve it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnservedDriver {
    /// Its id.
    pub id: String,
    /// Who published it.
    pub publisher: String,
    /// Every reason; at least one.
    pub reasons: Vec<Rejection>,
}

impl fmt::Display for UnservedDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> = self.reasons.iter().map(text).collect();
        write!(f, "the driver `{}`: {}", self.id, reasons.join("; "))
    }
}

impl Unserved {
    pub(super) fn of(planned: &ToolRoutes<'_>) -> Self {
        let own = planned
            .rejected
            .iter()
            .filter(|rejected| rejected.implementation.publisher == planned.contract.publisher);
        let drivers = own.map(|rejected| UnservedDriver {
            id: rejected.implementation.driver.id.to_string(),
            publisher: rejected.implementation.publisher.to_owned(),
            reasons: rejected.reasons.clone(),
        });
        Self {
            drivers: drivers.collect(),
            only_region: planned.lacks_only_region(),
        }
    }

    /// The drivers with their reasons, as an error's cause has them; `None` if there are none.
    pub(crate) fn cause(&self) -> Option<Value> {
        if self.drivers.is_empty() {
            return None;
        }
        let rejected: Vec<Value> = self
            .drivers
            .iter()
            .take(MAX_NAMED)
            .map(|driver| {
                let reasons = driver.reasons.iter();
                let reasons = reasons.map(|one| json!({ "code": one.code(), "text": text(one) }));
                json!({
                    "driver": driver.id,
                    "publisher": driver.publisher,
                    "reasons": reasons.collect::<Vec<_>>(),
                })
            })
            .collect();
        let more = self.drivers.len().saturating_sub(MAX_NAMED);
        Some(match more {
            0 => json!({ "rejected": rejected }),
            more => json!({ "rejected": rejected, "more": more }),
        })
    }
}

/// A reason in words. The document's text may be long.
fn text(reason: &Rejection) -> String {
    let mut text = reason.to_string();
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}
