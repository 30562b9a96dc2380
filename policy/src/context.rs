//! `[[context]]`: the state that an operator hands to tools whose contract has a
//! `contextSchema`. A tool that requires some and is given none is blocked.

mod lack;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};
use toolward_contract::json;
use toolward_contract::schema::Schema;

use crate::decision::{Contract, Implementation};
use crate::error::{self, PolicyError, quoted};
use crate::name::{Publisher, ToolPattern};
use crate::policy::Policy;
use crate::rule::PLACEHOLDER_VARIABLE;

pub use lack::{ContextLack, ContextWhy};
pub use value::{ContextSource, ContextText, ContextValue};

/// The principal that stands for all.
const EVERYBODY: &str = "*";
/// Values of one table.
const VALUES: usize = 64;
/// Bytes of a principal's name, and of the name of a value.
const NAME: usize = 256;

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

    fn is_for(&self, contract: &Contract<'_>, implementation: &Implementation<'_>) -> bool {
        let driver = implementation.driver.id.as_str();
        self.publisher.as_str() == contract.publisher
            && self
                .tool
                .matches(contract.tool.id.as_str(), contract.tool.version.major)
            && self.driver_publisher.as_str() == implementation.publisher
            && self.driver.as_deref().is_none_or(|own| own == driver)
    }

    /// The more it says, the sooner it is taken.
    fn closeness(&self) -> (bool, bool, bool) {
        (
            self.principal.is_some(),
            self.driver.is_some(),
            self.tool.major().is_some(),
        )
    }

    /// What the rules of one table have to be.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let name = |text: &str, what: &str| {
            if (1..=NAME).contains(&text.len()) && !text.chars().any(char::is_control) {
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
        if self.values.is_empty() || self.values.len() > VALUES {
            return Err(PolicyError::new(
                &error::CONTEXT,
                format!("expected 1 to {VALUES} values, found {}", self.values.len()),
            )
            .hinted("give them as `values`, or name where they come from in `env` or `file`"));
        }
        for (key, value) in &self.values {
            name(key, "the name of a value")?;
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

/// The context of one call, valid by the contract's `contextSchema`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GivenContext {
    /// The value.
    pub value: Value,
    /// The texts in it that nothing may show, by the names of their values.
    pub secrets: Vec<(String, ContextText)>,
}

impl fmt::Debug for GivenContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenContext").finish_non_exhaustive()
    }
}

/// The contexts of one tool carried out by one driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contexts {
    /// By principal; the last is for everybody else.
    by_principal: Vec<(Option<String>, Result<GivenContext, ContextLack>)>,
    otherwise: Result<GivenContext, ContextLack>,
}

impl Contexts {
    /// Puts together what a policy gives to this pair. Empty contexts where the
    /// contract has no `contextSchema`.
    #[must_use]
    pub fn of(
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
        policy: &Policy,
    ) -> Self {
        let empty = || GivenContext {
            value: Value::Object(Map::new()),
            secrets: Vec::new(),
        };
        let Some(schema) = &contract.tool.context_schema else {
            return Self {
                by_principal: Vec::new(),
                otherwise: Ok(empty()),
            };
        };
        let lack = |why| ContextLack::new(contract, implementation, why);
        let mut rules: Vec<&ContextRule> = policy
            .contexts()
            .iter()
            .filter(|rule| rule.is_for(contract, implementation))
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.closeness()));
        let given = |rule: &ContextRule| composed(rule, schema).map_err(lack);
        let otherwise = match rules.iter().find(|rule| rule.principal.is_none()) {
            Some(rule) => given(rule),
            None if schema.validate(&empty().value).is_ok() => Ok(empty()),
            None => Err(lack(ContextWhy::NoRule)),
        };
        let named = rules.iter().filter(|rule| rule.principal.is_some());
        Self {
            by_principal: named
                .map(|rule| (rule.principal.clone(), given(rule)))
                .collect(),
            otherwise,
        }
    }

    /// The context of a principal's calls.
    ///
    /// # Errors
    /// Why there is none that the contract takes.
    pub fn get(&self, principal: &str) -> Result<&GivenContext, &ContextLack> {
        let own = |(name, _): &&(Option<String>, _)| name.as_deref() == Some(principal);
        match self.by_principal.iter().find(own) {
            Some((_, given)) => given.as_ref(),
            None => self.otherwise.as_ref(),
        }
    }

    /// Why nobody's call has a context, if that is so: the tool is blocked.
    #[must_use]
    pub fn lack(&self) -> Option<&ContextLack> {
        let otherwise = self.otherwise.as_ref().err()?;
        let named = self.by_principal.iter().map(|(_, given)| given.as_ref());
        let mut lacks = Vec::new();
        for given in named {
            lacks.push(given.err()?);
        }
        Some(lacks.first().copied().unwrap_or(otherwise))
    }
}

/// The value of a rule, if the schema takes it.
fn composed(rule: &ContextRule, schema: &Schema) -> Result<GivenContext, ContextWhy> {
    if rule.is_placeholder() {
        return Err(ContextWhy::NotChosen);
    }
    let mut value = Map::new();
    let mut secrets = Vec::new();
    for (name, own) in &rule.values {
        let text = match own.source() {
            ContextSource::Written(written) => {
                value.insert(name.clone(), written.clone());
                continue;
            }
            _ => own.text().map_err(|problem| ContextWhy::Unreadable {
                name: name.clone(),
                problem: problem.to_owned(),
            })?,
        };
        if !rule.public {
            secrets.push((name.clone(), text.clone()));
        }
        value.insert(name.clone(), typed(text.as_str(), schema, name));
    }
    let value = Value::Object(value);
    match schema.validate(&value) {
        Ok(()) => Ok(GivenContext { value, secrets }),
        // Its message may quote the value.
        Err(violation) => Err(ContextWhy::Invalid {
            place: violation.instance_path,
            rule: violation.schema_path,
        }),
    }
}

/// A text as the schema wants it: one that it doesn't call a string is read as
/// JSON.
fn typed(text: &str, schema: &Schema, name: &str) -> Value {
    let property = schema
        .value()
        .get("properties")
        .and_then(|properties| properties.get(name));
    let types = property.and_then(|property| property.get("type"));
    let is_text = match types {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(several)) => several.iter().any(|one| one == "string"),
        _ => true,
    };
    let read = || json::parse(text.as_bytes(), &json::Limits::default()).ok();
    match is_text {
        true => Value::String(text.to_owned()),
        false => read().unwrap_or_else(|| Value::String(text.to_owned())),
    }
}
