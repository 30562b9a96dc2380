//! The arguments and the result of [`crate::decide`], and the hints about a tool that are derived
//! from the result.

use serde::Serialize;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::tool::Tool;

use crate::approval::{ApprovalClass, PolicyReference};
use crate::denial::Denial;
use crate::evaluate::{Evaluated, PolicyView, parts};
use crate::grant::Grant;
use crate::implementation::{self, ASK_FROM_RISK, Contract, IRREVERSIBLE_RISK, Machine};
use crate::name::RuleId;
use crate::partial::Partial;
use crate::rule::Confirmed;

/// What a decision depends on in addition to contract, driver and policy. Nothing here depends on
/// the input of a call, since the decision is made once for each pair of contract and driver.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecisionContext<'m> {
    /// The joined effects of all tools that the tool reaches through `requires.tools` of contract
    /// and driver, in any number of steps. For each tool, the effects of all its drivers are
    /// joined. A missing tool has no effects.
    pub reachable: Effects,
    /// The machine where calls would run. `None` means that every directory can be used.
    pub machine: Option<&'m Machine>,
}

/// The policy's decision about one contract with one driver.
///
/// An application may show this:
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
    /// A call may run with this grant once a person approves it. The list has at least one reason.
    Ask(Allowed, Vec<AskReason>),
    /// The tool is blocked.
    Deny(Denial),
}

impl Decision {
    /// The grant, unless the tool is blocked.
    pub fn grant(&self) -> Option<&Grant> {
        self.allowed().map(|allowed| &allowed.grant)
    }

    /// The allowed access, with or without approval.
    pub fn allowed(&self) -> Option<&Allowed> {
        match self {
            Self::Allow(allowed) | Self::Ask(allowed, _) => Some(allowed),
            Self::Deny(_) => None,
        }
    }
}

/// A grant and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Everything that the sandbox gets.
    pub grant: Grant,
    /// The rules that granted something, in order. Empty if nothing was declared.
    pub rules: Vec<RuleId>,
    /// The rules with `preapproved` that replace a person's approval; empty if none was needed.
    pub preapproved: Vec<RuleId>,
    /// The tool's claims about itself that the operator confirms.
    pub confirmed: Confirmed,
    /// The effects of a call, including the effects of the tools that it reaches. Annotations are
    /// derived from them.
    pub effects: Effects,
    /// The effects of the call itself, without the tools that it reaches.
    pub own_effects: Effects,
    /// The granted and the left-out parts, if a rule has `partial`; `None` if the tool gets
    /// everything that is declared.
    pub partial: Option<Partial>,
    /// The strictest approval class of contract, reachable tools, defaults and rules.
    pub approval: ApprovalClass,
}

/// Why a person must be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "by")]
pub enum AskReason {
    /// The contract's `approval` is `always`.
    #[error("its contract always asks for approval")]
    Contract,
    /// The contract's `approval` refers to an approval policy (`[approval.NAME]`). If that policy
    /// always asks, this is a reason by itself. Otherwise it is only named next to other reasons.
    #[error("its contract refers to {0}")]
    Policy(PolicyReference),
    /// It changes something.
    #[error("it changes something")]
    Mutates,
    /// Its risk level (AIP-14, `risk_level`) is 2, external effects, or 3, effects that can't be
    /// undone.
    #[error("its contract declares risk level {0}")]
    Risk(u8),
    /// A tool that it reaches changes something.
    #[error("a tool that it can call changes something")]
    ReachesMutation,
    /// A tool that it reaches has risk level 2 or 3.
    #[error("a tool that it can call has risk level {0}")]
    ReachesRisk(u8),
    /// A tool that it reaches always requires approval.
    #[error("a tool that it can call always asks for approval")]
    ReachesApproval,
    /// `[defaults] approval` is `always`.
    #[error("the policy's default is to ask always")]
    Default,
    /// A rule with `approval = "always"`.
    #[error("{0} asks always")]
    Rule(RuleId),
}

impl AskReason {
    /// Whether a rule with `preapproved` can replace the person. It can for changes, up to risk
    /// level 2.
    pub fn can_be_preapproved(&self) -> bool {
        match self {
            Self::Mutates | Self::ReachesMutation => true,
            Self::Risk(level) | Self::ReachesRisk(level) => *level < IRREVERSIBLE_RISK,
            Self::Policy(reference) => reference.approval != ApprovalClass::Always,
            Self::Contract | Self::ReachesApproval | Self::Default | Self::Rule(_) => false,
        }
    }
}

