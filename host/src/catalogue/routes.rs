//! The drivers that may serve a contract, best first, each with the policy's decision.

use std::ops::Deref;
use std::sync::Arc;

use toolward_bundle::content::DriverEntry;
use toolward_contract::capability::Capability;
use toolward_contract::driver::{Cost, Driver, Implements};
use toolward_contract::tool::{Retry, Tool};
use toolward_policy::{
    Allowed, ApprovalClass, AskReason, Contexts, Contract, Decision, Effects, Partial, Policy,
    Withheld,
};
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::violations::Reported;
use toolward_state::Withdrawal;

use crate::access::Access;
use crate::api::approval::{ApprovalQuestion, Chain};
use crate::executor::{Executor, Executors, Features};
use crate::health::Health;
use crate::recording::RecordedRoute;
use crate::services::Services;

/// A driver that may serve a tool. It dereferences to [`LoadedDriver`], whose fields are the same
/// for all tools of the driver.
pub struct DriverFacts {
    /// The policy's decision.
    pub decision: Decision,
    /// The cost of a call through it, according to the publishers of tool and driver.
    pub cost: Cost,
    pub(crate) driver: Arc<LoadedDriver>,
    pub(crate) implements: Arc<Implements>,
    pub(crate) limits: CallLimits,
    pub(crate) retry: Option<Retry>,
    /// The contexts that the operator gives to calls without a context.
    pub(crate) contexts: Contexts,
    /// The access that its calls get; `None` if the decision denies the driver.
    pub(crate) access: Option<Arc<Access>>,
    /// The approval that a call needs; `None` if it needs none.
    pub(crate) question: Option<Arc<ApprovalQuestion>>,
    /// Whether it may take over a call from another driver that failed.
    pub(crate) takes_over: bool,
    /// Whether policy lets a call move from it to another driver, and from another driver to it,
    /// even if a change may then be made twice.
    pub(crate) repeats: bool,
    /// Routes with the same number rank equal and are ordered only by their ids.
    pub(crate) tie: usize,
    /// Whether a call by this driver changes something itself, not only through the tools that it
    /// calls. The start of such a call is recorded.
    pub(crate) writes: bool,
    /// Whether a call may change something, itself or through the tools that it calls. Also true if
    /// its risk level is above 0.
    pub(crate) changes: bool,
    /// The driver's names in records; `None` unless calls are recorded.
    pub(crate) recorded: Option<RecordedRoute>,
}

/// Builds the facts of a driver for one contract, from the route that policy planned.
pub(super) fn route(
    planned: &toolward_policy::Route<'_>,
    driver: &Arc<LoadedDriver>,
    chain: &dyn Fn() -> Chain,
    services: &Services,
) -> DriverFacts {
    let contract = planned.contract.tool;
    let declaration = &*driver.declaration;
    let timeout = declaration.timeout(contract, planned.implements);
    let limits = CallLimits::new(&services.limits, timeout, &declaration.limits);
    let (allowed, reasons) = match &planned.decision {
        Decision::Allow(allowed) => (Some(allowed), None),
        Decision::Ask(allowed, reasons) => (Some(allowed), Some(reasons)),
        Decision::Deny(_) => (None, None),
    };
    DriverFacts {
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
            Arc::new(ApprovalQuestion {
                effects,
                risk: contract.risk_level.max(planned.reach.effects.risk),
                reasons: reasons.iter().map(ToString::to_string).collect(),
                chain: chain(),
                each_time,
                can_be_preapproved: reasons.iter().all(AskReason::can_be_preapproved),
            })
        }),
        retry: declaration.retry(contract, planned.implements),
        implements: Arc::new(planned.implements.clone()),
        driver: driver.clone(),
        limits,
        contexts: Contexts::of(&planned.contract, &planned.implementation, &services.policy),
        decision: planned.decision.clone(),
        takes_over: planned.takes_over,
        repeats: planned.repeats,
        cost: declaration.cost(contract, planned.implements),
        tie: planned.tie,
        writes: match allowed {
            Some(allowed) => allowed.own_effects.writes,
            None => Effects::of(contract, declaration).writes,
        },
        recorded: services.recording.as_ref().map(|_| {
            let names = (declaration, &*driver.bundle, &*driver.publisher);
            RecordedRoute::of(planned, names)
        }),
        changes: allowed.is_none_or(|allowed| allowed.effects.writes || allowed.effects.risk > 0),
    }
}

