//! The decision: what a contract and its driver declare, against what the
//! operator grants. A pure function without I/O.
//!
//! This host grants nothing yet: a declaration that is not empty is denied,
//! and so is whatever a person would have to approve.

use std::fmt;

use toolward_contract::capability::CapabilitySet;
use toolward_contract::driver::Driver;
use toolward_contract::tool::{Approval, Tool};

/// All that a sandbox gets. Made by [`decide`] only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant(());

/// What [`decide`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The call may run with this grant.
    Allow(Grant),
    /// The call may run with this grant once a person has said yes.
    Ask(Grant, Reason),
    /// These declared capabilities are not granted.
    Deny(CapabilitySet),
}

/// Why a person has to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The contract's `approval`.
    Approval,
    /// The contract's `risk_level` is 2 or 3: effects outside, or such that
    /// can't be undone.
    Risk(u8),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approval => f.write_str("its contract asks for a person's approval"),
            Self::Risk(level) => write!(f, "its contract declares risk level {level}"),
        }
    }
}

/// From this risk level on a person is asked (AIP-14 `risk_level`: 2 is
/// "external side effects").
const ASK_FROM_RISK: u8 = 2;

/// Decides what `driver` gets to carry out `contract`.
///
/// What is declared is `requires` and `mutates` of the contract, and what the
/// driver adds to it.
pub fn decide(contract: &Tool, driver: &Driver) -> Decision {
    let declared = contract.declaration().union(&driver.requires.capabilities);
    if !declared.is_empty() {
        return Decision::Deny(declared);
    }
    if contract.risk_level >= ASK_FROM_RISK {
        return Decision::Ask(Grant(()), Reason::Risk(contract.risk_level));
    }
    match contract.approval.effective() {
        Approval::Auto => Decision::Allow(Grant(())),
        // Nothing was declared in `mutates`, so there is nothing to ask about.
        Approval::OnMutate => Decision::Allow(Grant(())),
        Approval::Always | Approval::Policy(_) => Decision::Ask(Grant(()), Reason::Approval),
    }
}
