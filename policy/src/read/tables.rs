//! One function for each table of the policy part of `toolward.toml`.

use std::sync::Arc;

use toolward_contract::capability::{Capability, CapabilitySet, HostPattern, PathPattern};
use toolward_contract::tool::McpResult;
use toolward_support::fields::{Kind, Span};

use super::fields::{
    Field, Fields, did_you_mean, finish, flag, integer, number, table, text, texts, wrong_type,
};
use crate::approval_class::ApprovalClass;
use crate::approval_policy::{self, ApprovalPolicy};
use crate::binding;
use crate::document::{self, DocumentRule, FilePattern};
use crate::error::{self, PolicyError, quoted};
use crate::file_name;
use crate::grant::{OnViolation, SecretBinding, SecretPosition};
use crate::limits::{LimitName, LimitSetting, LimitSettings};
use crate::name::{Publisher, ToolPattern};
use crate::operator_claims::Confirmed;
use crate::resolve::{self, Resolve};
use crate::rule::{Defaults, DenyRule, Rule, Secret, SecretSource, Service, Share, Workspace};
use crate::rule_action::RuleAction;

pub(super) fn defaults(mut fields: Fields<'_>) -> Result<Defaults, PolicyError> {
    let approval = approval(&mut fields)?;
    let on_violation = on_violation(&mut fields)?;
    finish(fields)?;
    Ok(Defaults {
        approval,
        on_violation,
    })
}

pub(super) fn limits(field: Field<'_>) -> Result<LimitSettings, PolicyError> {
    let mut settings = LimitSettings::default();
    for (name, field) in field.named("[limits]").members()? {
        let field = field.named(name);
        let at = field.at.clone();
        let mut settable = LimitName::settable_by_policy();
        let Some(limit) = settable.find(|limit| limit.as_str() == name) else {
            let names: Vec<&str> = LimitName::settable_by_policy()
                .map(LimitName::as_str)
                .collect();
            let message = format!("expected the name of a limit, found {}", quoted(name));
            let error = PolicyError::new(&error::LIMIT, message).at(field.key_at);
            return Err(error.hinted(did_you_mean(name, &names, "limits")));
        };
        let setting = match field.kind() {
            Kind::Mapping => {
                let mut inner = table(field, "a limit")?;
                let setting = LimitSetting {
                    default: number(&mut inner, "default")?,
                    maximum: number(&mut inner, "maximum")?,
                };
                finish(inner)?;
                setting
            }
            _ => LimitSetting {
                default: None,
                maximum: Some(integer(&field)?),
            },
        };
        settings
            .set(limit, setting)
            .map_err(|message| PolicyError::new(&error::LIMIT, message).at(at))?;
    }
    Ok(settings)
}

pub(super) fn network(mut fields: Fields<'_>) -> Result<Option<String>, PolicyError> {
    let file = optional(&mut fields, "ca_file", |text| {
        file_name::check("ca_file", text).map(|()| text.to_owned())
    })?;
    finish(fields)?;
    Ok(file)
}

pub(super) fn resolve(mut fields: Fields<'_>) -> Result<Resolve, PolicyError> {
    let denied_tags = each(&mut fields, "denied_tags", resolve::label)?;
    let fallback = fields.take("fallback");
    let resolve = Resolve {
        region: one_or_each(&mut fields, "region", resolve::label)?,
        allowed_tags: each(&mut fields, "allowed_tags", resolve::label)?,
        denied_tags: denied_tags.unwrap_or_default(),
        publishers: each(&mut fields, "publishers", Publisher::parse)?,
        fallback: fallback.map(|field| field.boolean()).transpose()?,
    };
    finish(fields)?;
    Ok(resolve)
}

pub(super) fn approval_policy(
    name: &str,
    mut fields: Fields<'_>,
) -> Result<ApprovalPolicy, PolicyError> {
    let publishers = each(&mut fields, "publishers", Publisher::parse)?;
    let tools = each(&mut fields, "tools", ToolPattern::parse)?;
    let approval = approval(&mut fields)?;
    let missing = |key: &str| {
        let message = format!("expected `{key}` in [approval.NAME], found none");
        PolicyError::new(&error::MISSING_KEY, message)
    };
    let approval = ApprovalPolicy {
        name: name.to_owned(),
        publishers: publishers.ok_or_else(|| missing("publishers"))?,
        tools: tools.ok_or_else(|| missing("tools"))?,
        approval: approval.ok_or_else(|| missing("approval"))?,
    };
    finish(fields)?;
    approval_policy::check_one(&approval)?;
    Ok(approval)
}

