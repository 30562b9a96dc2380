//! `[[grant]]`, `[[deny]]` and `[defaults]` as validated values, and what people know a rule by. That the values of one
//! table fit together is checked when a [`crate::Policy`] is made of them.

use std::collections::BTreeSet;
use std::fmt;

use ipnet::IpNet;
use serde::Serialize;
use toolward_contract::capability::{Capability, CapabilitySet};
use toolward_contract::tool::McpResult;

use crate::approval::ApprovalClass;
use crate::grant::OnViolation;
use crate::implementation::{Contract, IRREVERSIBLE_RISK};
use crate::name::{Publisher, ToolPattern};

/// `[[grant]]`: what the operator is ready to give to the tools of one
/// publisher. It gives nothing to a tool that does not declare it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The publisher of the contract.
    pub publisher: Publisher,
    /// The tools; in a file, all of the publisher's by default.
    pub tool: ToolPattern,
    /// The action that the tools implement; `None`: whichever they do, or none. A rule with one gives
    /// `requires` and `mutates`, and nothing else.
    pub action: Option<RuleAction>,
    /// The publisher of the driver; in a file, the contract's by default.
    pub driver_publisher: Publisher,
    /// The one driver that the rule is about; `None`: all. Only a rule that
    /// names a driver covers what the driver's own `requires` adds.
    pub driver: Option<String>,
    /// What may be read or called.
    pub requires: CapabilitySet,
    /// What may be changed, and therefore read, too; a secret is stored by it, not
    /// used.
    pub mutates: CapabilitySet,
    /// Classes that this host does not know, and whose declaration in `mutates` is
    /// accepted all the same: it counts as a change, and gives nothing.
    pub accepts: BTreeSet<String>,
    /// Names of secrets in `requires` whose values the guest may read itself.
    pub reveal: Vec<String>,
    /// Whether `http://` passes, too, to the hosts of this rule.
    pub plain_http: bool,
    /// Addresses beyond global unicast that the hosts of this rule may have.
    pub addresses: Vec<IpNet>,
    /// Headers with credentials (`authorization`, `cookie`) that the guest may
    /// set itself, for the hosts of this rule.
    pub guest_headers: Vec<String>,
    /// Names that its tools may ask to be shown by over MCP, beyond those inside their
    /// publisher's own prefixes. It gives nothing else.
    pub names: Vec<String>,
    /// Which half of their results clients of MCP are sent; `None`: as the contract states. It gives nothing.
    pub mcp_result: Option<McpResult>,
    /// Raises the approval class of the tools that the rule matches.
    pub approval: ApprovalClass,
    /// The operator's yes in writing: it stands for the person's where
    /// something is changed and up to risk 2, never for `always` and risk 3.
    pub preapproved: bool,
    /// What the operator believes of what the tools say of themselves.
    pub confirms: Confirmed,
    /// What happens at the first attempt to go beyond the grant.
    pub on_violation: OnViolation,
    /// Whether the driver of another publisher that the rule binds goes before the drivers of the
    /// contract's publisher.
    pub prefer: bool,
    /// Whether calls fall to that driver once another one has failed, if `[resolve]` allows
    /// fallback at all.
    pub fallback: bool,
    /// Whether a call that changes something falls to the next driver also where the one before may have done it. For one
    /// tool; it has no effect unless the contract is idempotent and its risk is below 2.
    pub repeats: bool,
    /// Whether a tool of which the rule gives a host or workspace is served without the rest that no rule
    /// gives. Everything else that is declared is given, or the tool is blocked.
    pub partial: bool,
}

impl Rule {
    /// A rule about all tools of a publisher that gives nothing.
    #[must_use]
    pub fn new(publisher: Publisher) -> Self {
        Self {
            driver_publisher: publisher.clone(),
            publisher,
            tool: ToolPattern::all(),
            action: None,
            driver: None,
            requires: CapabilitySet::new(),
            mutates: CapabilitySet::new(),
            accepts: BTreeSet::new(),
            reveal: Vec::new(),
            plain_http: false,
            addresses: Vec::new(),
            guest_headers: Vec::new(),
            names: Vec::new(),
            mcp_result: None,
            approval: ApprovalClass::Auto,
            preapproved: false,
            confirms: Confirmed::default(),
            on_violation: OnViolation::Record,
            prefer: false,
            fallback: false,
            repeats: false,
            partial: false,
        }
    }

    /// Whether the rule is about a contract, whichever driver carries it out.
    pub fn is_about(&self, contract: &Contract<'_>) -> bool {
        let tool = contract.tool;
        self.publisher.as_str() == contract.publisher
            && self.tool.matches(tool.id.as_str(), tool.version.major)
            && (self.action.as_ref()).is_none_or(|action| action.is_implemented_by(contract))
    }

    /// Whether a rule with an action may accept a class of the contract: its action declares the class itself, so that
    /// no tool gets more accepted than the action that the operator has read.
    pub(crate) fn is_declared_by_action(
        &self,
        contract: &Contract<'_>,
        asked: &Capability,
    ) -> bool {
        let implements = contract.tool.implements.as_ref();
        let declared = || {
            implements.is_some_and(|one| {
                let mut mutates = one.action.mutates.iter();
                mutates.any(|capability| capability.class() == asked.class())
            })
        };
        self.action.is_none() || declared()
    }