/// The effects of calling a tool. Approval and annotations are derived from the effects of a tool,
/// joined with the effects of all tools that it reaches through `requires.tools`. So a harmless
/// tool can't hide a dangerous one. The default is a tool that only computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Effects {
    /// Whether it changes something; a class that this host does not know counts as a change.
    pub writes: bool,
    /// Whether it reaches other hosts.
    pub network: bool,
    /// Whether it uses or stores secrets.
    pub secrets: bool,
    /// The risk level, 0 to 3.
    pub risk: u8,
    /// The approval class of the contract; `always` if it refers to a policy that is not resolved.
    pub approval: ApprovalClass,
}

impl Effects {
    /// The effects of one tool with one driver, without the tools that it calls. The driver's own
    /// `requires` is included.
    pub fn of(tool: &Tool, driver: &Driver) -> Self {
        let all = tool.declaration().union(&driver.requires.capabilities);
        let mut effects = Self {
            writes: !tool.mutates.is_empty(),
            risk: tool.risk_level,
            approval: (&tool.approval).into(),
            ..Self::default()
        };
        // No declaration describes the effects of a program, so it counts as a change with external
        // effects.
        if driver.kind == DriverKind::Exec {
            effects.writes = true;
            effects.risk = effects.risk.max(ASK_FROM_RISK);
            effects.approval = effects.approval.max(ApprovalClass::OnMutate);
        }
        for capability in &all {
            let class = capability.class();
            effects.network |= class.is_on_the_network()
                && !implementation::narrowed(capability, &driver.egress).is_empty();
            effects.secrets |= *class == Class::Secret;
            effects.writes |= matches!(class, Class::Other(_));
        }
        effects
    }

    /// Like [`Effects::of`], without the hosts and workspaces that a rule with `partial` leaves
    /// out.
    pub(crate) fn given(view: &PolicyView<'_>, evaluated: &[Evaluated<'_>]) -> Self {
        let Contract { tool, publisher } = view.contract;
        let declared = Self {
            approval: view.policy.approval_of(tool, publisher),
            ..Self::of(tool, view.implementation.driver)
        };
        if evaluated.iter().all(|one| one.withheld.is_empty()) {
            return declared;
        }
        let is_given = |one: &&Evaluated<'_>| one.withheld.is_empty() || !one.found.is_empty();
        let mut given = evaluated.iter().filter(is_given);
        let outside = |asked: &Capability| asked.class().is_on_the_network();
        Self {
            writes: given.any(|one| one.declared.mutates),
            network: parts(evaluated).any(|(_, asked, _)| outside(asked)),
            ..declared
        }
    }

    /// The joined effects of two tools.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            writes: self.writes || other.writes,
            network: self.network || other.network,
            secrets: self.secrets || other.secrets,
            risk: self.risk.max(other.risk),
            approval: self.approval.max(other.approval),
        }
    }
}

/// The AIP-14 `risk_level` from which a contract claims to write.
const WRITES_RISK: u8 = 1;
/// The AIP-14 `risk_level` from which a contract claims external effects.
const EXTERNAL_RISK: u8 = 2;
/// Hints about the effects of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or delete.
    pub destructive: bool,
    /// Calling it twice has the same effect as calling it once.
    pub idempotent: bool,
    /// It has effects outside of this machine.
    pub open_world: bool,
}

impl Hints {
    /// The hints for an unknown tool.
    pub const CAUTIOUS: Self = Self {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: true,
    };

    /// The hints for a contract whose calls have these effects.
    pub fn of(contract: &Tool, effects: Effects, confirmed: Confirmed) -> Self {
        let writes = effects.writes || effects.risk >= WRITES_RISK;
        let outside = effects.network || effects.risk >= EXTERNAL_RISK;
        let reads_only = !writes && !outside && !effects.secrets;
        // Idempotence is the publisher's claim; for a tool that writes, the operator must confirm
        // it.
        let idempotent = contract.idempotent && (!writes || confirmed.idempotent);
        let additive = confirmed.additive
            && effects.risk < IRREVERSIBLE_RISK
            && claims(contract, "destructiveHint", false);
        let destructive = writes && !additive;
        Self {
            read_only: reads_only && !claims(contract, "readOnlyHint", false),
            destructive: destructive || claims(contract, "destructiveHint", true),
            idempotent: idempotent && !claims(contract, "idempotentHint", false),
            open_world: outside || claims(contract, "openWorldHint", true),
        }
    }
}

/// Whether the contract claims this value of the hint in `metadata.mcp.annotations`.
fn claims(contract: &Tool, hint: &str, value: bool) -> bool {
    let mcp = contract.metadata.get("mcp");
    let claimed = mcp.and_then(|mcp| mcp.get("annotations")?.get(hint)?.as_bool());
    claimed == Some(value)
}
