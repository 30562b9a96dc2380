//! Why a tool has no context, and the lines that would give it one. Lines are for
//! people only: an agent is never shown them.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::implementation::{Contract, Implementation};
use crate::placeholder::PLACEHOLDER_VARIABLE;
use crate::toml_text::{comment, pair, text};

/// Names of values that are suggested.
const MAX_SHOWN_NAMES: usize = 64;

/// A tool that requires a context and has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Why there is no context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
#[non_exhaustive]
pub enum ContextWhy {
    /// No `[[context]]` is for this tool, driver and principal.
    NoRule,
    /// Its `[[context]]` has values for the operator to replace.
    NotChosen,
    /// A value can't be had from where it should come.
    Unreadable {
        /// The value's name.
        name: String,
        /// What is wrong. Never the value.
        problem: String,
    },
    /// The contract's `contextSchema` does not take the values.
    Invalid {
        /// Where in the context, as a JSON pointer.
        place: String,
        /// The rule of the schema, as a JSON pointer.
        rule: String,
    },
}

impl fmt::Display for ContextWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRule => f.write_str("no [[context]] is for it"),
            Self::NotChosen => {
                f.write_str("its [[context]] still waits for the choice that `# choose` marks")
            }
            Self::Unreadable { name, problem } => {
                write!(f, "the value {name:?} of its [[context]]: {problem}")
            }
            Self::Invalid { place, rule } => {
                let place = if place.is_empty() { "/" } else { place };
                write!(
                    f,
                    "its [[context]] does not match the contract's contextSchema at {place:?}: {rule}"
                )
            }
        }
    }
}

impl fmt::Display for ContextLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` requires a context that the operator gives: {}",
            self.tool, self.why
        )
    }
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
