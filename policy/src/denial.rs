//! Why a tool is blocked: the missing grants and tables, as data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use toolward_contract::capability::Capability;

use crate::exec::WorkspaceAccess;
use crate::grant::SecretPosition;
use crate::implementation::{DeclaredBy, UnusableDirectory};
use crate::name::RuleId;
use crate::toml_text::{PLACEHOLDER_VARIABLE, comment, list, pair, text};

/// Why a tool is blocked. It names contract and driver, so that the lines that would allow the tool
/// can be derived from it ([`Denial::lines_to_add`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// The declared capabilities that are not granted.
    pub missing: Vec<MissingGrant>,
    /// Why the tool's program may not run; `None` if it may, or if the tool has no program.
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
pub struct MissingGrant {
    /// The capability, narrowed to the part that the driver uses.
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
pub enum Why {
    /// No rule grants it.
    #[error("no rule gives it")]
    NoRule,
    /// A rule grants it only for reading, but the contract changes it.
    #[error("rules give it for reading only")]
    OnlyReading,
    /// A rule grants only storing the secret, but the tool uses it.
    #[error("rules give storing it only")]
    OnlyStoring,
    /// It is a wildcard, but no rule has the wildcard.
    #[error("a wildcard is given only by a rule that writes it")]
    WildcardNotWritten,
    /// The driver adds it, but no rule that grants it names the driver.
    #[error("no rule that gives it names the driver")]
    DriverNotNamed,
    /// No rule grants this host, and `partial` can't leave it out, because the request of a
    /// declarative driver goes there.
    #[error("no rule gives it, and the driver's request goes there")]
    RequestHost,
    /// A deny rule matches it.
    #[error("denied by {0}")]
    DeniedBy(RuleId),
    /// No `[[workspace]]` maps the path or a parent of the path.
    #[error("no [[workspace]] maps the path to a directory")]
    NoWorkspace,
    /// The directory behind the path can't be used.
    #[error("its directory can't be used: {0}; {hint}", hint = .0.hint)]
    Directory(UnusableDirectory),
    /// The publisher has no `[[secret]]` of this name.
    #[error("there is no [[secret]] of that name for the publisher")]
    NoSecret,
    /// Its `[[secret]]` has no origin, and no rule reveals it.
    #[error("its [[secret]] has no origin, and no rule reveals it")]
    SecretNotUsable,
    /// Its `[[secret]]` does not allow the place, destination or method that the driver's request
    /// uses.
    #[error("{0}: change the [[secret]] if you trust the request")]
    SecretMisfit(SecretMisfit),
    /// Its `[[workspace]]`, `[[secret]]` or `[[service]]` has values for the operator to replace.
    #[error("its table still waits for the choice that `# choose` marks")]
    NotChosen,
    /// No `[[service]]` has the name.
    #[error("there is no [[service]] of that name")]
    NoService,
    /// It can't be granted: it means all tools, all secrets, or reading a class that can only be
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

    /// Whether a rule is among the lines that can help.
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
        /// The hosts that the driver declares. They are shown to a person, but never used as a
        /// value.
        egress: Vec<String>,
        /// The method of a declarative driver's request.
        method: Option<&'static str>,
        /// The position of the secret in a declarative driver's request. The suggested `[[secret]]`
        /// has this position.
        position: Option<SecretPosition>,
    },
    /// A service of this name.
    Service { name: String, egress: Vec<String> },
}

/// A `[[secret]]` that the driver's request can never use: each call would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[error("its [[secret]] allows {allowed}, and the driver's request sends it {sent}")]
pub struct SecretMisfit {
    /// The use that the `[[secret]]` allows.
    pub allowed: String,
    /// The use in the driver's request.
    pub sent: String,
}

