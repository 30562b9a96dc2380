//! The effects of calling a tool, including those of the tools that it calls.

use serde::Serialize;
use toolward_contract::capability::Class;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::tool::Tool;

use crate::approval_class::ApprovalClass;
use crate::declared;
use crate::evaluate::Evaluated;
use crate::implementation::ASK_FROM_RISK;

/// The effects of calling a tool. Approval and annotations follow from them,
/// joined over everything that a tool reaches through `requires.tools`, so that a
/// harmless tool can't launder a dangerous one. The default is a tool that
/// only computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Effects {
    /// Whether it changes something; a class that this host does not know
    /// counts as that.
    pub writes: bool,
    /// Whether it reaches other hosts.
    pub network: bool,
    /// Whether it uses or stores secrets.
    pub secrets: bool,
    /// The risk level, 0 to 3.
    pub risk: u8,
    /// The approval class that the contract asks for; `always` where it refers to a policy that is not resolved.
    pub approval: ApprovalClass,
}

impl Effects {
    /// Those of one tool carried out by one driver, without the tools that it
    /// calls. What the driver's own `requires` adds counts.
    #[must_use]
    pub fn of(tool: &Tool, driver: &Driver) -> Self {
        let all = tool.declaration().union(&driver.requires.capabilities);
        let mut effects = Self {
            writes: !tool.mutates.is_empty(),
            network: false,
            secrets: false,
            risk: tool.risk_level,
            approval: (&tool.approval).into(),
        };
        // What a program does is in no declaration: it counts as a change, with effects
        // outside.
        if driver.kind == DriverKind::Exec {
            effects.writes = true;
            effects.risk = effects.risk.max(ASK_FROM_RISK);
            effects.approval = effects.approval.max(ApprovalClass::OnMutate);
        }
        for capability in &all {
            match capability.class() {
                Class::Network => {
                    effects.network = effects.network
                        || !declared::narrowed(capability, &driver.egress).is_empty();
                }
                Class::External => effects.network = true,
                Class::Secret => effects.secrets = true,
                Class::Other(_) => effects.writes = true,
                Class::Workspace | Class::Database | Class::Tool | Class::User => {}
            }
        }
        effects
    }

    /// [`Effects::of`], without the hosts and workspaces that a rule with `partial` leaves out.
    pub(crate) fn given(tool: &Tool, driver: &Driver, evaluated: &[Evaluated<'_>]) -> Self {
        let declared = Self::of(tool, driver);
        if evaluated.iter().all(|one| one.withheld.is_empty()) {
            return declared;
        }
        let is_given = |one: &&Evaluated<'_>| one.withheld.is_empty() || !one.found.is_empty();
        let mut given = evaluated.iter().filter(is_given);
        let mut parts = evaluated.iter().flat_map(|one| &one.found);
        Self {
            writes: given.any(|one| one.declared.mutates),
            network: parts
                .any(|(asked, _)| matches!(asked.class(), Class::Network | Class::External)),
            ..declared
        }
    }

    /// The same, with the approval class that an operator makes of the contract's.
    #[must_use]
    pub fn asking(self, approval: ApprovalClass) -> Self {
        Self { approval, ..self }
    }

    /// Those of two tools together.
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
