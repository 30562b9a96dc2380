//! The `[[context]]` tables of `toolward.toml`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use toolward_support::fields::{Content, Kind, Node, Span};

use super::fields::{Field, Fields, finish, flag, text};
use super::tables::{optional, required};
use crate::context::rule::check_value_name;
use crate::context::{ContextRule, ContextSource, ContextValue};
use crate::error::{self, PolicyError, quoted};
use crate::name::{Publisher, ToolPattern};

/// How deep a value that is written in a policy may be.
const MAX_DEPTH: usize = 16;

pub(super) fn context(mut fields: Fields<'_>) -> Result<ContextRule, PolicyError> {
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
    rule.driver = text(&mut fields, "driver")?.map(str::to_owned);
    rule.public = flag(&mut fields, "public")?;
    type Read = fn(&Field<'_>) -> Result<ContextSource, PolicyError>;
    let tables: [(&'static str, Read); 3] = [
        ("values", |field| {
            json(field.node, MAX_DEPTH).map(ContextSource::Written)
        }),
        ("env", |field| {
            Ok(ContextSource::Env(field.text()?.to_owned()))
        }),
        ("file", |field| {
            Ok(ContextSource::File(field.text()?.to_owned()))
        }),
    ];
    for (key, read) in tables {
        let Some(table) = fields.take(key) else {
            continue;
        };
        for (name, field) in table.members()? {
            let field = field.named(key);
            add(&mut rule.values, name, read(&field)?).map_err(|error| error.at(field.key_at))?;
        }
    }
    finish(fields)?;
    Ok(rule)
}

fn add(
    values: &mut BTreeMap<String, ContextValue>,
    name: &str,
    source: ContextSource,
) -> Result<(), PolicyError> {
    check_value_name(name)?;
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
fn json(value: &Node<Span>, depth: usize) -> Result<Json, PolicyError> {
    let wrong = |expected: &str| {
        PolicyError::new(
            &error::CONTEXT,
            format!("expected {expected} in `values`, found another kind of value"),
        )
        .at(value.at.clone())
    };
    let inner = depth
        .checked_sub(1)
        .ok_or_else(|| wrong("at most 16 levels"))?;
    Ok(match &value.content {
        Content::Other(Kind::Integer, _) => return Err(wrong("a whole number below 2^63")),
        Content::Other(Kind::Float, _) => return Err(wrong("a finite number")),
        Content::Other(..) => return Err(wrong("what JSON has, no date")),
        Content::List(items) => Json::Array(
            items
                .iter()
                .map(|item| json(item, inner))
                .collect::<Result<_, _>>()?,
        ),
        Content::Mapping(entries) => {
            let mut object = Map::new();
            for entry in entries {
                object.insert(entry.key.clone(), json(&entry.value, inner)?);
            }
            Json::Object(object)
        }
        _ => value.to_value(),
    })
}