/// Why no `[[exec]]` lets a tool's program run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code", content = "by")]
pub enum ExecWhy {
    /// No `[[exec]]` matches the tool.
    #[error("no [[exec]] is for it")]
    NoLine,
    /// The driver that names the program has another publisher than the tool.
    #[error("another publisher than the tool's names it")]
    Foreign,
    /// Its `[[exec]]` has values for the operator to replace.
    #[error("its [[exec]] still waits for the choice that `# choose` marks")]
    NotChosen,
    /// Its `[[exec]]` names another program.
    #[error("its [[exec]] names another command")]
    Command,
    /// Its `[[exec]]` names other arguments.
    #[error("its [[exec]] has other `args`")]
    Args,
    /// It declares network access, but its `[[exec]]` does not grant unfiltered network access.
    #[error("it declares the network, and its [[exec]] does not say network = \"unfiltered\"")]
    NetworkNotGiven,
    /// Its `[[exec]]` grants network access, which the tool does not declare.
    #[error("its [[exec]] gives the network, which it does not declare")]
    NetworkNotDeclared,
    /// It declares a secret for which its `[[exec]]` has no variable.
    #[error("its [[exec]] has no variable in `env` for the secret {0:?}")]
    SecretWithoutVariable(String),
    /// Its `[[exec]]` has a variable for a secret that the tool does not declare.
    #[error("its [[exec]] has the secret {0:?}, which it does not declare")]
    SecretNotDeclared(String),
    /// No rule reveals the secret.
    #[error("no rule has the secret {0:?} in `reveal`")]
    SecretNotRevealed(String),
    /// The secret's value comes from neither a variable nor a file of the operator.
    #[error("the [[secret]] {0:?} has neither `env` nor `file`, and a program gets no other")]
    SecretStored(String),
    /// It declares a workspace that its `[[exec]]` does not name.
    #[error("its [[exec]] does not give `{0}` as it is declared")]
    WorkspaceNotGiven(Capability),
    /// Its `[[exec]]` names a workspace that the tool does not declare, or declares with other
    /// access.
    #[error("its [[exec]] gives the workspace {0:?} otherwise than it declares it")]
    WorkspaceNotDeclared(String),
    /// It declares a part of a workspace, but a program gets the whole directory or nothing.
    #[error(
        "`{0}` is a part of a workspace, and a program gets the directory of a [[workspace]] or nothing"
    )]
    WorkspacePart(Capability),
    /// A program can't be given this.
    #[error("a program can't be given `{0}`")]
    NotForPrograms(Capability),
}

/// A program that may not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExecLack {
    /// Why it may not run.
    pub why: ExecWhy,
    /// The program, as the driver names it.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    #[serde(skip)]
    pub(crate) wanted: ExecWanted,
}

/// The declarations of the contract that matter to a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExecWanted {
    pub(crate) network: bool,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) workspaces: BTreeMap<String, WorkspaceAccess>,
}

impl fmt::Display for ExecLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = toolward_support::text::quoted(&self.command, 200);
        write!(f, "the program {command}: {}", self.why)
    }
}

impl ExecLack {
    /// The table to add to the policy's file, as TOML that can be appended. The table allows
    /// nothing until the operator has replaced the marked values, since a bundle must not choose
    /// the digest. If the reason is not that the table is missing, this is only a TOML comment with
    /// the reason.
    pub(crate) fn lines_to_add(&self, publisher: &str, tool: &str) -> String {
        if self.why != ExecWhy::NoLine {
            return format!("{}\n", comment(&format!("{tool}: {self}")));
        }
        let mut lines = vec![
            "# Runs outside the sandbox, each time as a process of yours: read what it does first."
                .to_owned(),
            "[[exec]]".to_owned(),
            pair("publisher", publisher),
            pair("tool", tool),
            pair("command", &self.command),
            format!(
                "{} # choose: the BLAKE3 digest of that file (b3sum)",
                pair("digest", PLACEHOLDER_VARIABLE)
            ),
            list("args", &self.args),
        ];
        if self.wanted.network {
            lines.push("# network = \"unfiltered\" # choose: it declares the network, and would reach all of it".to_owned());
        }
        for slug in &self.wanted.secrets {
            lines.push(format!(
                "env.{} = {} # choose: the variable; a [[grant]] has to `reveal` the secret",
                text(slug),
                text(PLACEHOLDER_VARIABLE)
            ));
        }
        for (path, access) in &self.wanted.workspaces {
            lines.push(format!(
                "workspaces.{} = {}",
                text(path),
                text(access.as_str())
            ));
        }
        lines.join("\n") + "\n"
    }
}
