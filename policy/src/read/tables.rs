//! The tables of `toolward.toml` besides rules about tools.

use std::sync::Arc;

use toolward_contract::capability::{HostPattern, PathPattern};
use toolward_support::fields::Kind;

use super::{
    Field, Fields, did_you_mean, each, finish, flag, integer, list, number, one_or_each, optional,
    own, required, table, word,
};
use crate::approval::{self, ApprovalClass, ApprovalPolicy};
use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::grant::{OnViolation, SecretBinding, SecretPosition};
use crate::limits::{LimitName, LimitSetting, LimitSettings};
use crate::name::{Publisher, ToolPattern};
use crate::resolve::{self, ResolveTable};
use crate::resources::{self, Secret, SecretSource, ServiceRule, Share, Workspace};
use crate::rule::Defaults;

pub(super) fn defaults(fields: &mut Fields<'_>) -> Result<Defaults, PolicyError> {
    Ok(Defaults {
        approval: approval(fields)?,
        on_violation: on_violation(fields)?,
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
            let error = error::LIMIT.error(message).at(field.key_at);
            return Err(error.hinted(did_you_mean(name, &names, "limits")));
        };
        let setting = match field.kind() {
            Kind::Mapping => table(field, "a limit", |inner| {
                Ok(LimitSetting {
                    default: number(inner, "default")?,
                    maximum: number(inner, "maximum")?,
                })
            })?,
            _ => LimitSetting {
                default: None,
                maximum: Some(integer(&field)?),
            },
        };
        settings
            .set(limit, setting)
            .map_err(|message| error::LIMIT.error(message).at(at))?;
    }
    Ok(settings)
}

pub(super) fn network(fields: &mut Fields<'_>) -> Result<Option<String>, PolicyError> {
    optional(fields, "ca_file", |text| {
        resources::check_file_name("ca_file", text).map(|()| text.to_owned())
    })
}

pub(super) fn resolve(fields: &mut Fields<'_>) -> Result<ResolveTable, PolicyError> {
    let denied_tags = list(fields, "denied_tags", resolve::label)?;
    let fallback = fields.take("fallback");
    Ok(ResolveTable {
        region: one_or_each(fields, "region", resolve::label)?,
        allowed_tags: each(fields, "allowed_tags", resolve::label)?,
        denied_tags,
        publishers: each(fields, "publishers", Publisher::parse)?,
        fallback: fallback.map(|field| field.boolean()).transpose()?,
    })
}

pub(super) fn approval_policy(
    name: &str,
    fields: &mut Fields<'_>,
) -> Result<ApprovalPolicy, PolicyError> {
    let publishers = each(fields, "publishers", Publisher::parse)?;
    let tools = each(fields, "tools", ToolPattern::parse)?;
    let approval = approval(fields)?;
    let missing = |key: &str| {
        let message = format!("expected `{key}` in [approval.NAME], found none");
        error::MISSING_KEY.error(message)
    };
    let approval = ApprovalPolicy {
        name: name.to_owned(),
        publishers: publishers.ok_or_else(|| missing("publishers"))?,
        tools: tools.ok_or_else(|| missing("tools"))?,
        approval: approval.ok_or_else(|| missing("approval"))?,
    };
    finish(fields)?;
    approval::check_one(&approval)?;
    Ok(approval)
}

pub(super) fn workspace(fields: &mut Fields<'_>) -> Result<Workspace, PolicyError> {
    let path = required(fields, "path", |text| {
        PathPattern::parse(text).map_err(|message| error::WORKSPACE.error(message))
    })?;
    let directory = required(fields, "directory", |text| {
        // It would be taken for a directory of that name next to the file.
        if text.starts_with('~') || text.contains('$') {
            return Err(error::WORKSPACE
                .expected("a directory", text)
                .hinted("write the whole path; `~` and variables stand for nothing here"));
        }
        Ok(text)
    })?;
    let mut workspace = Workspace::new(path, directory);
    workspace.shared = flag(fields, "shared")?;
    workspace.max_bytes = number(fields, "max_bytes")?;
    workspace.max_files = number(fields, "max_files")?;
    Ok(workspace)
}

pub(super) fn secret(fields: &mut Fields<'_>) -> Result<Secret, PolicyError> {
    let slug = required(fields, "slug", own)?;
    let publisher = required(fields, "publisher", Publisher::parse)?;
    let mut secret = Secret::new(slug, publisher);
    let env = optional(fields, "env", |name| Ok(SecretSource::Env(name.to_owned())))?;
    let file = optional(fields, "file", |name| {
        Ok(SecretSource::File(name.to_owned()))
    })?;
    if env.is_some() && file.is_some() {
        return Err(error::SECRET
            .error("expected `env` or `file`, found both")
            .hinted("say where the value comes from once"));
    }
    secret.source = env.or(file).unwrap_or_default();
    let origin = optional(fields, "origin", |text| {
        resources::read_origin(text).map(|_| text)
    })?;
    let header = optional(fields, "header", |text| {
        resources::read_header(text).map(SecretPosition::Header)
    })?;
    let query = optional(fields, "query", |text| {
        resources::read_parameter(text).map(SecretPosition::Query)
    })?;
    let methods: Option<Vec<String>> = each(fields, "methods", resources::read_method)?;
    let prefix = optional(fields, "path_prefix", resources::read_path_prefix)?;
    finish(fields)?;
    if header.is_some() && query.is_some() {
        return Err(error::SECRET
            .error("expected `header` or `query`, found both")
            .hinted("a secret goes out in one place"));
    }
    secret.binding = match (origin, header.or(query)) {
        (None, None) if methods.is_none() && prefix.is_none() => None,
        (Some(origin), Some(position)) => {
            let methods = methods.unwrap_or_else(|| vec!["GET".to_owned(), "HEAD".to_owned()]);
            let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
            let prefix = prefix.as_deref().unwrap_or("/");
            let binding = SecretBinding::new(origin, &position, &methods, prefix)?;
            Some(Arc::new(binding))
        }
        _ => {
            return Err(error::SECRET
                .error(
                    "expected `origin` with `header` or `query`, found one without the other, or \
                 `methods` or `path_prefix` without them",
                )
                .hinted("leave all of them out for a secret that is only revealed"));
        }
    };
    Ok(secret)
}

pub(super) fn service(fields: &mut Fields<'_>) -> Result<ServiceRule, PolicyError> {
    let name = required(fields, "name", own)?;
    let host = |text: &str| HostPattern::parse(text).map_err(|message| error::HOST.error(message));
    let hosts = each(fields, "hosts", host)?;
    let missing = || error::MISSING_KEY.error("expected `hosts` in [[service]], found none");
    let hosts = hosts.ok_or_else(missing)?;
    Ok(ServiceRule { name, hosts })
}

pub(super) fn share(fields: &mut Fields<'_>) -> Result<Share, PolicyError> {
    Ok(Share {
        database: required(fields, "database", own)?,
        from: required(fields, "from", Publisher::parse)?,
        to: required(fields, "to", Publisher::parse)?,
    })
}

pub(super) fn approval(fields: &mut Fields<'_>) -> Result<Option<ApprovalClass>, PolicyError> {
    let words = "`approval` to be auto, on-mutate or always";
    optional(fields, "approval", word(&error::WRONG_VALUE, words))
}

pub(super) fn on_violation(fields: &mut Fields<'_>) -> Result<Option<OnViolation>, PolicyError> {
    let words = "`on_violation` to be record or end";
    optional(fields, "on_violation", word(&error::WRONG_VALUE, words))
}
