//! `[[context]]`: one table.

use std::collections::BTreeMap;

use toolward_contract::tool::CONTEXT_PIN;

use super::value::{ContextSource, ContextValue};
use crate::error::{self, PolicyError, quoted};
use crate::implementation::{Contract, Implementation};
use crate::name::{Publisher, ToolPattern};
use crate::placeholder::PLACEHOLDER_VARIABLE;

/// The principal that stands for all.
const EVERYBODY: &str = "*";
/// Values of one table.
const MAX_VALUES: usize = 64;
/// Bytes of a principal's name, and of the name of a value.
const MAX_NAME_BYTES: usize = 256;

/// `[[context]]`: values for the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextRule {
    /// The publisher of the contract.
    pub publisher: Publisher,
    /// The tool, without wildcards.
    pub tool: ToolPattern,
    /// Whose calls get the values; `None`: everybody's.
    pub principal: Option<String>,
    /// The publisher of the driver that sees the values; the contract's where a
    /// file says nothing.
    pub driver_publisher: Publisher,
    /// The driver that sees them; `None`: all of the contract's own publisher.
    pub driver: Option<String>,
    /// The values, by the name that the contract's `contextSchema` has for them.
    pub values: BTreeMap<String, ContextValue>,
    /// Whether values that come from a variable or a file may be shown. Otherwise
    /// they are kept out of all that a call shows, as a revealed secret is.
    pub public: bool,
}

/// Refuses `pinnedProvider`, which a host takes out of a caller's context (AIP-30): here it would pin nothing.
pub(crate) fn check_value_name(name: &str) -> Result<(), PolicyError> {
    if name != CONTEXT_PIN {
        return Ok(());
    }
    let message = format!("expected the name of a value for a driver, found `{CONTEXT_PIN}`");
    Err(PolicyError::new(&error::CONTEXT, message).hinted(
        "only a caller pins a driver; a [[grant]] that binds one of another publisher has `prefer`",
    ))
}

impl ContextRule {
    /// A rule without values, for everybody's calls of a tool.
    #[must_use]
    pub fn new(publisher: Publisher, tool: ToolPattern) -> Self {
        Self {
            driver_publisher: publisher.clone(),
            publisher,
            tool,
            principal: None,
            driver: None,
            values: BTreeMap::new(),
            public: false,
        }
    }

    /// Reads a principal: `*` means everybody.
    pub(crate) fn principal_of(text: &str) -> Option<String> {
        (text != EVERYBODY).then(|| text.to_owned())
    }

    /// Whether the operator still has to choose something. Until then it gives
    /// nothing.
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        let chosen = |value: &ContextValue| !matches!(value.source(), ContextSource::Env(name) if name == PLACEHOLDER_VARIABLE);
        self.principal.as_deref() == Some(PLACEHOLDER_VARIABLE) || !self.values.values().all(chosen)
    }

    /// The files that values come from.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.values
            .values()
            .filter_map(|value| match value.source() {
                ContextSource::File(name) => Some(name.as_str()),
                _ => None,
            })
    }

    /// The values that could not be looked up, each with what is wrong.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter();
        values.filter_map(|(name, value)| Some((name.as_str(), value.problem()?)))
    }

    pub(super) fn is_for(
        &self,
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
    ) -> bool {
        let driver = implementation.driver.id.as_str();
        self.is_about(contract)
            && self.driver_publisher.as_str() == implementation.publisher
            && self.driver.as_deref().is_none_or(|own| own == driver)
    }

    pub(super) fn is_about(&self, contract: &Contract<'_>) -> bool {
        let (id, major) = (contract.tool.id.as_str(), contract.tool.version.major);
        self.publisher.as_str() == contract.publisher && self.tool.matches(id, major)
    }

    /// The more it says, the sooner it is taken.
    pub(super) fn closeness(&self) -> (bool, bool, bool) {
        (
            self.principal.is_some(),
            self.driver.is_some(),
            self.tool.major().is_some(),
        )
    }

    /// What the rules of one table have to be.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let name = |text: &str, what: &str| {
            if (1..=MAX_NAME_BYTES).contains(&text.len()) && !text.chars().any(char::is_control) {
                return Ok(());
            }
            Err(PolicyError::new(
                &error::CONTEXT,
                format!("expected {what}, found {}", quoted(text)),
            ))
        };
        if self.tool.has_wildcard() {
            return Err(PolicyError::new(
                &error::CONTEXT,
                format!("expected one tool, found \"{}\"", self.tool),
            )
            .hinted("write one [[context]] for each tool"));
        }
        if let Some(principal) = &self.principal {
            name(principal, "the name of a principal, or `*`")?;
        }
        if self.driver_publisher != self.publisher && self.driver.is_none() {
            return Err(PolicyError::new(
                &error::CONTEXT,
                "expected `driver` beside the `driver_publisher` of somebody else, found none",
            )
            .hinted("name the one driver that is to see the values"));
        }
        if self.values.is_empty() || self.values.len() > MAX_VALUES {
            return Err(PolicyError::new(
                &error::CONTEXT,
                format!(
                    "expected 1 to {MAX_VALUES} values, found {}",
                    self.values.len()
                ),
            )
            .hinted("give them as `values`, or name where they come from in `env` or `file`"));
        }
        for (key, value) in &self.values {
            name(key, "the name of a value")?;
            check_value_name(key)?;
            value.source().check()?;
        }
        Ok(())
    }

    /// What no other rule of a policy may have.
    pub(crate) fn name(&self) -> String {
        let principal = self.principal.as_deref().unwrap_or(EVERYBODY);
        let driver = self.driver.as_deref().unwrap_or(EVERYBODY);
        format!(
            "the context of {} of {} for {principal} by {driver} of {}",
            self.tool, self.publisher, self.driver_publisher
        )
    }
}