/// AIP-14 `risk_level` 3: effects that can't be undone.
const IRREVERSIBLE: u8 = 3;

/// The effects that a call itself may have: the declared effects, or the part that a rule with
/// `partial` grants.
fn effects(
    planned: &toolward_policy::Route<'_>,
    driver: &LoadedDriver,
    partial: Option<&Partial>,
) -> Vec<String> {
    let contract = planned.contract.tool;
    let uses = |capability: &Capability| format!("uses {capability}");
    if let Some(partial) = partial {
        let of = |mutates| partial.given.iter().filter(move |(_, own)| *own == mutates);
        let changed = of(true).map(|(capability, _)| format!("changes {capability}"));
        let read = of(false).map(|(capability, _)| uses(capability));
        return changed.chain(read).collect();
    }
    let declaration = &driver.declaration;
    let entry = declaration.implements_tool(contract.id.as_str(), &contract.version);
    let program = entry.and_then(|entry| entry.program.as_ref());
    let program = program.map(|program| {
        let words = std::iter::once(&program.command).chain(&program.args);
        let words: Vec<&str> = words.map(String::as_str).collect();
        format!("runs {} outside the sandbox", words.join(" "))
    });
    let added = &declaration.requires.capabilities;
    let reads = contract.requires.capabilities.union(added);
    (program.into_iter())
        .chain(changes(contract))
        .chain(reads.iter().map(uses))
        .collect()
}

pub(super) fn changes(contract: &Tool) -> impl Iterator<Item = String> {
    let changed = contract.mutates.iter();
    changed.map(|capability| format!("changes {capability}"))
}

pub(super) fn asks_each_time(contract: &Contract<'_>, policy: &Policy) -> bool {
    let approval = policy.approval_of(contract.tool, contract.publisher);
    contract.tool.risk_level >= IRREVERSIBLE || approval == ApprovalClass::Always
}

impl DriverFacts {
    /// Whether policy lets it run, with or without approval.
    pub fn is_open(&self) -> bool {
        self.access.is_some()
    }

    /// The access that policy allows it.
    pub(crate) fn allowed(&self) -> Option<&Allowed> {
        self.decision.allowed()
    }

    /// The declared hosts and workspaces that a rule with `partial` withholds from it.
    pub fn without(&self) -> &[Withheld] {
        let partial = self.allowed().and_then(|allowed| allowed.partial.as_ref());
        partial.map_or(&[], |partial| &partial.withheld)
    }
}

impl Deref for DriverFacts {
    type Target = LoadedDriver;

    fn deref(&self) -> &LoadedDriver {
        &self.driver
    }
}

/// The driver of a bundle, for all the tools that it may serve.
pub struct LoadedDriver {
    /// Its id.
    pub id: Arc<str>,
    /// Who published it, who may differ from the tool's publisher.
    pub publisher: Arc<str>,
    /// Its declaration, which is untrusted text.
    pub declaration: Arc<Driver>,
    pub(crate) bundle: Arc<str>,
    pub(crate) withdrawal: Arc<Withdrawal>,
    /// `None` for a kind that this host does not run. No route has such a driver.
    pub(crate) executor: Option<Arc<dyn Executor>>,
    pub(crate) reported: Reported,
    pub(crate) health: Health,
}

impl LoadedDriver {
    pub(super) fn new(
        entry: DriverEntry,
        bundle: &Arc<str>,
        publisher: &Arc<str>,
        withdrawal: &Arc<Withdrawal>,
        executors: &Executors,
    ) -> Self {
        Self {
            id: entry.driver.id.as_str().into(),
            bundle: bundle.clone(),
            publisher: publisher.clone(),
            withdrawal: withdrawal.clone(),
            executor: executors.executor(&entry.driver, publisher, entry.component),
            declaration: entry.driver,
            reported: Reported::default(),
            health: Health::default(),
        }
    }

    /// The features of its executor that the stages need.
    pub(crate) fn features(&self) -> Features {
        let executor = self.executor.as_ref();
        executor.map_or_else(Features::default, |executor| executor.features())
    }

    /// Whether a call can use it without waiting for its preparation.
    pub(crate) fn is_ready(&self) -> bool {
        let executor = self.executor.as_ref();
        executor.is_none_or(|executor| executor.is_ready())
    }
}
