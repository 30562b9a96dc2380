//! `[[context]]`: the state that an operator gives to tools whose contract has a `contextSchema`. A
//! tool that requires a context but is given none is blocked, except for callers that bring one.

pub(crate) mod rule;

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use toolward_contract::json;
use toolward_contract::schema::Schema;

use crate::implementation::{Contract, Implementation};
use crate::policy::Policy;
use crate::toml_text::{PLACEHOLDER_VARIABLE, comment, pair, text};

pub use rule::{ContextRule, ContextSource, ContextText, ContextValue, UnusedContext};

/// The most texts within one secret value, since each is searched for in everything that a call
/// shows.
const MAX_SECRET_TEXTS: usize = 256;

/// The context of one call, which matches the contract's `contextSchema`.
#[derive(Clone, PartialEq, Eq)]
pub struct GivenContext {
    /// The value.
    pub value: Value,
    /// The texts that must not be shown, each with the name of the `[[context]]` value that it is
    /// from.
    pub secrets: Vec<(String, ContextText)>,
}

impl fmt::Debug for GivenContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenContext").finish_non_exhaustive()
    }
}

/// The contexts of one tool with one driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contexts {
    /// The contexts for single principals, the most specific first.
    by_principal: Vec<(Option<String>, Result<GivenContext, ContextLack>)>,
    otherwise: Result<GivenContext, ContextLack>,
}

impl Contexts {
    /// Builds the contexts that a policy gives to a contract with a driver. The contexts are empty
    /// if the contract has no `contextSchema`.
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
            .tables
            .contexts
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

    /// Returns the context of a principal's calls.
    ///
    /// # Errors
    /// Why the principal's calls have no context that the contract accepts.
    pub fn get(&self, principal: &str) -> Result<&GivenContext, &ContextLack> {
        let own = |(name, _): &&(Option<String>, _)| name.as_deref() == Some(principal);
        match self.by_principal.iter().find(own) {
            Some((_, given)) => given.as_ref(),
            None => self.otherwise.as_ref(),
        }
    }

    /// Why the tool is blocked: no call has a context. `None` if the calls of at least one
    /// principal have a context.
    pub fn lack(&self) -> Option<&ContextLack> {
        let otherwise = self.otherwise.as_ref().err()?;
        let named = self.by_principal.iter().map(|(_, given)| given.as_ref());
        let lacks: Vec<_> = named.map(Result::err).collect::<Option<_>>()?;
        Some(lacks.first().copied().unwrap_or(otherwise))
    }
}

/// The context that a rule gives, if it matches the schema.
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
        let typed = typed(text.as_str(), schema, name);
        if !rule.public {
            secrets.push((name.clone(), text.clone()));
            // A request template can send each text separately, so each is secret.
            let mut parts = json::texts(&typed);
            parts.remove(text.as_str());
            if parts.len() > MAX_SECRET_TEXTS {
                let (name, most) = (name.clone(), MAX_SECRET_TEXTS);
                let problem = format!("more than {most} texts in it would have to be kept secret");
                return Err(ContextWhy::Unreadable { name, problem });
            }
            let parts = parts.into_iter().map(ContextText);
            secrets.extend(parts.map(|part| (name.clone(), part)));
        }
        value.insert(name.clone(), typed);
    }
    let value = Value::Object(value);
    match schema.validate(&value) {
        Ok(()) => Ok(GivenContext { value, secrets }),
        // The violation's message is left out, since it may quote the value.
        Err(violation) => Err(ContextWhy::Invalid {
            place: violation.instance_path,
            rule: violation.schema_path,
        }),
    }
}

/// Converts a text to the type that the schema requires. The text stays a string if the schema
/// allows a string or names no type, or if the text is not JSON. Otherwise it is parsed as JSON.
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

/// The most names of values that are suggested.
const MAX_SHOWN_NAMES: usize = 64;

/// A tool that requires a context but has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("`{tool}` requires a context that the operator gives: {why}")]
pub struct ContextLack {
    /// `id@major` of the contract.
    pub tool: String,
    /// The contract's publisher.
    pub publisher: String,
    /// The driver's id.
    pub driver: String,
    /// The driver's publisher.
    pub driver_publisher: String,
    /// Why it has none.
    pub why: ContextWhy,
    /// The values that the contract requires, by name.
    #[serde(skip)]
    required: Vec<String>,
}

/// Why the context is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum ContextWhy {
    /// No `[[context]]` matches this tool, driver and principal.
    #[error("no [[context]] is for it")]
    NoRule,
    /// Its `[[context]]` has values for the operator to replace.
    #[error("its [[context]] still waits for the choice that `# choose` marks")]
    NotChosen,
    /// A value can't be read from its source, or has too many texts to keep secret.
    #[error("the value {name:?} of its [[context]]: {problem}")]
    Unreadable {
        /// The value's name.
        name: String,
        /// The problem, which never contains the value.
        problem: String,
    },
    /// The values do not match the contract's `contextSchema`.
    #[error("its [[context]] does not match the contract's contextSchema at {:?}: {rule}", if .place.is_empty() { "/" } else { .place })]
    Invalid {
        /// The place in the context, as a JSON pointer.
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

    /// The lines to add to the policy's file, as TOML that can be appended. They grant nothing
    /// until the operator has replaced the marked values, since a bundle must not choose where a
    /// value comes from. If the tool has a `[[context]]`, this is only a TOML comment with the
    /// problem.
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
