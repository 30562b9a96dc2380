//! Routing: the drivers that may serve each tool, their order, the tools that each call reaches,
//! and the policy's decision. [`routes`] is a pure function. A host serves calls by its result, and
//! commands show the same result to an operator.

mod candidates;
mod rank;

use std::collections::{BTreeMap, BTreeSet};

use candidates::Candidates;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::{Driver, Implements};
use toolward_contract::tool::Tool;

use crate::decision::{Decision, DecisionContext, Effects};
use crate::explain::Explanation;
use crate::implementation::{Contract, Implementation, Machine};
use crate::policy::Policy;
use crate::rule::RuleFallback;

pub use candidates::{Rejected, Rejection};

/// A contract with its routes.
#[derive(Debug, Clone)]
pub struct ToolRoutes<'a> {
    /// The contract.
    pub contract: Contract<'a>,
    /// The drivers that may serve it, best first, each with the policy's decision.
    pub routes: Vec<Route<'a>>,
    /// The drivers that name the contract but may not serve it, sorted by id.
    pub rejected: Vec<Rejected<'a>>,
}

impl ToolRoutes<'_> {
    /// Whether the region that the policy requires is the only reason why no driver serves the
    /// contract. Ignores other publishers' drivers that no rule binds to it.
    pub fn lacks_only_region(&self) -> bool {
        let mut candidates = self
            .rejected
            .iter()
            .filter(|one| !one.reasons.contains(&Rejection::NotBound))
            .peekable();
        self.routes.is_empty()
            && candidates.peek().is_some()
            && candidates.all(|one| one.reasons.iter().all(Rejection::is_regional))
    }
}

/// One driver that may serve a contract.
#[derive(Debug, Clone)]
pub struct Route<'a> {
    /// The contract.
    pub contract: Contract<'a>,
    /// The driver.
    pub implementation: Implementation<'a>,
    /// The driver's entry for the contract.
    pub implements: &'a Implements,
    /// The tools that a call can reach in turn.
    pub reach: Reach,
    /// The policy's decision.
    pub decision: Decision,
    /// Whether it may take over a call after another driver of the contract failed.
    pub takes_over: bool,
    /// Whether a failed call may move from this driver to another, or from another to this driver,
    /// although a change may then be made twice.
    pub repeats: bool,
    /// Routes with the same number have the same publisher, and are ordered only by their ids.
    pub tie: usize,
}

/// Two contracts or two drivers with the same `id@major`, which no host accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("two bundles bring the same {kind}")]
pub struct DuplicateId {
    /// `tool` or `driver`.
    pub kind: &'static str,
    /// The index of the first one in the given list.
    pub first: usize,
    /// The index of the second one.
    pub second: usize,
}

/// Computes the routes of all `tools`, in their order, from `drivers`, under `policy` on `machine`.
///
/// # Errors
/// If two tools, or two drivers that are not denied, have the same `id@major`.
pub fn routes<'a>(
    tools: &[Contract<'a>],
    drivers: &[Implementation<'a>],
    policy: &Policy,
    machine: &Machine,
) -> Result<Vec<ToolRoutes<'a>>, DuplicateId> {
    // A denied driver serves nothing, so its id stays free.
    let driver_ids = drivers.iter().enumerate();
    let driver_ids = driver_ids.filter(|(_, one)| one.driver.denied.is_none());
    let driver_ids = driver_ids.map(|(at, one)| (at, one.driver.major_id()));
    unique("driver", driver_ids)?;
    let tool_ids = tools.iter().map(|one| one.tool.major_id());
    unique("tool", tool_ids.enumerate())?;
    let candidates = tools.iter();
    let candidates = candidates.map(|one| Candidates::of(*one, drivers, policy, machine));
    let candidates: Vec<Candidates<'a>> = candidates.collect();
    let callable = Callable::new(&candidates, policy);
    let found = candidates.iter().map(|own| ToolRoutes {
        contract: own.contract,
        routes: of_tool(own, &callable, policy, machine),
        rejected: own.rejected.clone(),
    });
    Ok(found.collect())
}

