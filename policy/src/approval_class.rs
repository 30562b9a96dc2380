//! When a person is asked.

use std::fmt;

use serde::Serialize;
use toolward_contract::tool::Approval;

/// When a person is asked, from weak to strict. The strictest that applies wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalClass {
    /// Without a prompt, as far as nothing is changed.
    #[default]
    Auto,
    /// Where something is changed.
    OnMutate,
    /// Always.
    Always,
}

impl ApprovalClass {
    /// The word in a policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::OnMutate => "on-mutate",
            Self::Always => "always",
        }
    }
}

impl fmt::Display for ApprovalClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A `policy:<ref>` that is not resolved counts as `always`.
impl From<&Approval> for ApprovalClass {
    fn from(approval: &Approval) -> Self {
        match approval {
            Approval::Auto => Self::Auto,
            Approval::OnMutate => Self::OnMutate,
            Approval::Always | Approval::Policy(_) => Self::Always,
        }
    }
}
