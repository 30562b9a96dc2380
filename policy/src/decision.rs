//! What [`crate::decide`] takes and finds.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toolward_contract::capability::Capability;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

use crate::confirmed::Confirmed;
use crate::declared::DeclaredBy;
use crate::effects::Effects;
use crate::grant::Grant;
use crate::lines::Lack;
use crate::policy::RuleId;
use crate::routing::{Machine, UnusableDirectory};
use crate::rule::ApprovalClass;

/// A contract and the publisher whose bundle it came in.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// The contract.
    pub tool: &'a Tool,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}

/// A driver and the publisher whose bundle it came in.
#[derive(Debug, Clone, Copy)]
pub struct Implementation<'a> {
    /// The driver.
    pub driver: &'a Driver,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}

/// What is known beyond contract and driver. Nothing here depends on a call's
/// input: the decision is made once for each pair of contract and driver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'m> {
    /// The joined effects of all tools that it reaches over `requires.tools`, of
    /// contract and driver, over any number of steps; of each tool the joined
    /// effects of all its drivers. A tool that is not there can do nothing.
    pub reachable: Effects,
    /// Where calls would run; `None`: every directory can be used.
    pub machine: Option<&'m Machine>,
}

impl Request<'static> {
    /// A request of a tool that reaches tools with these effects.
    #[must_use]
    pub fn reaching(reachable: Effects) -> Self {
        Self {
            reachable,
            machine: None,
        }
    }
}

impl Request<'_> {
    /// The same, for calls on this machine.
    #[must_use]
    pub fn on(self, machine: &Machine) -> Request<'_> {
        Request {
            reachable: self.reachable,
            machine: Some(machine),
        }
    }
}

/// What policy says about one contract carried out by one driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Calls may run with this grant.
    Allow(Allowed),
    /// A call may run with this grant once a person has said yes to it. There is
    /// at least one reason.
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
    /// The rules with `preapproved` that stand for a person's yes; empty where
    /// none was needed.
    pub preapproved: Vec<RuleId>,
    /// What the operator believes of what the tool says of itself.
    pub confirmed: Confirmed,
    /// What a call can bring about, the tools that it reaches included: what
    /// annotations are made of.
    pub effects: Effects,
    /// The strictest approval class of contract, reachable tools, defaults and
    /// rules.
    pub approval: ApprovalClass,
}

/// Why a person has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "by")]
#[non_exhaustive]
pub enum AskReason {
    /// The contract's `approval` is `always`, or defers to a policy that nobody
    /// resolves.
    Contract,
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
    /// Whether a rule with `preapproved` can stand for the person: it can where
    /// something is changed and up to risk 2.
    #[must_use]
    pub fn can_be_preapproved(&self) -> bool {
        match self {
            Self::Mutates | Self::ReachesMutation => true,
            Self::Risk(level) | Self::ReachesRisk(level) => *level < IRREVERSIBLE,
            Self::Contract | Self::ReachesApproval | Self::Default | Self::Rule(_) => false,
        }
    }
}

/// From this risk level on a person is asked.
pub(crate) const ASK_FROM_RISK: u8 = 2;
/// The risk level that only a person can say yes to.
const IRREVERSIBLE: u8 = 3;

impl fmt::Display for AskReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contract => f.write_str("its contract always asks for approval"),
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

/// Why a tool is blocked. It has the names of the pair, so that the lines that
/// would help can be written from it ([`Denial::lines_to_add`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Denial {
    /// `id@major` of the contract.
    pub tool: String,
    /// The contract's publisher.
    pub publisher: String,
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub driver_publisher: String,
    /// The rules that deny the whole tool.
    pub denied_by: Vec<RuleId>,
    /// What is declared and not granted.
    pub missing: Vec<Missing>,
    /// Tables that are lacking beside rules.
    #[serde(skip)]
    pub(crate) lacks: Vec<Lack>,
    /// Directories that were left for the operator to replace and still are.
    #[serde(skip)]
    pub(crate) placeholders: Vec<PathBuf>,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is blocked: ", self.tool)?;
        let rules = self
            .denied_by
            .iter()
            .map(|rule| format!("denied by {rule}"));
        let missing = self.missing.iter().map(ToString::to_string);
        let all: Vec<String> = rules.chain(missing).collect();
        f.write_str(&all.join("; "))
    }
}

/// A declared capability that is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Missing {
    /// The capability, narrowed to what the driver uses.
    pub capability: Capability,
    /// Whether it was declared in `mutates`.
    pub mutates: bool,
    /// Who declared it.
    pub declared_by: DeclaredBy,
    /// Why it is not granted.
    pub why: Why,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.mutates { " (to change it)" } else { "" };
        let who = match self.declared_by {
            DeclaredBy::Contract => "",
            DeclaredBy::Driver => ", which the driver adds",
        };
        write!(f, "`{}`{how}{who}: {}", self.capability, self.why)
    }
}

/// Why a declared capability is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "code", content = "by")]
#[non_exhaustive]
pub enum Why {
    /// No rule gives it.
    NoRule,
    /// A rule gives it for reading, and the contract changes it.
    OnlyReading,
    /// A rule gives storing the secret, and it is to be used.
    OnlyStoring,
    /// It is a wildcard, and no rule writes the wildcard.
    WildcardNotWritten,
    /// The driver adds it, and no rule that gives it names the driver.
    DriverNotNamed,
    /// A deny rule is about it.
    DeniedBy(RuleId),
    /// No `[[workspace]]` maps the path or one above it.
    NoWorkspace,
    /// The directory behind the path can't be used.
    Directory(UnusableDirectory),
    /// No `[[secret]]` of that publisher has the name.
    NoSecret,
    /// Its `[[secret]]` has no origin, and no rule reveals it.
    SecretNotUsable,
    /// Its `[[workspace]]`, `[[secret]]` or `[[service]]` has values for the operator to replace.
    NotChosen,
    /// No `[[service]]` has the name.
    NoService,
    /// It can't be granted: all tools, all secrets, or reading what can only be
    /// changed.
    NeverGranted,
    /// This host does not know its class, and no rule accepts it by name.
    UnknownClass,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRule => "no rule gives it",
            Self::OnlyReading => "rules give it for reading only",
            Self::OnlyStoring => "rules give storing it only",
            Self::WildcardNotWritten => "a wildcard is given only by a rule that writes it",
            Self::DriverNotNamed => "no rule that gives it names the driver",
            Self::DeniedBy(rule) => return write!(f, "denied by {rule}"),
            Self::Directory(unusable) => {
                return write!(
                    f,
                    "its directory can't be used: {unusable}; {}",
                    unusable.hint
                );
            }
            Self::NoWorkspace => "no [[workspace]] maps the path to a directory",
            Self::NoSecret => "there is no [[secret]] of that name for the publisher",
            Self::SecretNotUsable => "its [[secret]] has no origin, and no rule reveals it",
            Self::NotChosen => "its table still waits for the choice that `# choose` marks",
            Self::NoService => "there is no [[service]] of that name",
            Self::NeverGranted => "it is never granted",
            Self::UnknownClass => "this host does not know its class, and no rule accepts it",
        })
    }
}
