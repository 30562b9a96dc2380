//! Why a tool has no context, and the lines that would give it one. Lines are for
//! people only: an agent is never shown them.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::rule::ContextRule;
use crate::implementation::{Contract, Implementation};
use crate::toml_text::{PLACEHOLDER_VARIABLE, comment, pair, text};

/// Names of values that are suggested.
const MAX_SHOWN_NAMES: usize = 64;

/// A tool that requires a context and has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("`{tool}` requires a context that the operator gives: {why}")]
#[non_exhaustive]
pub struct ContextLack {
    /// `id@major` of the contract.
    pub tool: String,
    /// The contract's publisher.
    pub publisher: String,
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub driver_publisher: String,
    /// Why there is none.
    pub why: ContextWhy,
    /// The values that the contract requires, by name.
    #[serde(skip)]
    required: Vec<String>,
}

/// Why the context is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code")]
#[non_exhaustive]
pub enum ContextWhy {
    /// No `[[context]]` is for this tool, driver and principal.
    #[error("no [[context]] is for it")]
    NoRule,
    /// Its `[[context]]` has values for the operator to replace.
    #[error("its [[context]] still waits for the choice that `# choose` marks")]
    NotChosen,
    /// A value can't be had from where it should come.
    #[error("the value {name:?} of its [[context]]: {problem}")]
    Unreadable {
        /// The value's name.
        name: String,
        /// What is wrong. Never the value.
        problem: String,
    },
    /// The contract's `contextSchema` does not take the values.
    #[error("its [[context]] does not match the contract's contextSchema at {:?}: {rule}", if .place.is_empty() { "/" } else { .place })]
    Invalid {
        /// Where in the context, as a JSON pointer.
        place: String,
        /// The rule of the schema, as a JSON pointer.
        rule: String,
    },
}

impl ContextLack {
    pub(super) fn new(
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
        why: ContextWhy,
    ) -> Self {
        let schema = contract.tool.context_schema.as_ref();
        let required = schema.and_then(|schema| schema.value().get("required")?.as_array());
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        Self {
            tool: contract.tool.major_id(),
            publisher: contract.publisher.to_owned(),
            driver: implementation.driver.id.to_string(),
            driver_publisher: implementation.publisher.to_owned(),
            why,
            required: names.take(MAX_SHOWN_NAMES).map(str::to_owned).collect(),
        }
    }

    /// The lines to add to the policy's file, as TOML that can be appended. They
    /// give nothing until the operator has replaced what is marked: where a value
    /// comes from is never the bundle's to say.
    #[must_use]
    pub fn lines_to_add(&self) -> String {
        if self.why != ContextWhy::NoRule {
            return format!("{}\n", comment(&self.to_string()));
        }
        let mut lines = vec![
            "[[context]]".to_owned(),
            pair("publisher", &self.publisher),
            pair("tool", &self.tool),
            format!(
                "{} # choose: a principal, \"local\" for this user, or \"*\" for everybody",
                pair("principal", PLACEHOLDER_VARIABLE)
            ),
        ];
        if self.driver_publisher != self.publisher {
            lines.push(pair("driver_publisher", &self.driver_publisher));
            lines.push(pair("driver", &self.driver));
        }
        for name in &self.required {
            lines.push(format!(
                "env.{} = {} # choose",
                text(name),
                text(PLACEHOLDER_VARIABLE)
            ));
        }
        if self.required.is_empty() {
            lines.push("values = {} # choose".to_owned());
        }
        lines.join("\n") + "\n"
    }
}

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
