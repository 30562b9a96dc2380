//! The rules about tools in `toolward.toml`: `[[grant]]`, `[[deny]]`, `[[document]]`, `[[context]]`, `[[exec]]`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use toolward_contract::capability::Capability;
use toolward_contract::tool::McpResult;
use toolward_support::fields::{Content, Kind, Node, Span};

use super::tables::{approval, on_violation};
use super::{
    Field, Fields, each, flag, integer, list, optional, own, required, set, table, texts, value,
    word,
};
use crate::context::rule::check_value_name;
use crate::context::{ContextRule, ContextSource, ContextValue};
use crate::document::{self, DocumentRule, FilePattern};
use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::exec::{ExecLimits, ExecRule, Interpreter};
use crate::name::{Publisher, ToolPattern};
use crate::resources;
use crate::rule::{Confirmed, DenyRule, Rule, RuleAction};

/// How deep a value that is written in a policy may be.
const MAX_DEPTH: usize = 16;

pub(super) fn grant(fields: &mut Fields<'_>) -> Result<Rule, PolicyError> {
    let mut rule = Rule::new(required(fields, "publisher", Publisher::parse)?);
    set(fields, "tool", ToolPattern::parse, &mut rule.tool)?;
    rule.action = action(fields, &rule.publisher)?;
    let driver_publisher = &mut rule.driver_publisher;
    set(
        fields,
        "driver_publisher",
        Publisher::parse,
        driver_publisher,
    )?;
    rule.driver = optional(fields, "driver", own)?;
    rule.requires = list(fields, "requires", capability)?;
    rule.mutates = list(fields, "mutates", capability)?;
    rule.accepts = list(fields, "accepts", own)?;
    rule.reveal = list(fields, "reveal", own)?;
    rule.plain_http = flag(fields, "plain_http")?;
    rule.addresses = list(fields, "addresses", resources::read_address)?;
    rule.guest_headers = list(fields, "guest_headers", resources::read_guest_header)?;
    rule.names = list(fields, "names", document::read_name)?;
    let result = |text: &str| match text {
        "structured" => Ok(McpResult::Structured),
        "content" => Ok(McpResult::Content),
        _ => Err(error::WRONG_VALUE.expected("`result` to be structured or content", text)),
    };
    rule.mcp_result = optional(fields, "result", result)?;
    rule.approval = approval(fields)?.unwrap_or_default();
    rule.preapproved = flag(fields, "preapproved")?;
    let claims: Vec<Confirmed> = list(fields, "confirms", claim)?;
    rule.confirms = claims.into_iter().fold(rule.confirms, Confirmed::or);
    rule.on_violation = on_violation(fields)?.unwrap_or_default();
    rule.prefer = flag(fields, "prefer")?;
    if let Some(field) = fields.take("fallback") {
        match field.text() {
            Ok("repeat") => rule.repeats = true,
            _ => rule.fallback = field.boolean()?,
        }
    }
    rule.partial = flag(fields, "partial")?;
    Ok(rule)
}

/// The action that a rule is about: its publisher's own, or that of a library.
fn action(
    fields: &mut Fields<'_>,
    publisher: &Publisher,
) -> Result<Option<RuleAction>, PolicyError> {
    let id = optional(fields, "action", own)?;
    let library = optional(fields, "library", Publisher::parse)?;
    if id.is_none() && library.is_some() {
        return Err(error::MISSING_KEY.error("expected `action` beside `library`, found none"));
    }
    let library = library.unwrap_or_else(|| publisher.clone());
    Ok(id.map(|id| RuleAction { id, library }))
}

fn claim(text: &str) -> Result<Confirmed, PolicyError> {
    let (idempotent, additive) = (text == "idempotent", text == "additive");
    if idempotent || additive {
        return Ok(Confirmed {
            idempotent,
            additive,
        });
    }
    Err(error::WRONG_VALUE.expected("`confirms` to have idempotent or additive", text))
}

fn capability(text: &str) -> Result<Capability, PolicyError> {
    Capability::parse(text).map_err(|error| {
        error::CAPABILITY
            .error(error.to_string())
            .hinted("write it as contracts do: `network:api.example.com`, `workspace:/notes`")
    })
}

pub(super) fn deny(fields: &mut Fields<'_>) -> Result<DenyRule, PolicyError> {
    let mut rule = DenyRule::all();
    let publisher = |text: &str| match text {
        "*" => Ok(None),
        name => Publisher::parse(name).map(Some),
    };
    set(fields, "publisher", publisher, &mut rule.publisher)?;
    set(fields, "tool", ToolPattern::parse, &mut rule.tool)?;
    rule.capabilities = each(fields, "capabilities", capability)?;
    Ok(rule)
}

