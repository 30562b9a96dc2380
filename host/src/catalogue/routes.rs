//! The ways to carry out a contract, best first, each with what was decided
//! about it.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolward_contract::driver::Implements;
use toolward_contract::tool::{Approval, Retry, Tool};
use toolward_policy::{AskReason, Contexts, Decision, Reach};

use super::driver::LoadedDriver;
use crate::api::approval::{ApprovalQuestion, Chain, Chained};
use crate::api::limits::CallLimits;
use crate::sandbox::access::Access;
use crate::services::Services;

/// One way to carry out a contract: a driver, with all that is fixed about it.
pub(crate) struct Route {
    pub(crate) driver: Arc<LoadedDriver>,
    pub(crate) implements: Implements,
    pub(crate) limits: CallLimits,
    pub(crate) retry: Option<Retry>,
    pub(crate) decision: Decision,
    /// What the operator gives to calls that bring no context of their own.
    pub(crate) contexts: Contexts,
    /// What its sandboxes get; `None` where the decision denies it.
    pub(crate) access: Option<Arc<Access>>,
    /// The approval that a call needs; `None` if it needs none.
    pub(crate) question: Option<Arc<ApprovalQuestion>>,
}

/// Builds the route of a driver that may serve a contract from what policy and machine
/// allow.
pub(super) fn route(
    planned: &toolward_policy::Route<'_>,
    driver: &Arc<LoadedDriver>,
    chain: &dyn Fn() -> Chain,
    services: &Services,
) -> Route {
    let contract = planned.contract.tool;
    let timeout = driver.driver.timeout(contract, planned.implements);
    let limits = CallLimits::new(&services.limits, timeout, &driver.driver.limits);
    let (allowed, reasons) = match &planned.decision {
        Decision::Allow(allowed) => (Some(allowed), None),
        Decision::Ask(allowed, reasons) => (Some(allowed), Some(reasons)),
        Decision::Deny(_) => (None, None),
    };
    Route {
        access: allowed
            .map(|allowed| Arc::new(Access::new(&allowed.grant, &driver.publisher, services))),
        question: reasons.map(|reasons| {
            let question = question(contract, driver, &planned.reach, chain(), reasons);
            Arc::new(question)
        }),
        retry: driver.driver.retry(contract, planned.implements),
        implements: planned.implements.clone(),
        driver: driver.clone(),
        limits,
        contexts: Contexts::of(&planned.contract, &planned.implementation, &services.policy),
        decision: planned.decision.clone(),
    }
}

/// AIP-14 `risk_level` 3: what can't be undone.
const IRREVERSIBLE: u8 = 3;

fn question(
    contract: &Tool,
    driver: &LoadedDriver,
    reach: &Reach,
    chain: Chain,
    reasons: &[AskReason],
) -> ApprovalQuestion {
    let added = &driver.driver.requires.capabilities;
    let reads = contract.requires.capabilities.union(added);
    let effects = changes(contract)
        .chain(reads.iter().map(|capability| format!("uses {capability}")))
        .collect();
    let risk = contract.risk_level.max(reach.effects.risk);
    ApprovalQuestion {
        effects,
        risk,
        reasons: reasons.iter().map(ToString::to_string).collect(),
        chain,
        each_time: asks_each_time(contract),
    }
}

fn changes(contract: &Tool) -> impl Iterator<Item = String> {
    let changed = contract.mutates.iter();
    changed.map(|capability| format!("changes {capability}"))
}

fn asks_each_time(contract: &Tool) -> bool {
    contract.risk_level >= IRREVERSIBLE
        || !matches!(
            contract.approval.effective(),
            Approval::Auto | Approval::OnMutate
        )
}

/// The tools that are reached, as an approval request shows them: each with the
/// manifests of its own bundle and of its drivers'.
pub(super) fn chain<'c>(reached: impl Iterator<Item = Reached<'c>>) -> Chain {
    Chain::of(reached.map(|reached| {
        let contract = reached.contract;
        let drivers = reached.drivers.iter();
        let tool = Chained {
            tool: contract.major_id(),
            publisher: reached.publisher.to_owned(),
            driver_publishers: publishers(reached.drivers),
            bundles: std::iter::once(reached.bundle)
                .chain(drivers.map(|driver| driver.bundle.as_str()))
                .map(str::to_owned)
                .collect(),
            effects: changes(contract).collect(),
            risk: contract.risk_level,
        };
        (tool, asks_each_time(contract))
    }))
}

/// A tool that is reached, and the drivers that may serve it.
pub(super) struct Reached<'c> {
    pub(super) contract: &'c Tool,
    pub(super) publisher: &'c str,
    pub(super) bundle: &'c str,
    pub(super) drivers: &'c [Arc<LoadedDriver>],
}

/// Who published these drivers, each once, in order.
fn publishers(drivers: &[Arc<LoadedDriver>]) -> Vec<String> {
    let all: BTreeSet<&str> = drivers
        .iter()
        .map(|driver| driver.publisher.as_str())
        .collect();
    all.into_iter().map(str::to_owned).collect()
}
