//! `action` and `library` of a `[[grant]]`: a rule about the tools that implement an action. What the rule gives
//! stands beside it.

use toolward_contract::action::Action;
use toolward_contract::capability::Capability;

use crate::error::{self, PolicyError, quoted};
use crate::implementation::Contract;
use crate::rule::Rule;

impl Rule {
    /// Whether the rule is about a contract, whichever driver carries it out.
    #[must_use]
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
}

/// Checks a rule with an action. It covers tools that nobody has named, so that it gives capabilities and nothing
/// else.
pub(crate) fn check(rule: &Rule) -> Result<(), PolicyError> {
    let Some(action) = &rule.action else {
        return Ok(());
    };
    if !Action::is_id(&action.id) {
        return Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!(
                "expected `action` to be the id of an action, found {}",
                quoted(&action.id)
            ),
        )
        .hinted("write it as ACTION.md does: `storage:commit`"));
    }
    let others = [
        ("driver", rule.driver.is_some()),
        ("driver_publisher", rule.driver_publisher != rule.publisher),
        ("reveal", !rule.reveal.is_empty()),
        ("plain_http", rule.plain_http),
        ("addresses", !rule.addresses.is_empty()),
        ("guest_headers", !rule.guest_headers.is_empty()),
        ("names", !rule.names.is_empty()),
        ("result", rule.mcp_result.is_some()),
        ("preapproved", rule.preapproved),
        ("confirms", rule.confirms != Default::default()),
        ("prefer", rule.prefer),
        ("fallback", rule.fallback || rule.repeats),
        ("partial", rule.partial),
    ];
    match others.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((key, _)) => Err(PolicyError::new(
            &error::NEVER_GRANTED,
            format!("expected no `{key}` beside `action`, found one"),
        )
        .hinted(format!("give `{key}` in a rule that names the tool"))),
    }
}
