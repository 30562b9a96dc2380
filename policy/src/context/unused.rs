//! A `[[context]]` without effect: a slip that would otherwise go unnoticed.

use std::fmt;

use super::rule::ContextRule;
use crate::implementation::Contract;

/// A `[[context]]` that no tool gets a value from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedContext<'p> {
    rule: &'p ContextRule,
    place: &'p str,
    is_installed: bool,
}

impl<'p> UnusedContext<'p> {
    pub(crate) fn of(
        rule: &'p ContextRule,
        place: &'p str,
        contracts: &[Contract<'_>],
    ) -> Option<Self> {
        let mut about = contracts
            .iter()
            .filter(|contract| rule.is_about(contract))
            .peekable();
        let is_installed = about.peek().is_some();
        let used = about.any(|contract| contract.tool.context_schema.is_some());
        (!used).then_some(Self {
            rule,
            place,
            is_installed,
        })
    }

    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.is_installed {
            true => "context-without-schema",
            false => "context-without-tool",
        }
    }
}

impl fmt::Display for UnusedContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.is_installed {
            true => "the tool's contract has no contextSchema, so that its calls have no context",
            false => "it matches no installed tool",
        };
        let (tool, publisher) = (&self.rule.tool, &self.rule.publisher);
        write!(
            f,
            "{}: {tool} of {publisher}: {why} [{}]",
            self.place,
            self.code()
        )
    }
}
