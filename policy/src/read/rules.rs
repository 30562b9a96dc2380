//! The rules about tools in `toolward.toml`: `[[grant]]`, `[[deny]]`, `[[document]]`, `[[context]]`, `[[exec]]`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use toolward_contract::capability::{Capability, CapabilitySet};
use toolward_contract::tool::McpResult;
use toolward_support::fields::{Content, Kind, Node, Span};

use super::fields::{
    Field, Fields, each, finish, flag, integer, optional, required, table, text, texts, word,
};
use super::tables::{approval, on_violation};
use crate::context::rule::check_value_name;
use crate::context::{ContextRule, ContextSource, ContextValue};
use crate::document::{self, DocumentRule, FilePattern};
use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::exec::{ExecLimits, ExecRule, Interpreter, WorkspaceAccess};
use crate::name::{Publisher, ToolPattern};
use crate::rule::{Confirmed, DenyRule, Rule, RuleAction};
use crate::values;

/// How deep a value that is written in a policy may be.
const MAX_DEPTH: usize = 16;

pub(super) fn grant(mut fields: Fields<'_>) -> Result<Rule, PolicyError> {
    let mut rule = Rule::new(required(&mut fields, "publisher", Publisher::parse)?);
    if let Some(tool) = optional(&mut fields, "tool", ToolPattern::parse)? {
        rule.tool = tool;
    }
    rule.action = action(&mut fields, &rule.publisher)?;
    if let Some(publisher) = optional(&mut fields, "driver_publisher", Publisher::parse)? {
        rule.driver_publisher = publisher;
    }
    rule.driver = text(&mut fields, "driver")?.map(str::to_owned);
    rule.requires = capabilities(&mut fields, "requires")?.unwrap_or_default();
    rule.mutates = capabilities(&mut fields, "mutates")?.unwrap_or_default();
    let accepts = each(&mut fields, "accepts", |text| Ok(text.to_owned()))?;
    rule.accepts = accepts.unwrap_or_default().into_iter().collect();
    let reveal = each(&mut fields, "reveal", |text| Ok(text.to_owned()))?;
    rule.reveal = reveal.unwrap_or_default();
    rule.plain_http = flag(&mut fields, "plain_http")?;
    let addresses = each(&mut fields, "addresses", values::read_address)?;
    rule.addresses = addresses.unwrap_or_default();
    let headers = each(&mut fields, "guest_headers", values::read_guest_header)?;
    rule.guest_headers = headers.unwrap_or_default();
    let name = |text: &str| document::check_name(text).map(|()| text.to_owned());
    rule.names = each(&mut fields, "names", name)?.unwrap_or_default();
    rule.mcp_result = word(
        &mut fields,
        "result",
        "structured or content",
        &[
            ("structured", McpResult::Structured),
            ("content", McpResult::Content),
        ],
    )?;
    rule.approval = approval(&mut fields)?.unwrap_or_default();
    rule.preapproved = flag(&mut fields, "preapproved")?;
    for claim in each(&mut fields, "confirms", claim)?.unwrap_or_default() {
        rule.confirms = rule.confirms.or(claim);
    }
    rule.on_violation = on_violation(&mut fields)?.unwrap_or_default();
    rule.prefer = flag(&mut fields, "prefer")?;
    if let Some(field) = fields.take("fallback") {
        match field.text() {
            Ok("repeat") => rule.repeats = true,
            _ => rule.fallback = field.boolean()?,
        }
    }
    rule.partial = flag(&mut fields, "partial")?;
    finish(fields)?;
    Ok(rule)
}

/// The action that a rule is about: its publisher's own, or that of a library.
fn action(
    fields: &mut Fields<'_>,
    publisher: &Publisher,
) -> Result<Option<RuleAction>, PolicyError> {
    let id = text(fields, "action")?.map(str::to_owned);
    let span = fields.at.clone();
    let library = optional(fields, "library", Publisher::parse)?;
    match (id, library) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(error::MISSING_KEY
            .error("expected `action` beside `library`, found none")
            .at(span)),
        (Some(id), library) => Ok(Some(RuleAction {
            id,
            library: library.unwrap_or_else(|| publisher.clone()),
        })),
    }
}

fn claim(text: &str) -> Result<Confirmed, PolicyError> {
    let nothing = Confirmed::default();
    match text {
        "idempotent" => Ok(Confirmed {
            idempotent: true,
            ..nothing
        }),
        "additive" => Ok(Confirmed {
            additive: true,
            ..nothing
        }),
        _ => Err(error::WRONG_VALUE.expected("`confirms` to have idempotent or additive", text)),
    }
}