pub(super) fn workspace(mut fields: Fields<'_>) -> Result<Workspace, PolicyError> {
    let path = required(&mut fields, "path", |text| {
        PathPattern::parse(text).map_err(|message| PolicyError::new(&error::WORKSPACE, message))
    })?;
    let directory = required(&mut fields, "directory", |text| {
        // It would be taken for a directory of that name beside the file.
        if text.starts_with('~') || text.contains('$') {
            return Err(PolicyError::new(
                &error::WORKSPACE,
                format!("expected a directory, found {}", quoted(text)),
            )
            .hinted("write the whole path; `~` and variables stand for nothing here"));
        }
        Ok(text)
    })?;
    let mut workspace = Workspace::new(path, directory);
    workspace.shared = flag(&mut fields, "shared")?;
    workspace.max_bytes = number(&mut fields, "max_bytes")?;
    workspace.max_files = number(&mut fields, "max_files")?;
    finish(fields)?;
    Ok(workspace)
}

pub(super) fn secret(mut fields: Fields<'_>) -> Result<Secret, PolicyError> {
    let slug = required(&mut fields, "slug", |text| Ok(text.to_owned()))?;
    let publisher = required(&mut fields, "publisher", Publisher::parse)?;
    let mut secret = Secret::new(slug, publisher);
    secret.source = match (text(&mut fields, "env")?, text(&mut fields, "file")?) {
        (Some(_), Some(_)) => {
            return Err(
                PolicyError::new(&error::SECRET, "expected `env` or `file`, found both")
                    .hinted("say where the value comes from once"),
            );
        }
        (Some(name), None) => SecretSource::Env(name.to_owned()),
        (None, Some(name)) => SecretSource::File(name.to_owned()),
        (None, None) => SecretSource::Store,
    };
    let origin = optional(&mut fields, "origin", |text| {
        binding::read_origin(text).map(|_| text)
    })?;
    let header = optional(&mut fields, "header", binding::read_header)?;
    let query = optional(&mut fields, "query", binding::read_parameter)?;
    let methods = each(&mut fields, "methods", binding::read_method)?;
    let prefix = optional(&mut fields, "path_prefix", binding::read_path_prefix)?;
    let span = fields.at.clone();
    finish(fields)?;
    let methods_of = |given: &Option<Vec<String>>| match given {
        Some(methods) => methods.clone(),
        None => vec!["GET".to_owned(), "HEAD".to_owned()],
    };
    let position = match (header, query) {
        (Some(_), Some(_)) => {
            return Err(PolicyError::new(
                &error::SECRET,
                "expected `header` or `query`, found both",
            )
            .hinted("a secret goes out in one place"));
        }
        (Some(name), None) => Some(SecretPosition::Header(name)),
        (None, Some(name)) => Some(SecretPosition::Query(name)),
        (None, None) => None,
    };
    secret.binding = match (origin, position) {
        (None, None) if methods.is_none() && prefix.is_none() => None,
        (Some(origin), Some(position)) => {
            let methods = methods_of(&methods);
            let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
            let prefix = prefix.as_deref().unwrap_or("/");
            let binding = SecretBinding::at(origin, position, &methods, prefix);
            Some(Arc::new(binding.map_err(|error| error.at(span))?))
        }
        _ => {
            return Err(PolicyError::new(
                &error::SECRET,
                "expected `origin` with `header` or `query`, found one without the other, or \
                 `methods` or `path_prefix` without them",
            )
            .hinted("leave all of them out for a secret that is only revealed"));
        }
    };
    Ok(secret)
}

pub(super) fn service(mut fields: Fields<'_>) -> Result<Service, PolicyError> {
    let name = required(&mut fields, "name", |text| Ok(text.to_owned()))?;
    let span = fields.at.clone();
    let hosts = each(&mut fields, "hosts", |text| {
        HostPattern::parse(text).map_err(|message| PolicyError::new(&error::HOST, message))
    })?;
    let hosts = hosts.ok_or_else(|| {
        PolicyError::new(
            &error::MISSING_KEY,
            "expected `hosts` in [[service]], found none",
        )
        .at(span)
    })?;
    finish(fields)?;
    Ok(Service { name, hosts })
}

