//! The ways to carry out a contract, best first, each with what was decided
//! about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::driver::{DriverKind, Implements, Platform};
use toolward_contract::tool::{Approval, Retry, Tool};
use toolward_policy::{AskReason, Contexts, Contract, Decision, Implementation, Request};

use super::closure::{self, Candidate, Reach};
use super::driver::LoadedDriver;
use crate::access::Access;
use crate::approval::{Chain, Chained};
use crate::limits::{CallLimits, Limits};
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
    /// What a person is asked first; `None` where nobody has to be.
    pub(crate) question: Option<Arc<Question>>,
}

/// What is asked before a call by this route, whatever its input.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) effects: Vec<String>,
    pub(crate) risk: u8,
    pub(crate) reasons: Vec<String>,
    /// The tools that it may call in turn.
    pub(crate) chain: Chain,
    /// Whether a yes to the tool that called it does not cover it.
    pub(crate) each_time: bool,
}

/// The drivers that may serve a contract: of the contract's own publisher or
/// bound to it by the operator, for this version, of a kind that the contract
/// allows and this host runs.
pub(super) fn drivers(
    contract: &Tool,
    publisher: &str,
    drivers: &BTreeMap<String, Arc<LoadedDriver>>,
    services: &Services,
) -> Vec<Arc<LoadedDriver>> {
    drivers
        .values()
        .filter(|driver| {
            driver.publisher == publisher || is_bound(services, contract, publisher, driver)
        })
        .filter(|driver| driver.can_run())
        .filter(|driver| {
            contract
                .driver_constraints
                .permits(driver.driver.kind.as_str())
        })
        .filter(|driver| runs_here(&driver.driver.platform, &services.limits))
        .filter(|driver| {
            driver
                .driver
                .implements_tool(contract.id.as_str(), &contract.version)
                .is_some()
        })
        .cloned()
        .collect()
}

/// Whether the operator bound somebody else's driver to a contract: by a rule
/// for the contract that names both the driver and its publisher.
fn is_bound(services: &Services, contract: &Tool, publisher: &str, driver: &LoadedDriver) -> bool {
    services.policy.grants().any(|rule| {
        rule.publisher.as_str() == publisher
            && rule
                .tool
                .matches(contract.id.as_str(), contract.version.major)
            && rule.driver.as_deref() == Some(driver.driver.id.as_str())
            && rule.driver_publisher.as_str() == driver.publisher
    })
}

/// The routes of a contract, best first.
pub(super) fn routes(
    own: &Candidate,
    publisher: &str,
    candidates: &BTreeMap<String, Candidate>,
    services: &Services,
) -> Vec<Arc<Route>> {
    let contract = &own.contract;
    let mut routes: Vec<Arc<Route>> = own
        .drivers
        .iter()
        .filter_map(|driver| {
            let implements = driver
                .driver
                .implements_tool(contract.id.as_str(), &contract.version)?;
            let reach = closure::reach(contract, &driver.driver, candidates);
            let chain = || chain(&reach, candidates);
            Some(Arc::new(route(
                contract, publisher, driver, implements, &reach, &chain, services,
            )))
        })
        .collect();
    // The drivers come by id, and the sort is stable: ids decide last.
    routes.sort_by(|a, b| {
        let default = |route: &Route| {
            contract.default_implementation.as_deref() == Some(route.driver.driver.id.as_str())
        };
        let cost = |route: &Route| {
            route
                .implements
                .cost_override
                .cost_units_per_call
                .unwrap_or(0.0)
        };
        default(b)
            .cmp(&default(a))
            .then(cost(a).total_cmp(&cost(b)))
    });
    routes
}

fn route(
    contract: &Tool,
    publisher: &str,
    driver: &Arc<LoadedDriver>,
    implements: &Implements,
    reach: &Reach,
    chain: &dyn Fn() -> Chain,
    services: &Services,
) -> Route {
    let timeout = driver.driver.timeout(contract, implements);
    let limits = CallLimits::new(&services.limits, timeout, &driver.driver.limits);
    let of = Contract {
        tool: contract,
        publisher,
    };
    let by = Implementation {
        driver: &driver.driver,
        publisher: &driver.publisher,
    };
    let reaching = Request::reaching(reach.effects);
    let decision = toolward_policy::decide(&of, &by, &services.policy, &reaching);
    let (allowed, reasons) = match &decision {
        Decision::Allow(allowed) => (Some(allowed), None),
        Decision::Ask(allowed, reasons) => (Some(allowed), Some(reasons)),
        Decision::Deny(_) => (None, None),
    };
    Route {
        access: allowed
            .map(|allowed| Arc::new(Access::new(&allowed.grant, &driver.publisher, services))),
        question: reasons
            .map(|reasons| Arc::new(question(contract, driver, reach, chain(), reasons))),
        retry: driver.driver.retry(contract, implements),
        implements: implements.clone(),
        driver: driver.clone(),
        limits,
        contexts: Contexts::of(&of, &by, &services.policy),
        decision,
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
) -> Question {
    let added = &driver.driver.requires.capabilities;
    let reads = contract.requires.capabilities.union(added);
    let effects = changes(contract)
        .chain(reads.iter().map(|capability| format!("uses {capability}")))
        .collect();
    let risk = contract.risk_level.max(reach.effects.risk);
    Question {
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

/// The tools that are reached, as a person is told of them.
fn chain(reach: &Reach, candidates: &BTreeMap<String, Candidate>) -> Chain {
    let reached = reach.tools.iter().filter_map(|name| candidates.get(name));
    Chain::of(reached.map(|candidate| {
        let contract = &candidate.contract;
        let drivers = candidate.drivers.iter().map(|driver| &driver.bundle);
        let tool = Chained {
            tool: candidate.major_id.clone(),
            publisher: candidate.publisher.clone(),
            bundles: [&candidate.bundle]
                .into_iter()
                .chain(drivers)
                .cloned()
                .collect(),
            effects: changes(contract).collect(),
            risk: contract.risk_level,
        };
        (tool, asks_each_time(contract))
    }))
}

/// Whether this host has what a driver asks of its platform. Memory is what a
/// sandbox may have here; disk space is no matter for one that has no files.
fn runs_here(platform: &Platform, limits: &Limits) -> bool {
    let named = |list: &[String], own: &str| list.is_empty() || list.iter().any(|name| name == own);
    let memory = platform.min_memory_mb.unwrap_or(0).saturating_mul(1 << 20);
    named(&platform.os, std::env::consts::OS)
        && named(&platform.arch, std::env::consts::ARCH)
        && memory <= limits.memory_bytes.maximum
}

impl LoadedDriver {
    /// Whether this host has the means to run it.
    fn can_run(&self) -> bool {
        match self.driver.kind {
            DriverKind::Component => self.digest.is_some(),
            DriverKind::Http => true,
            _ => false,
        }
    }
}
