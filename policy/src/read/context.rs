//! The `[[context]]` tables of `toolward.toml`.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value as Json};
use toml::de::DeValue;

use super::fields::{self, Fields, Value};
use super::tables::{optional, required};
use crate::context::{ContextRule, ContextSource, ContextValue};
use crate::error::{self, PolicyError, quoted};
use crate::name::{Publisher, ToolPattern};

/// How deep a value that is written in a policy may be.
const MAX_DEPTH: usize = 16;

pub(super) fn context(mut fields: Fields<'_, '_>) -> Result<ContextRule, PolicyError> {
    let publisher = required(&mut fields, "publisher", Publisher::parse)?;
    let tool = required(&mut fields, "tool", ToolPattern::parse)?;
    let mut rule = ContextRule::new(publisher, tool);
    // Not by default: who sees a value is to be read in the table.
    rule.principal = required(&mut fields, "principal", |text| {
        Ok(ContextRule::principal_of(text))
    })?;
    if let Some(publisher) = optional(&mut fields, "driver_publisher", Publisher::parse)? {
        rule.driver_publisher = publisher;
    }
    rule.driver = fields.text("driver")?.map(str::to_owned);
    rule.public = fields.flag("public")?;
    type Read = fn(&Value<'_>, &str) -> Result<ContextSource, PolicyError>;
    let tables: [(&'static str, Read); 3] = [
        ("values", |value, _| {
            json(value, MAX_DEPTH).map(ContextSource::Written)
        }),
        ("env", |value, key| {
            fields::text(value, key).map(|name| ContextSource::Env(name.to_owned()))
        }),
        ("file", |value, key| {
            fields::text(value, key).map(|name| ContextSource::File(name.to_owned()))
        }),
    ];
    for (key, read) in tables {
        let Some(table) = fields.take(key) else {
            continue;
        };
        for (name, value) in fields::table(table, key)? {
            add(&mut rule.values, name.get_ref(), read(value, key)?)
                .map_err(|error| error.at(name.span()))?;
        }
    }
    fields.finish()?;
    Ok(rule)
}

fn add(
    values: &mut BTreeMap<String, ContextValue>,
    name: &str,
    source: ContextSource,
) -> Result<(), PolicyError> {
    let known = values.insert(name.to_owned(), ContextValue::new(source));
    if known.is_none() {
        return Ok(());
    }
    Err(PolicyError::new(
        &error::CONTEXT,
        format!("expected each value once, found {} again", quoted(name)),
    )
    .hinted("say in one of `values`, `env` and `file` where it comes from"))
}

/// A value of TOML as JSON has it.
fn json(value: &Value<'_>, depth: usize) -> Result<Json, PolicyError> {
    let wrong = |expected: &str| {
        PolicyError::new(
            &error::CONTEXT,
            format!("expected {expected} in `values`, found another kind of value"),
        )
        .at(value.span())
    };
    let inner = depth
        .checked_sub(1)
        .ok_or_else(|| wrong("at most 16 levels"))?;
    Ok(match value.get_ref() {
        DeValue::String(text) => Json::String(text.as_ref().to_owned()),
        DeValue::Boolean(flag) => Json::Bool(*flag),
        DeValue::Integer(integer) => {
            let read = i64::from_str_radix(integer.as_str(), integer.radix());
            Json::Number(read.map_err(|_| wrong("a whole number below 2^63"))?.into())
        }
        DeValue::Float(float) => {
            let read = float.as_str().parse().ok().and_then(Number::from_f64);
            Json::Number(read.ok_or_else(|| wrong("a finite number"))?)
        }
        DeValue::Array(items) => Json::Array(
            items
                .iter()
                .map(|item| json(item, inner))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => {
            let mut object = Map::new();
            for (key, item) in table {
                object.insert(key.get_ref().as_ref().to_owned(), json(item, inner)?);
            }
            Json::Object(object)
        }
        DeValue::Datetime(_) => return Err(wrong("what JSON has, no date")),
    })
}
