//! The ways to carry out a contract, best first, each with what was decided
//! about it; the drivers behind them.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolward_bundle::content::DriverEntry;
use toolward_contract::capability::Capability;
use toolward_contract::driver::{Cost, Driver, Implements};
use toolward_contract::tool::{Retry, Tool};
use toolward_policy::{
    ApprovalClass, AskReason, Contexts, Contract, Decision, Effects, Partial, Policy,
};
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::violations::Reported;
use toolward_state::Withdrawal;

use crate::access::Access;
use crate::api::approval::{ApprovalQuestion, Chain, Chained};
use crate::executor::{DriverSource, Executor, Executors, Features};
use crate::health::Health;
use crate::recording::RecordedRoute;
use crate::services::Services;

/// One way to carry out a contract: a driver, with all that is fixed about it.
pub(crate) struct Route {
    pub(crate) driver: Arc<LoadedDriver>,
    pub(crate) implements: Arc<Implements>,
    pub(crate) limits: CallLimits,
    pub(crate) retry: Option<Retry>,
    pub(crate) decision: Decision,
    /// What the operator gives to calls that bring no context.
    pub(crate) contexts: Contexts,
    /// What its sandboxes get; `None` where the decision denies it.
    pub(crate) access: Option<Arc<Access>>,
    /// The approval that a call needs; `None` if it needs none.
    pub(crate) question: Option<Arc<ApprovalQuestion>>,
    /// Whether calls fall to it once another driver failed.
    pub(crate) takes_over: bool,
    /// Whether calls fall from and to it although another driver may have changed what they change.
    pub(crate) repeats: bool,
    /// Routes of one number are in their order for their ids alone.
    pub(crate) tie: usize,
    /// What a call costs, as its publishers say.
    pub(crate) cost: Cost,
    /// Whether a call by this driver changes something itself: it is recorded before it starts.
    pub(crate) writes: bool,
    /// Whether a call may change something, itself or through the tools that it calls.
    pub(crate) changes: bool,
    /// What records say of it, where calls are recorded.
    pub(crate) recorded: Option<RecordedRoute>,
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
        access: allowed.map(|allowed| {
            let grant = &allowed.grant;
            let executor = driver.executor.as_ref();
            let usable = executor.map_or(Ok(()), |executor| executor.check(grant));
            Arc::new(Access::new(grant, &driver.publisher, services, usable))
        }),
        question: reasons.map(|reasons| {
            let each_time = asks_each_time(&planned.contract, &services.policy);
            let partial = allowed.and_then(|allowed| allowed.partial.as_ref());
            let effects = effects(planned, driver, partial);
            let question = question(planned, chain(), effects, (reasons, each_time));
            Arc::new(question)
        }),
        retry: driver.driver.retry(contract, planned.implements),
        implements: Arc::new(planned.implements.clone()),
        driver: driver.clone(),
        limits,
        contexts: Contexts::of(&planned.contract, &planned.implementation, &services.policy),
        decision: planned.decision.clone(),
        takes_over: planned.takes_over,
        repeats: planned.repeats,
        cost: driver.driver.cost(contract, planned.implements),
        tie: planned.tie,
        writes: allowed
            .map_or_else(
                || Effects::of(contract, &driver.driver),
                |one| one.own_effects,
            )
            .writes,
        recorded: services.recording.as_ref().map(|_| {
            let names = (&*driver.driver, &*driver.bundle, &*driver.publisher);
            RecordedRoute::of(planned, names)
        }),
        changes: allowed.is_none_or(|allowed| allowed.effects.writes || allowed.effects.risk > 0),
    }
}

/// AIP-14 `risk_level` 3: what can't be undone.
const IRREVERSIBLE: u8 = 3;

fn question(
    planned: &toolward_policy::Route<'_>,
    chain: Chain,
    effects: Vec<String>,
    (reasons, each_time): (&[AskReason], bool),
) -> ApprovalQuestion {
    let (contract, reach) = (planned.contract.tool, &planned.reach);
    ApprovalQuestion {
        effects,
        risk: contract.risk_level.max(reach.effects.risk),
        reasons: reasons.iter().map(ToString::to_string).collect(),
        chain,
        each_time,
        can_be_preapproved: reasons.iter().all(AskReason::can_be_preapproved),
    }
}

