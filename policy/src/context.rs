//! `[[context]]`: the state that an operator hands to tools whose contract has a
//! `contextSchema`. A tool that requires some and is given none is blocked.

mod lack;
pub(crate) mod rule;

use std::fmt;

use serde_json::{Map, Value};
use toolward_contract::json;
use toolward_contract::schema::Schema;

use crate::implementation::{Contract, Implementation};
use crate::policy::Policy;

pub use lack::{ContextLack, ContextWhy, UnusedContext};
pub use rule::{ContextRule, ContextSource, ContextText, ContextValue};

/// Most texts within one secret value: each is looked for in all that a call shows.
const MAX_SECRET_TEXTS: usize = 256;

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
    /// By principal.
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

    /// The context of a principal's calls.
    ///
    /// # Errors
    /// Why no context exists that the contract accepts.
    pub fn get(&self, principal: &str) -> Result<&GivenContext, &ContextLack> {
        let own = |(name, _): &&(Option<String>, _)| name.as_deref() == Some(principal);
        match self.by_principal.iter().find(own) {
            Some((_, given)) => given.as_ref(),
            None => self.otherwise.as_ref(),
        }
    }

    /// Why no call has a context, if that is so: the tool is blocked.
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
        let typed = typed(text.as_str(), schema, name);
        if !rule.public {
            secrets.push((name.clone(), text.clone()));
            // A template can send each by itself.
            let mut parts = json::texts(&typed);
            parts.remove(text.as_str());
            if parts.len() > MAX_SECRET_TEXTS {
                let (name, most) = (name.clone(), MAX_SECRET_TEXTS);
                let problem = format!("more than {most} texts in it would have to be kept secret");
                return Err(ContextWhy::Unreadable { name, problem });
            }
            let parts = parts.into_iter().map(ContextText::from);
            secrets.extend(parts.map(|part| (name.clone(), part)));
        }
        value.insert(name.clone(), typed);
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

/// A text as the schema wants it: read as JSON unless the schema allows a string.
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
