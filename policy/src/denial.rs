//! Why a tool is blocked: what it lacks, as data.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toolward_contract::capability::Capability;

use crate::exec::ExecLack;
use crate::grant::SecretPosition;
use crate::implementation::DeclaredBy;
use crate::machine::UnusableDirectory;
use crate::rule::RuleId;

/// Why a tool is blocked. It names contract and driver, so that the lines that
/// would allow it can be written from it ([`Denial::lines_to_add`]).
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
    pub missing: Vec<MissingGrant>,
    /// Why its program may not run, for a tool that is carried out by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ExecLack>>,
    /// Missing tables other than rules.
    #[serde(skip)]
    pub(crate) lacks: Vec<Lack>,
    /// Placeholder directories that the operator has not replaced yet.
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
        let program = self.program.iter().map(ToString::to_string);
        let all: Vec<String> = rules.chain(missing).chain(program).collect();
        f.write_str(&all.join("; "))
    }
}

/// A declared capability that is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct MissingGrant {
    /// The capability, narrowed to what the driver uses.
    pub capability: Capability,
    /// Whether it was declared in `mutates`.
    pub mutates: bool,
    /// Who declared it.
    pub declared_by: DeclaredBy,
    /// Why it is not granted.
    pub why: Why,
}

impl fmt::Display for MissingGrant {
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
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code", content = "by")]
#[non_exhaustive]
pub enum Why {
    /// No rule gives it.
    #[error("no rule gives it")]
    NoRule,
    /// A rule gives it for reading, and the contract changes it.
    #[error("rules give it for reading only")]
    OnlyReading,
    /// A rule gives storing the secret, and it is to be used.
    #[error("rules give storing it only")]
    OnlyStoring,
    /// It is a wildcard, and no rule writes the wildcard.
    #[error("a wildcard is given only by a rule that writes it")]
    WildcardNotWritten,
    /// The driver adds it, and no rule that gives it names the driver.
    #[error("no rule that gives it names the driver")]
    DriverNotNamed,
    /// No rule gives it, and the request of a declarative driver goes there: `partial` can't leave it out.
    #[error("no rule gives it, and the driver's request goes there")]
    RequestHost,
    /// A deny rule is about it.
    #[error("denied by {0}")]
    DeniedBy(RuleId),
    /// No `[[workspace]]` maps the path or one above it.
    #[error("no [[workspace]] maps the path to a directory")]
    NoWorkspace,
    /// The directory behind the path can't be used.
    #[error("its directory can't be used: {0}; {hint}", hint = .0.hint)]
    Directory(UnusableDirectory),
    /// No `[[secret]]` of that publisher has the name.
    #[error("there is no [[secret]] of that name for the publisher")]
    NoSecret,
    /// Its `[[secret]]` has no origin, and no rule reveals it.
    #[error("its [[secret]] has no origin, and no rule reveals it")]
    SecretNotUsable,
    /// Its `[[secret]]` is tied to another place or other methods than the driver's request has.
    #[error("{0}: change the [[secret]] if you trust the request")]
    SecretMisfit(SecretMisfit),
    /// Its `[[workspace]]`, `[[secret]]` or `[[service]]` has values for the operator to replace.
    #[error("its table still waits for the choice that `# choose` marks")]
    NotChosen,
    /// No `[[service]]` has the name.
    #[error("there is no [[service]] of that name")]
    NoService,
    /// It can't be granted: all tools, all secrets, or reading what can only be
    /// changed.
    #[error("it is never granted")]
    NeverGranted,
    /// This host does not know its class, and no rule accepts it by name.
    #[error("this host does not know its class, and no rule accepts it")]
    UnknownClass,
}

impl Why {
    /// Whether lines added to the policy can help.
    pub(crate) fn lines_help(&self) -> bool {
        !matches!(
            self,
            Self::DeniedBy(_)
                | Self::NeverGranted
                | Self::SecretNotUsable
                | Self::SecretMisfit(_)
                | Self::NotChosen
                | Self::Directory(_)
        )
    }

    /// Whether a rule is among them.
    pub(crate) fn rule_helps(&self) -> bool {
        self.lines_help() && !matches!(self, Self::NoWorkspace | Self::NoSecret | Self::NoService)
    }
}

/// A table that a blocked tool needs in addition to rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// A workspace at or above this path.
    Workspace(Capability),
    /// A secret of this name and publisher.
    Secret {
        slug: String,
        publisher: String,
        /// The hosts that the driver declares: shown to a person, never used as a
        /// value.
        egress: Vec<String>,
        /// The method of a declarative driver's request.
        method: Option<&'static str>,
        /// Where a declarative driver's request has it, so that nothing is sent from
        /// elsewhere.
        position: Option<SecretPosition>,
    },
    /// A service of this name.
    Service { name: String, egress: Vec<String> },
}

/// A `[[secret]]` that the driver's request can never use: each call would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[error("its [[secret]] allows {allowed}, and the driver's request sends it {sent}")]
#[non_exhaustive]
pub struct SecretMisfit {
    /// What the `[[secret]]` allows.
    pub allowed: String,
    /// What the driver's request does.
    pub sent: String,
}