fn capabilities(
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Result<Option<CapabilitySet>, PolicyError> {
    let read = each(fields, key, |text| {
        Capability::parse(text).map_err(|error| {
            error::CAPABILITY
                .error(error.to_string())
                .hinted("write it as contracts do: `network:api.example.com`, `workspace:/notes`")
        })
    })?;
    Ok(read.map(|capabilities| capabilities.into_iter().collect()))
}

pub(super) fn deny(mut fields: Fields<'_>) -> Result<DenyRule, PolicyError> {
    let mut rule = DenyRule::all();
    rule.publisher = optional(&mut fields, "publisher", |text| match text {
        "*" => Ok(None),
        name => Publisher::parse(name).map(Some),
    })?
    .flatten();
    if let Some(tool) = optional(&mut fields, "tool", ToolPattern::parse)? {
        rule.tool = tool;
    }
    rule.capabilities = capabilities(&mut fields, "capabilities")?;
    finish(fields)?;
    Ok(rule)
}

pub(super) fn document(mut fields: Fields<'_>) -> Result<DocumentRule, PolicyError> {
    let mut rule = DocumentRule::new(required(&mut fields, "publisher", Publisher::parse)?);
    if let Some(bundle) = optional(&mut fields, "bundle", document::id_pattern)? {
        rule.bundle = bundle;
    }
    rule.prompts = each(&mut fields, "prompts", document::id_pattern)?.unwrap_or_default();
    rule.resources = each(&mut fields, "resources", FilePattern::parse)?.unwrap_or_default();
    let name = |text: &str| document::check_name(text).map(|()| text.to_owned());
    rule.names = each(&mut fields, "names", name)?.unwrap_or_default();
    let uri = |text: &str| document::check_uri(text).map(|()| text.to_owned());
    rule.uris = each(&mut fields, "uris", uri)?.unwrap_or_default();
    finish(fields)?;
    Ok(rule)
}

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
    Err(error::CONTEXT
        .error(format!(
            "expected each value once, found {} again",
            quoted(name)
        ))
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

pub(super) fn exec(mut fields: Fields<'_>) -> Result<ExecRule, PolicyError> {
    let mut rule = ExecRule::new(
        required(&mut fields, "publisher", Publisher::parse)?,
        required(&mut fields, "tool", ToolPattern::parse)?,
        required(&mut fields, "command", |text| Ok(text.to_owned()))?,
        required(&mut fields, "digest", str::parse)?,
    );
    // Required, though it is often empty: who writes the line sees that there are none.
    let args = fields.required("args")?;
    rule.args = texts(&args)?
        .into_iter()
        .map(|(text, _)| text.to_owned())
        .collect();
    if let Some(field) = fields.take("interpreter") {
        let mut inner = table(field, "`interpreter`")?;
        rule.interpreter = Some(Interpreter {
            path: required(&mut inner, "path", |text| Ok(text.to_owned()))?,
            digest: required(&mut inner, "digest", str::parse)?,
        });
        finish(inner)?;
    }
    if let Some(field) = fields.take("env") {
        for (slug, name) in field.members()? {
            rule.env.insert(slug.to_owned(), name.text()?.to_owned());
        }
    }
    let network = optional(&mut fields, "network", |text| match text {
        "unfiltered" => Ok(true),
        _ => Err(error::EXEC
            .expected("`network` to be \"unfiltered\"", text)
            .hinted("no rule filters what a program sends: leave the key out, or say so")),
    })?;
    rule.network = network.unwrap_or_default();
    if let Some(field) = fields.take("workspaces") {
        for (path, field) in field.members()? {
            rule.workspaces.insert(path.to_owned(), access(&field)?);
        }
    }
    rule.processes = flag(&mut fields, "processes")?;
    if let Some(field) = fields.take("limits") {
        rule.limits = exec_limits(field)?;
    }
    finish(fields)?;
    Ok(rule)
}

fn access(field: &Field<'_>) -> Result<WorkspaceAccess, PolicyError> {
    match field.text()? {
        "read-only" => Ok(WorkspaceAccess::ReadOnly),
        "read-write" => Ok(WorkspaceAccess::ReadWrite),
        other => Err(error::EXEC
            .expected("a workspace to be read-only or read-write", other)
            .at(field.at.clone())),
    }
}

fn exec_limits(field: Field<'_>) -> Result<ExecLimits, PolicyError> {
    let mut limits = ExecLimits::default();
    let mut inner = table(field, "`limits`")?;
    for (name, value, ..) in limits.rows() {
        if let Some(field) = inner.take(name) {
            *value = integer(&field)?;
        }
    }
    finish(inner)?;
    Ok(limits)
}
