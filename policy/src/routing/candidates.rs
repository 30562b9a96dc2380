//! The drivers that may serve a contract, best first, and why the others may not.

use toolward_contract::driver::{DriverKind, Implements, Platform};

use super::rank::Rank;
use super::rejection::Rejection;
use crate::decision::{Contract, Implementation};
use crate::machine::Machine;
use crate::policy::Policy;

/// A contract with the drivers that may serve it.
pub(super) struct Candidates<'a> {
    pub(super) contract: Contract<'a>,
    pub(super) fit: Vec<(Implementation<'a>, &'a Implements)>,
    pub(super) rejected: Vec<Rejected<'a>>,
}

/// A driver that says it implements a contract, and may not serve it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Rejected<'a> {
    /// The driver.
    pub implementation: Implementation<'a>,
    /// Every reason; at least one.
    pub reasons: Vec<Rejection>,
}

impl<'a> Candidates<'a> {
    /// Sorts the drivers that name the contract into those that may serve it and those that may not.
    pub(super) fn of(
        contract: Contract<'a>,
        drivers: &[Implementation<'a>],
        policy: &Policy,
        machine: &Machine,
    ) -> Self {
        let mut candidates = Self {
            contract,
            fit: Vec::new(),
            rejected: Vec::new(),
        };
        let tool = contract.tool;
        for implementation in drivers {
            let driver = implementation.driver;
            let named = driver.implements.iter();
            let named = named.filter(|entry| entry.tool_id == tool.id);
            let implemented: Vec<String> = named.map(|entry| entry.version_text.clone()).collect();
            if implemented.is_empty() {
                continue;
            }
            let implements = driver.implements_tool(tool.id.as_str(), &tool.version);
            let mut reasons = Vec::new();
            if implementation.publisher != contract.publisher
                && !is_bound(&contract, implementation, policy)
            {
                reasons.push(Rejection::NotBound);
            }
            if implements.is_none() {
                reasons.push(Rejection::Version {
                    implemented,
                    found: tool.version.to_string(),
                });
            }
            let kind = driver.kind.as_str().to_owned();
            if !matches!(driver.kind, DriverKind::Other(_)) {
                if !tool.driver_constraints.permits(&kind) {
                    reasons.push(Rejection::KindForbidden { kind });
                }
            } else {
                reasons.push(Rejection::KindNotRun { kind });
            }
            reasons.extend(lacks(machine, &driver.platform));
            reasons.extend(policy.resolve().rejects(implementation));
            match implements {
                Some(implements) if reasons.is_empty() => {
                    candidates.fit.push((*implementation, implements));
                }
                _ => candidates.rejected.push(Rejected {
                    implementation: *implementation,
                    reasons,
                }),
            }
        }
        let id = |one: &Implementation<'a>| one.driver.id.as_str();
        candidates.fit.sort_by(|(a, of_a), (b, of_b)| {
            Rank::of(&contract, a, of_a).compare(&Rank::of(&contract, b, of_b))
        });
        candidates
            .rejected
            .sort_by(|a, b| id(&a.implementation).cmp(id(&b.implementation)));
        candidates
    }
}

/// What a driver needs and this machine does not have. Disk space does not matter to a sandbox without files.
fn lacks(machine: &Machine, platform: &Platform) -> Vec<Rejection> {
    let mut lacks = Vec::new();
    if !platform.runs_on_os(&machine.os) {
        lacks.push(Rejection::Os {
            needed: platform.os.clone(),
            found: machine.os.clone(),
        });
    }
    if !platform.runs_on_arch(&machine.arch) {
        lacks.push(Rejection::Arch {
            needed: platform.arch.clone(),
            found: machine.arch.clone(),
        });
    }
    let needed = platform.min_memory_mb.unwrap_or(0);
    if needed.saturating_mul(1 << 20) > machine.memory_bytes {
        lacks.push(Rejection::Memory {
            needed_mb: needed,
            maximum_bytes: machine.memory_bytes,
        });
    }
    lacks
}

/// Whether the operator bound another publisher's driver to a contract: by a rule for the contract that names both the
/// driver and its publisher.
fn is_bound(contract: &Contract<'_>, implementation: &Implementation<'_>, policy: &Policy) -> bool {
    policy.grants().any(|rule| {
        rule.is_about(contract)
            && rule.driver.as_deref() == Some(implementation.driver.id.as_str())
            && rule.driver_publisher.as_str() == implementation.publisher
    })
}