fn of_tool<'a>(
    own: &Candidates<'a>,
    callable: &Callable<'_, 'a>,
    policy: &Policy,
    machine: &Machine,
) -> Vec<Route<'a>> {
    let contract = own.contract;
    let fit = own.fit.iter().map(|fit| {
        let implementation = &fit.implementation;
        let reach = callable.reach(contract.tool, implementation.driver);
        let request = DecisionContext {
            reachable: reach.effects,
            machine: Some(machine),
        };
        let decision = crate::decide(&contract, implementation, policy, &request);
        Route {
            repeats: repeats(&contract, &decision, policy),
            decision,
            contract,
            implementation: *implementation,
            implements: fit.entry,
            reach,
            takes_over: fit.takes_over,
            tie: fit.tie,
        }
    });
    fit.collect()
}

/// The lowest risk level of calls that are never repeated.
const ONCE_ONLY: u8 = 2;

/// Whether the operator allows a second driver to repeat a possible change of the first, and the
/// contract permits it.
fn repeats(contract: &Contract<'_>, decision: &Decision, policy: &Policy) -> bool {
    let (Decision::Allow(allowed) | Decision::Ask(allowed, _)) = decision else {
        return false;
    };
    contract.tool.idempotent
        && allowed.effects.risk < ONCE_ONLY
        && policy
            .grants()
            .any(|rule| rule.fallback == RuleFallback::Repeat && rule.is_about(contract))
}

fn unique(
    kind: &'static str,
    ids: impl Iterator<Item = (usize, String)>,
) -> Result<(), DuplicateId> {
    let mut seen = BTreeMap::new();
    for (second, id) in ids {
        if let Some(first) = seen.insert(id, second) {
            return Err(DuplicateId {
                kind,
                first,
                second,
            });
        }
    }
    Ok(())
}

impl Route<'_> {
    /// The decision with the reasons for it. `policy` and `machine` must be the same as when the
    /// route was made.
    pub fn explain(&self, policy: &Policy, machine: &Machine) -> Explanation {
        let request = DecisionContext {
            reachable: self.reach.effects,
            machine: Some(machine),
        };
        crate::explain(&self.contract, &self.implementation, policy, &request)
    }

    /// Whether the driver has another publisher than the contract.
    pub fn is_foreign(&self) -> bool {
        self.contract.publisher != self.implementation.publisher
    }

    /// Whether calls may run by this route, with or without approval.
    pub fn is_open(&self) -> bool {
        self.decision.grant().is_some()
    }
}

/// The tools reachable from a tool, and their effects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// The joined effects of all these tools, with every driver that may serve each.
    pub effects: Effects,
    /// The tools by `id@major`, in order.
    pub tools: Vec<String>,
}

/// All tools, by the names that other tools use for them.
struct Callable<'c, 'a> {
    /// Tools by name. An id stands for all its major versions, although a call reaches only the
    /// newest.
    by_name: BTreeMap<String, Vec<&'c Candidates<'a>>>,
    policy: &'c Policy,
}

impl<'c, 'a> Callable<'c, 'a> {
    fn new(all: &'c [Candidates<'a>], policy: &'c Policy) -> Self {
        let mut by_name: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for candidates in all {
            let tool = candidates.contract.tool;
            for name in [tool.id.to_string(), tool.major_id()] {
                by_name.entry(name).or_default().push(candidates);
            }
        }
        Self { by_name, policy }
    }

    /// The tools that a call of `tool` through `driver` can reach.
    fn reach(&self, tool: &Tool, driver: &Driver) -> Reach {
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = called(tool, driver);
        let mut effects = Effects::default();
        while let Some(name) = open.pop() {
            for candidates in self.by_name.get(&name).into_iter().flatten() {
                let tool = candidates.contract.tool;
                if !seen.insert(tool.major_id()) {
                    continue;
                }
                for fit in &candidates.fit {
                    let implementation = &fit.implementation;
                    let own = Effects::of(tool, implementation.driver);
                    let approval = self.policy.approval_of(tool, candidates.contract.publisher);
                    effects = effects.join(Effects { approval, ..own });
                    open.extend(called(tool, implementation.driver));
                }
            }
        }
        Reach {
            effects,
            tools: seen.into_iter().collect(),
        }
    }
}

/// The tools that a contract and its driver declare to call.
fn called(tool: &Tool, driver: &Driver) -> Vec<String> {
    let declared = tool.declaration().union(&driver.requires.capabilities);
    declared
        .of_class(&Class::Tool)
        .map(Capability::scope)
        .collect()
}