/// What a call itself may do: what is declared, or what a rule with `partial` gives of it.
fn effects(
    planned: &toolward_policy::Route<'_>,
    driver: &LoadedDriver,
    partial: Option<&Partial>,
) -> Vec<String> {
    let contract = planned.contract.tool;
    let uses = |capability: &Capability| format!("uses {capability}");
    if let Some(partial) = partial {
        let (changed, read): (Vec<_>, Vec<_>) = partial.given.iter().partition(|one| one.mutates);
        let changed = changed
            .iter()
            .map(|one| format!("changes {}", one.capability));
        let read = read.iter().map(|one| uses(&one.capability));
        return changed.chain(read).collect();
    }
    let entry = driver
        .driver
        .implements_tool(contract.id.as_str(), &contract.version);
    let program = entry.and_then(|entry| entry.program.as_ref());
    let program = program.map(|program| {
        let words = std::iter::once(&program.command).chain(&program.args);
        let words: Vec<&str> = words.map(String::as_str).collect();
        format!("runs {} outside the sandbox", words.join(" "))
    });
    let added = &driver.driver.requires.capabilities;
    let reads = contract.requires.capabilities.union(added);
    (program.into_iter())
        .chain(changes(contract))
        .chain(reads.iter().map(uses))
        .collect()
}

fn changes(contract: &Tool) -> impl Iterator<Item = String> {
    let changed = contract.mutates.iter();
    changed.map(|capability| format!("changes {capability}"))
}

fn asks_each_time(contract: &Contract<'_>, policy: &Policy) -> bool {
    let approval = policy.approval_of(contract.tool, contract.publisher);
    contract.tool.risk_level >= IRREVERSIBLE || approval == ApprovalClass::Always
}

/// The tools that are reached, as an approval request shows them: each with the
/// manifests of its own bundle and of its drivers'.
pub(super) fn chain<'c>(reached: impl Iterator<Item = Reached<'c>>, policy: &Policy) -> Chain {
    Chain::of(reached.map(|reached| {
        let contract = reached.contract;
        let drivers = reached.drivers.iter();
        let tool = Chained {
            tool: contract.major_id(),
            publisher: reached.publisher.to_owned(),
            driver_publishers: publishers(reached.drivers),
            bundles: std::iter::once(reached.bundle)
                .chain(drivers.map(|driver| &*driver.bundle))
                .map(str::to_owned)
                .collect(),
            effects: changes(contract).collect(),
            risk: contract.risk_level,
        };
        let contract = Contract {
            tool: contract,
            publisher: reached.publisher,
        };
        (tool, asks_each_time(&contract, policy))
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
    let all: BTreeSet<&str> = drivers.iter().map(|driver| &*driver.publisher).collect();
    all.into_iter().map(str::to_owned).collect()
}

/// The driver of a bundle.
pub(crate) struct LoadedDriver {
    pub(crate) driver: Arc<Driver>,
    pub(crate) bundle: Arc<str>,
    pub(crate) publisher: Arc<str>,
    /// `driver.id`, shared with the metadata of each call.
    pub(crate) id: Arc<str>,
    pub(crate) withdrawal: Arc<Withdrawal>,
    /// `None` for a kind that this host does not run: no route has such a driver.
    pub(crate) executor: Option<Arc<dyn Executor>>,
    pub(crate) reported: Reported,
    pub(crate) health: Health,
}

impl LoadedDriver {
    pub(super) fn new(
        entry: DriverEntry,
        bundle: &str,
        publisher: &str,
        withdrawal: &Arc<Withdrawal>,
        executors: &Executors,
    ) -> Self {
        let publisher: Arc<str> = publisher.into();
        let source = DriverSource {
            driver: entry.driver.clone(),
            publisher: publisher.clone(),
            component: entry.component,
        };
        Self {
            id: entry.driver.id.as_str().into(),
            driver: entry.driver,
            bundle: bundle.into(),
            publisher,
            withdrawal: withdrawal.clone(),
            executor: executors.executor(source),
            reported: Reported::default(),
            health: Health::default(),
        }
    }

    /// What the stages have to know of its executor.
    pub(crate) fn features(&self) -> Features {
        let executor = self.executor.as_ref();
        executor.map_or_else(Features::default, |executor| executor.features())
    }

    /// Whether a call of it need not wait until it is prepared.
    pub(crate) fn is_ready(&self) -> bool {
        let executor = self.executor.as_ref();
        executor.is_none_or(|executor| executor.is_ready())
    }
}
