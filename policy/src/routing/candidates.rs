//! The drivers that may serve a contract, best first, and why the others may not.

use std::fmt;

use serde::Serialize;
use toolward_contract::driver::{DriverKind, Implements, Platform};

use super::rank::Rank;
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

/// Why a driver may not serve a contract, independent of grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
#[non_exhaustive]
pub enum Rejection {
    /// It is another publisher's, and no rule for the contract names the driver and its publisher.
    NotBound,
    /// It implements other versions of the contract.
    Version {
        /// The ranges that it implements.
        implemented: Vec<String>,
        /// The contract's version.
        found: String,
    },
    /// No host runs drivers of this kind.
    KindNotRun {
        /// The driver's kind.
        kind: String,
    },
    /// The contract's `driver_constraints` do not permit its kind.
    KindForbidden {
        /// The driver's kind.
        kind: String,
    },
    /// It runs on other operating systems.
    Os {
        /// Those that it names.
        needed: Vec<String>,
        /// The host's.
        found: String,
    },
    /// It runs on other processors.
    Arch {
        /// Those that it names.
        needed: Vec<String>,
        /// The host's.
        found: String,
    },
    /// It needs more memory than the operator lets one call have.
    Memory {
        /// What it needs, in MiB.
        needed_mb: u64,
        /// The operator's maximum.
        maximum_bytes: u64,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBound => f.write_str(
                "it is another publisher's, and no [[grant]] binds it to this tool by `driver` and \
                 `driver_publisher`",
            ),
            Self::Version { implemented, found } => write!(
                f,
                "it implements {}, and the contract has version {found}",
                implemented.join(" and ")
            ),
            Self::KindNotRun { kind } => write!(
                f,
                "it is of kind {kind}, and this host runs component and http"
            ),
            Self::KindForbidden { kind } => write!(
                f,
                "it is of kind {kind}, which the contract's driver_constraints do not permit"
            ),
            Self::Os { needed, found } => {
                write!(
                    f,
                    "it needs {}, and this host runs {found}",
                    needed.join(" or ")
                )
            }
            Self::Arch { needed, found } => {
                write!(
                    f,
                    "it needs {}, and this host is {found}",
                    needed.join(" or ")
                )
            }
            Self::Memory {
                needed_mb,
                maximum_bytes,
            } => write!(
                f,
                "it needs {needed_mb} MiB of memory, and a call gets at most {} MiB",
                maximum_bytes >> 20
            ),
        }
    }
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
            if matches!(driver.kind, DriverKind::Component | DriverKind::Http) {
                if !tool.driver_constraints.permits(&kind) {
                    reasons.push(Rejection::KindForbidden { kind });
                }
            } else {
                reasons.push(Rejection::KindNotRun { kind });
            }
            reasons.extend(lacks(machine, &driver.platform));
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
    let tool = contract.tool;
    policy.grants().any(|rule| {
        rule.publisher.as_str() == contract.publisher
            && rule.tool.matches(tool.id.as_str(), tool.version.major)
            && rule.driver.as_deref() == Some(implementation.driver.id.as_str())
            && rule.driver_publisher.as_str() == implementation.publisher
    })
}
