//! The action that a `[[grant]]` names.

use std::fmt;

use crate::implementation::{Contract, IRREVERSIBLE_RISK};
use crate::name::Publisher;

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
