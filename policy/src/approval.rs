//! When a person is asked to approve a call.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use toolward_contract::tool::{Approval, Tool};

use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::fields::{Fields, finish, required, texts, word};
use crate::name::{Publisher, ToolPattern};

/// When a person is asked, from the weakest class to the strictest. If several classes apply, the
/// strictest counts.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalClass {
    /// Requires no question. A person is still asked about changes and from risk level 2 on, unless
    /// a rule has `preapproved`.
    #[default]
    Auto,
    /// Requires a question about changes, which is asked even with `auto`.
    OnMutate,
    /// A person is always asked.
    Always,
}

impl ApprovalClass {
    /// The word in a policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::OnMutate => "on-mutate",
            Self::Always => "always",
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, PolicyError> {
        word(
            &error::WRONG_VALUE,
            "`approval` to be auto, on-mutate or always",
        )(text)
    }
}

impl fmt::Display for ApprovalClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reference to an approval policy (`policy:NAME`) that is not resolved counts as `always`.
impl From<&Approval> for ApprovalClass {
    fn from(approval: &Approval) -> Self {
        match approval {
            Approval::Auto => Self::Auto,
            Approval::OnMutate => Self::OnMutate,
            Approval::Always | Approval::Policy(_) => Self::Always,
        }
    }
}

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The most `[approval.NAME]` tables of a policy, and the most entries of a list in such a table.
const MAX_ENTRIES: usize = 1024;

/// An approval policy (`[approval.NAME]`): when a person is asked about the tools that refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalPolicy {
    /// Its name in contracts.
    pub name: String,
    /// The publishers whose contracts may refer to it; at least one.
    pub publishers: Vec<Publisher>,
    /// The tools of these publishers that may refer to it; at least one.
    pub tools: Vec<ToolPattern>,
    /// The class that it stands for. Even with `auto`, a person is asked about a tool that changes
    /// something.
    pub approval: ApprovalClass,
}

impl ApprovalPolicy {
    /// Whether this tool of a publisher may refer to it.
    fn is_for(&self, tool: &Tool, publisher: &str) -> bool {
        let (id, major) = (tool.id.as_str(), tool.version.major);
        self.publishers.iter().any(|own| own.as_str() == publisher)
            && self.tools.iter().any(|own| own.matches(id, major))
    }

    pub(crate) fn read(name: &str, fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let approval = Self {
            name: name.to_owned(),
            publishers: texts(&fields.required("publishers")?, Publisher::parse)?,
            tools: texts(&fields.required("tools")?, ToolPattern::parse)?,
            approval: required(fields, "approval", ApprovalClass::parse)?,
        };
        finish(fields)?;
        check_one(&approval)?;
        Ok(approval)
    }
}

/// The `policy:NAME` of a contract, and the class that it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct PolicyReference {
    /// The name, as the contract's publisher wrote it.
    pub name: String,
    /// The class: at least `on-mutate` if the tool changes something.
    pub approval: ApprovalClass,
    /// Whether an `[approval.NAME]` exists for the contract. Without one, a person is always asked.
    pub known: bool,
}

impl PolicyReference {
    /// Resolves the reference of a tool; `None` if the tool has no reference.
    pub(crate) fn of(approvals: &[ApprovalPolicy], tool: &Tool, publisher: &str) -> Option<Self> {
        let Approval::Policy(name) = &tool.approval else {
            return None;
        };
        let found = approvals
            .iter()
            .find(|one| one.name == *name && one.is_for(tool, publisher));
        let least = match tool.mutates.is_empty() {
            true => ApprovalClass::Auto,
            false => ApprovalClass::OnMutate,
        };
        Some(Self {
            name: name.clone(),
            approval: found.map_or(ApprovalClass::Always, |one| one.approval.max(least)),
            known: found.is_some(),
        })
    }
}

impl fmt::Display for PolicyReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, approval, .. } = self;
        match self.known {
            true => write!(f, "the approval policy `{name}`, which is {approval}"),
            false => write!(
                f,
                "the approval policy `{name}`, which [approval] does not have for it: it asks always"
            ),
        }
    }
}

/// Checks all approval policies of a policy.
pub(crate) fn check(approvals: &[ApprovalPolicy]) -> Result<(), PolicyError> {
    if approvals.len() > MAX_ENTRIES {
        return Err(too_many("tables", approvals.len()));
    }
    let mut seen = BTreeSet::new();
    for one in approvals {
        check_one(one)?;
        if !seen.insert(&one.name) {
            let message = format!("expected each once, found {} again", quoted(&one.name));
            return Err(error::DUPLICATE.error(message).hinted("remove one of them"));
        }
    }
    Ok(())
}

/// Checks one approval policy.
pub(crate) fn check_one(one: &ApprovalPolicy) -> Result<(), PolicyError> {
    name(&one.name)?;
    for (key, found) in [
        ("publishers", one.publishers.len()),
        ("tools", one.tools.len()),
    ] {
        if found > MAX_ENTRIES {
            return Err(too_many(&format!("entries in `{key}`"), found));
        }
        if found == 0 {
            let message = format!("expected at least one entry in `{key}`, found none");
            return Err(error::WRONG_VALUE
                .error(message)
                .hinted("a table that nobody may refer to says nothing"));
        }
    }
    Ok(())
}

fn too_many(what: &str, found: usize) -> PolicyError {
    let message = format!("expected at most {MAX_ENTRIES} {what}, found {found}");
    error::TOO_LARGE.error(message)
}

/// Checks a name. Contracts repeat the name exactly, so it must not have spaces or invisible
/// characters.
fn name(text: &str) -> Result<(), PolicyError> {
    let is_odd = |c: char| c.is_whitespace() || toolward_support::text::is_hidden(c);
    if (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(is_odd) {
        return Ok(());
    }
    Err(error::WRONG_VALUE
        .expected(
            format_args!("a name of 1 to {MAX_NAME_BYTES} bytes without spaces"),
            text,
        )
        .hinted("write what stands behind `policy:` in the contract"))
}