pub(super) fn document(fields: &mut Fields<'_>) -> Result<DocumentRule, PolicyError> {
    let mut rule = DocumentRule::new(required(fields, "publisher", Publisher::parse)?);
    set(fields, "bundle", document::id_pattern, &mut rule.bundle)?;
    rule.prompts = list(fields, "prompts", document::id_pattern)?;
    rule.resources = list(fields, "resources", FilePattern::parse)?;
    rule.names = list(fields, "names", document::read_name)?;
    rule.uris = list(fields, "uris", document::read_uri)?;
    Ok(rule)
}

pub(super) fn context(fields: &mut Fields<'_>) -> Result<ContextRule, PolicyError> {
    let publisher = required(fields, "publisher", Publisher::parse)?;
    let tool = required(fields, "tool", ToolPattern::parse)?;
    let mut rule = ContextRule::new(publisher, tool);
    // Not by default: who sees a value is to be read in the table.
    let principal = |text: &str| Ok(ContextRule::principal_of(text));
    rule.principal = required(fields, "principal", principal)?;
    let driver_publisher = &mut rule.driver_publisher;
    set(
        fields,
        "driver_publisher",
        Publisher::parse,
        driver_publisher,
    )?;
    rule.driver = optional(fields, "driver", own)?;
    rule.public = flag(fields, "public")?;
    for key in ["values", "env", "file"] {
        let Some(table) = fields.take(key) else {
            continue;
        };
        for (name, field) in table.members()? {
            let field = field.named(key);
            let source = match key {
                "values" => ContextSource::Written(json(field.node, MAX_DEPTH)?),
                "env" => ContextSource::Env(value(&field, own)?),
                _ => ContextSource::File(value(&field, own)?),
            };
            add(&mut rule.values, name, source).map_err(|error| error.at(field.key_at))?;
        }
    }
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
    let message = format!("expected each value once, found {} again", quoted(name));
    Err(error::CONTEXT
        .error(message)
        .hinted("say in one of `values`, `env` and `file` where it comes from"))
}

/// A value of TOML as JSON has it.
fn json(value: &Node<Span>, depth: usize) -> Result<Json, PolicyError> {
    let wrong = |expected: &str| {
        error::CONTEXT
            .error(format!(
                "expected {expected} in `values`, found another kind of value"
            ))
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

pub(super) fn exec(fields: &mut Fields<'_>) -> Result<ExecRule, PolicyError> {
    let mut rule = ExecRule::new(
        required(fields, "publisher", Publisher::parse)?,
        required(fields, "tool", ToolPattern::parse)?,
        required(fields, "command", own)?,
        required(fields, "digest", str::parse)?,
    );
    // Required, though it is often empty: who writes the line sees that there are none.
    rule.args = texts(&fields.required("args")?, own)?;
    if let Some(field) = fields.take("interpreter") {
        let interpreter = table(field, "`interpreter`", |inner| {
            Ok(Interpreter {
                path: required(inner, "path", own)?,
                digest: required(inner, "digest", str::parse)?,
            })
        })?;
        rule.interpreter = Some(interpreter);
    }
    rule.env = by_name(fields, "env", own)?;
    let network = |text: &str| match text {
        "unfiltered" => Ok(true),
        _ => Err(error::EXEC
            .expected("`network` to be \"unfiltered\"", text)
            .hinted("no rule filters what a program sends: leave the key out, or say so")),
    };
    set(fields, "network", network, &mut rule.network)?;
    let access = word(&error::EXEC, "a workspace to be read-only or read-write");
    rule.workspaces = by_name(fields, "workspaces", access)?;
    rule.processes = flag(fields, "processes")?;
    if let Some(field) = fields.take("limits") {
        rule.limits = table(field, "`limits`", exec_limits)?;
    }
    Ok(rule)
}

/// A table with keys of the operator's choice.
fn by_name<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<BTreeMap<String, T>, PolicyError> {
    let members = fields.take(key).map(|field| field.members()).transpose()?;
    let members = members.into_iter().flatten();
    let member = |(name, field): (&str, Field<'t>)| Ok((name.to_owned(), value(&field, &read)?));
    members.map(member).collect()
}

fn exec_limits(fields: &mut Fields<'_>) -> Result<ExecLimits, PolicyError> {
    let mut limits = ExecLimits::default();
    for (name, value, ..) in limits.rows() {
        if let Some(field) = fields.take(name) {
            *value = integer(&field)?;
        }
    }
    Ok(limits)
}
