//! The arguments and the result of [`crate::decide`].

use std::fmt;

use serde::Serialize;

use crate::approval_class::ApprovalClass;
use crate::approval_policy::PolicyReference;
use crate::denial::Denial;
use crate::effects::Effects;
use crate::grant::Grant;
use crate::implementation::IRREVERSIBLE_RISK;
use crate::machine::Machine;
use crate::operator_claims::Confirmed;
use crate::partial::Partial;
use crate::rule_id::RuleId;

/// What is known beyond contract and driver. Nothing here depends on a call's
/// input: the decision is made once for each pair of contract and driver.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecisionContext<'m> {
    /// The joined effects of all tools that it reaches over `requires.tools`, of
    /// contract and driver, over any number of steps; of each tool the joined
    /// effects of all its drivers. A tool that is not there can do nothing.
    pub reachable: Effects,
    /// Where calls would run; `None`: every directory can be used.
    pub machine: Option<&'m Machine>,
}

impl DecisionContext<'static> {
    /// A request of a tool that reaches tools with these effects.
    #[must_use]
    pub fn reaching(reachable: Effects) -> Self {
        Self {
            reachable,
            machine: None,
        }
    }
}

impl DecisionContext<'_> {
    /// The same, for calls on this machine.
    #[must_use]
    pub fn on(self, machine: &Machine) -> DecisionContext<'_> {
        DecisionContext {
            reachable: self.reachable,
            machine: Some(machine),
        }
    }
}

/// What policy says about one contract carried out by one driver.
///
/// What an application may show of it:
///
/// ```
/// use toolward_policy::Decision;
///
/// fn show(decision: &Decision) -> String {
///     match decision {
///         Decision::Allow(allowed) => format!("allowed by {:?}", allowed.rules),
///         Decision::Ask(_, reasons) => format!("a person is asked: {reasons:?}"),
///         Decision::Deny(denial) => format!("blocked: {denial}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Calls may run with this grant.
    Allow(Allowed),
    /// A call may run with this grant once a person approves it. There is at least
    /// one reason.
    Ask(Allowed, Vec<AskReason>),
    /// The tool is blocked.
    Deny(Denial),
}

impl Decision {
    /// The grant, unless the tool is blocked.
    #[must_use]
    pub fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Allow(allowed) | Self::Ask(allowed, _) => Some(&allowed.grant),
            Self::Deny(_) => None,
        }
    }
}

/// A grant and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowed {
    /// All that the sandbox gets.
    pub grant: Grant,
    /// The rules that gave something, in order. Empty where nothing was
    /// declared.
    pub rules: Vec<RuleId>,
    /// The rules with `preapproved` that replace a person's approval; empty where
    /// none was needed.
    pub preapproved: Vec<RuleId>,
    /// The tool's claims about itself that the operator confirms.
    pub confirmed: Confirmed,
    /// The effects of a call, including those of the tools that it reaches: the
    /// source of annotations.
    pub effects: Effects,
    /// The effects of the call itself, without the tools that it reaches.
    pub own_effects: Effects,
    /// What it is served without, where a rule says `partial`; `None`: it gets all that is declared.
    pub partial: Option<Partial>,
    /// The strictest approval class of contract, reachable tools, defaults and
    /// rules.
    pub approval: ApprovalClass,
}

/// Why a person has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "by")]
#[non_exhaustive]
pub enum AskReason {
    /// The contract's `approval` is `always`.
    Contract,
    /// The contract's `approval` refers to a policy: the reason itself where that asks
    /// always, and beside other reasons else.
    Policy(PolicyReference),
    /// It changes something.
    Mutates,
    /// Its risk level is 2, effects outside, or 3, effects that can't be undone
    /// (AIP-14, `risk_level`).
    Risk(u8),
    /// A tool that it reaches changes something.
    ReachesMutation,
    /// A tool that it reaches has risk level 2 or 3.
    ReachesRisk(u8),
    /// A tool that it reaches always asks.
    ReachesApproval,
    /// `[defaults] approval` is `always`.
    Default,
    /// A rule with `approval = "always"`.
    Rule(RuleId),
}

impl AskReason {
    /// Whether a rule with `preapproved` can replace the person: for changes, up to
    /// risk level 2.
    #[must_use]
    pub fn can_be_preapproved(&self) -> bool {
        match self {
            Self::Mutates | Self::ReachesMutation => true,
            Self::Risk(level) | Self::ReachesRisk(level) => *level < IRREVERSIBLE_RISK,
            Self::Policy(reference) => reference.approval != ApprovalClass::Always,
            Self::Contract | Self::ReachesApproval | Self::Default | Self::Rule(_) => false,
        }
    }
}

impl fmt::Display for AskReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contract => f.write_str("its contract always asks for approval"),
            Self::Policy(reference) => write!(f, "its contract refers to {reference}"),
            Self::Mutates => f.write_str("it changes something"),
            Self::Risk(level) => write!(f, "its contract declares risk level {level}"),
            Self::ReachesMutation => f.write_str("a tool that it can call changes something"),
            Self::ReachesRisk(level) => {
                write!(f, "a tool that it can call has risk level {level}")
            }
            Self::ReachesApproval => {
                f.write_str("a tool that it can call always asks for approval")
            }
            Self::Default => f.write_str("the policy's default is to ask always"),
            Self::Rule(rule) => write!(f, "{rule} asks always"),
        }
    }
}