    /// Whether it binds a driver of another publisher to contracts: it names both.
    pub(crate) fn binds(&self) -> bool {
        self.driver.is_some() && self.driver_publisher != self.publisher
    }
}

/// `[[deny]]`: overrides every grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRule {
    /// The publisher of the contract or of the driver; `None`: all.
    pub publisher: Option<Publisher>,
    /// The tools.
    pub tool: ToolPattern,
    /// What is denied: each declared capability that has anything in common
    /// with one of these. `None`: the whole tool. An empty set denies nothing.
    pub capabilities: Option<CapabilitySet>,
}

impl DenyRule {
    /// A rule that denies all tools of all publishers.
    #[must_use]
    pub fn all() -> Self {
        Self {
            publisher: None,
            tool: ToolPattern::all(),
            capabilities: None,
        }
    }
}

/// `[defaults]`. `None`: not set; a later layer that sets it wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The least approval class of every tool.
    pub approval: Option<ApprovalClass>,
    /// What happens at the first attempt to go beyond a grant.
    pub on_violation: Option<OnViolation>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tools {} of {}", self.tool, self.publisher)?;
        if let Some(action) = &self.action {
            write!(f, " that implement {action}")?;
        }
        match &self.driver {
            Some(driver) => write!(f, ", by driver {driver} of {}", self.driver_publisher),
            None if self.driver_publisher != self.publisher => {
                write!(f, ", by drivers of {}", self.driver_publisher)
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for DenyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.capabilities {
            None => f.write_str("everything")?,
            Some(capabilities) => {
                const MAX_SHOWN: usize = 5;
                let shown: Vec<String> = capabilities
                    .iter()
                    .take(MAX_SHOWN)
                    .map(ToString::to_string)
                    .collect();
                f.write_str(&shown.join(", "))?;
                if capabilities.len() > MAX_SHOWN {
                    f.write_str(", …")?;
                }
            }
        }
        write!(f, " for tools {}", self.tool)?;
        match &self.publisher {
            Some(publisher) => write!(f, " of {publisher}"),
            None => f.write_str(" of everybody"),
        }
    }
}

/// An action of one publisher, as a rule names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAction {
    /// The action's id, such as `storage:commit`.
    pub id: String,
    /// Who publishes the action: the publisher of the tools, or of the library that they take it from.
    pub library: Publisher,
}

impl RuleAction {
    /// Whether a contract implements the action, and by a name that others know it by: inline actions and those at a
    /// path are the contract's alone. Never for effects that can't be undone: a tool of risk level 3 is named.
    pub(crate) fn is_implemented_by(&self, contract: &Contract<'_>) -> bool {
        let implements = contract.tool.implements.as_ref();
        let shared = implements.and_then(|one| one.shared(contract.publisher));
        contract.tool.risk_level < IRREVERSIBLE_RISK
            && shared == Some((self.id.as_str(), self.library.as_str()))
    }
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "action {} of {}", self.id, self.library)
    }
}

/// The claims of a contract that the operator stands for, though the tool changes
/// something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Confirmed {
    /// `idempotent: true` in the contract: calling twice has the effect of calling
    /// once.
    pub idempotent: bool,
    /// `metadata.mcp.annotations.destructiveHint: false`: it adds, and neither
    /// overwrites nor deletes.
    pub additive: bool,
}

impl Confirmed {
    /// What one of two rules confirms.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent || other.idempotent,
            additive: self.additive || other.additive,
        }
    }

    /// What is confirmed of both of two drivers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent && other.idempotent,
            additive: self.additive && other.additive,
        }
    }
}

/// Whether a rule gives or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// `[[grant]]`
    Grant,
    /// `[[deny]]`
    Deny,
}

impl RuleKind {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Deny => "deny",
        }
    }
}

/// Names a rule to people, so that the rule that decided can be shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct RuleId {
    /// Whether it gives or denies.
    pub kind: RuleKind,
    /// Its place among the rules of its kind in its source, from 1.
    pub number: usize,
    /// Where it comes from, a file's name for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The line where its table stands, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What it is about, in a few words.
    pub description: String,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = format!("[[{}]] {}", self.kind.table(), self.number);
        let place = written_at(&table, self.source.as_deref(), self.line);
        write!(f, "{place}: {}", self.description)
    }
}

/// A table with its source and line.
pub(crate) fn written_at(table: &str, source: Option<&str>, line: Option<usize>) -> String {
    match (source, line) {
        (Some(source), Some(line)) => format!("{table} ({source}:{line})"),
        (Some(source), None) => format!("{table} ({source})"),
        (None, Some(line)) => format!("{table} (line {line})"),
        (None, None) => table.to_owned(),
    }
}

/// A rule and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) id: RuleId,
    pub(crate) rule: T,
}