pub(super) fn share(mut fields: Fields<'_>) -> Result<Share, PolicyError> {
    let share = Share {
        database: required(&mut fields, "database", |text| Ok(text.to_owned()))?,
        from: required(&mut fields, "from", Publisher::parse)?,
        to: required(&mut fields, "to", Publisher::parse)?,
    };
    finish(fields)?;
    Ok(share)
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
    let addresses = each(&mut fields, "addresses", binding::read_address)?;
    rule.addresses = addresses.unwrap_or_default();
    let headers = each(&mut fields, "guest_headers", binding::read_guest_header)?;
    rule.guest_headers = headers.unwrap_or_default();
    let name = |text: &str| document::check_name(text).map(|()| text.to_owned());
    rule.names = each(&mut fields, "names", name)?.unwrap_or_default();
    rule.mcp_result = optional(&mut fields, "result", mcp_result)?;
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
        (None, Some(_)) => Err(PolicyError::new(
            &error::MISSING_KEY,
            "expected `action` beside `library`, found none",
        )
        .at(span)),
        (Some(id), library) => Ok(Some(RuleAction {
            id,
            library: library.unwrap_or_else(|| publisher.clone()),
        })),
    }
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

fn approval(fields: &mut Fields<'_>) -> Result<Option<ApprovalClass>, PolicyError> {
    optional(fields, "approval", |text| match text {
        "auto" => Ok(ApprovalClass::Auto),
        "on-mutate" => Ok(ApprovalClass::OnMutate),
        "always" => Ok(ApprovalClass::Always),
        _ => Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!(
                "expected `approval` to be auto, on-mutate or always, found {}",
                quoted(text)
            ),
        )),
    })
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
        _ => Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!(
                "expected `confirms` to have idempotent or additive, found {}",
                quoted(text)
            ),
        )),
    }
}

fn mcp_result(text: &str) -> Result<McpResult, PolicyError> {
    match text {
        "structured" => Ok(McpResult::Structured),
        "content" => Ok(McpResult::Content),
        _ => Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!(
                "expected `result` to be structured or content, found {}",
                quoted(text)
            ),
        )),
    }
}

fn on_violation(fields: &mut Fields<'_>) -> Result<Option<OnViolation>, PolicyError> {
    optional(fields, "on_violation", |text| match text {
        "record" => Ok(OnViolation::Record),
        "end" => Ok(OnViolation::End),
        _ => Err(PolicyError::new(
            &error::WRONG_VALUE,
            format!(
                "expected `on_violation` to be record or end, found {}",
                quoted(text)
            ),
        )),
    })
}

fn capabilities(
    fields: &mut Fields<'_>,
    key: &'static str,
) -> Result<Option<CapabilitySet>, PolicyError> {
    let read = each(fields, key, |text| {
        Capability::parse(text).map_err(|error| {
            PolicyError::new(&error::CAPABILITY, error.to_string())
                .hinted("write it as contracts do: `network:api.example.com`, `workspace:/notes`")
        })
    })?;
    Ok(read.map(|capabilities| capabilities.into_iter().collect()))
}

pub(super) fn required<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    value(&fields.required(key)?, read)
}

pub(super) fn optional<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<T>, PolicyError> {
    match fields.take(key) {
        Some(field) => value(&field, read).map(Some),
        None => Ok(None),
    }
}

fn value<'t, T>(
    field: &Field<'t>,
    read: impl FnOnce(&'t str) -> Result<T, PolicyError>,
) -> Result<T, PolicyError> {
    read(field.text()?).map_err(|error| error.at(field.at.clone()))
}

/// A text, or a list of them.
fn one_or_each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let Some(field) = fields.take(key) else {
        return Ok(None);
    };
    match field.kind() {
        Kind::Text => value(&field, read).map(|one| Some(vec![one])),
        Kind::List => list(&field, read).map(Some),
        _ => Err(wrong_type(key, "a text or a list of texts", field.node)),
    }
}

fn each<'t, T>(
    fields: &mut Fields<'t>,
    key: &'static str,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let field = fields.take(key);
    field.map(|field| list(&field, read)).transpose()
}

fn list<'t, T>(
    field: &Field<'t>,
    read: impl Fn(&'t str) -> Result<T, PolicyError>,
) -> Result<Vec<T>, PolicyError> {
    let read = |(text, at): (&'t str, Span)| read(text).map_err(|error| error.at(at));
    texts(field)?.into_iter().map(read).collect()
}
