//! `[[exec]]`: the programs that an operator lets run outside the sandbox, each for one tool. Without a
//! line that agrees exactly with the tool's document, the tool is blocked.

mod fit;
pub(crate) mod rule;

use std::fmt;

use serde::Serialize;
use toolward_contract::capability::Capability;

use crate::toml_text::{PLACEHOLDER_VARIABLE, comment, list, pair, text};

pub(crate) use fit::find;
pub use rule::{ExecDigest, ExecLimits, ExecRule, Interpreter, WorkspaceAccess};

/// Why no `[[exec]]` lets a tool's program run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code", content = "by")]
#[non_exhaustive]
pub enum ExecWhy {
    /// No `[[exec]]` is for the tool.
    #[error("no [[exec]] is for it")]
    NoLine,
    /// It is named by another publisher than the tool's.
    #[error("another publisher than the tool's names it")]
    Foreign,
    /// Its `[[exec]]` has values for the operator to replace.
    #[error("its [[exec]] still waits for the choice that `# choose` marks")]
    NotChosen,
    /// Its `[[exec]]` names another program.
    #[error("its [[exec]] names another command")]
    Command,
    /// Its `[[exec]]` has other arguments.
    #[error("its [[exec]] has other `args`")]
    Args,
    /// It declares the network, and its `[[exec]]` does not give it unfiltered.
    #[error("it declares the network, and its [[exec]] does not say network = \"unfiltered\"")]
    NetworkNotGiven,
    /// Its `[[exec]]` gives the network, which it does not declare.
    #[error("its [[exec]] gives the network, which it does not declare")]
    NetworkNotDeclared,
    /// It declares a secret that its `[[exec]]` puts into no variable.
    #[error("its [[exec]] has no variable in `env` for the secret {0:?}")]
    SecretWithoutVariable(String),
    /// Its `[[exec]]` has a variable for a secret that it does not declare.
    #[error("its [[exec]] has the secret {0:?}, which it does not declare")]
    SecretNotDeclared(String),
    /// No rule reveals the secret.
    #[error("no rule has the secret {0:?} in `reveal`")]
    SecretNotRevealed(String),
    /// The secret's value comes from neither a variable nor a file of the operator.
    #[error("the [[secret]] {0:?} has neither `env` nor `file`, and a program gets no other")]
    SecretStored(String),
    /// It declares a workspace that its `[[exec]]` does not name, or not with that access.
    #[error("its [[exec]] does not give `{0}` as it is declared")]
    WorkspaceNotGiven(Capability),
    /// Its `[[exec]]` names a workspace that it does not declare, or not with that access.
    #[error("its [[exec]] gives the workspace {0:?} otherwise than it declares it")]
    WorkspaceNotDeclared(String),
    /// It declares a part of a workspace, and a program gets the whole directory or nothing.
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
#[non_exhaustive]
pub struct ExecLack {
    /// Why.
    pub why: ExecWhy,
    /// The program, as the document names it.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The secrets that it declares.
    #[serde(skip)]
    pub(super) secrets: Vec<String>,
    /// The workspaces that it declares.
    #[serde(skip)]
    pub(super) workspaces: Vec<(String, WorkspaceAccess)>,
    /// Whether it declares the network.
    #[serde(skip)]
    pub(super) network: bool,
}

impl fmt::Display for ExecLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = toolward_support::text::quoted(&self.command, 200);
        write!(f, "the program {command}: {}", self.why)
    }
}

impl ExecLack {
    /// The table to add to the policy's file, as TOML that can be appended. It lets nothing run until the
    /// operator has replaced what is marked: the digest is never the bundle's to say.
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
        if self.network {
            lines.push("# network = \"unfiltered\" # choose: it declares the network, and would reach all of it".to_owned());
        }
        for slug in &self.secrets {
            lines.push(format!(
                "env.{} = {} # choose: the variable; a [[grant]] has to `reveal` the secret",
                text(slug),
                text(PLACEHOLDER_VARIABLE)
            ));
        }
        for (path, access) in &self.workspaces {
            lines.push(format!(
                "workspaces.{} = {}",
                text(path),
                text(access.as_str())
            ));
        }
        lines.join("\n") + "\n"
    }
}
