//! The rules about actions, and the tools that each of them covers: nobody has named these.

use serde::Serialize;
use toolward_policy::Contract;

use super::PolicyReview;

/// A `[[grant]]` with `action`.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ActionRule {
    /// The rule, in words.
    pub rule: String,
    /// The action's id.
    pub action: String,
    /// The publisher of the action.
    pub library: String,
    /// The publisher of the tools.
    pub publisher: String,
    /// The tools that it covers, by id with the major version.
    pub tools: Vec<String>,
}

impl PolicyReview {
    /// Each rule that is about an action, in order.
    pub fn action_rules(&self) -> Vec<ActionRule> {
        let contracts = || {
            self.bundles.iter().flat_map(|(content, publisher)| {
                let tools = content.tools.iter();
                tools.map(move |entry| Contract {
                    tool: &entry.tool,
                    publisher,
                })
            })
        };
        let rules = self.granted.policy.action_grants();
        let rules = rules.filter_map(|(id, rule)| {
            let action = rule.action.as_ref()?;
            let covered = contracts().filter(|contract| rule.is_about(contract));
            Some(ActionRule {
                rule: id.to_string(),
                action: action.id.clone(),
                library: action.library.to_string(),
                publisher: rule.publisher.to_string(),
                tools: covered.map(|contract| contract.tool.major_id()).collect(),
            })
        });
        rules.collect()
    }
}
