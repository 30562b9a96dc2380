//! The tables of `toolward.toml` besides rules about tools.

use std::sync::Arc;

use toolward_contract::capability::{HostPattern, PathPattern};
use toolward_support::fields::Kind;

use super::fields::{
    Field, Fields, did_you_mean, each, finish, flag, integer, number, one_or_each, optional,
    required, table, text, word,
};
use crate::approval::{self, ApprovalClass, ApprovalPolicy};
use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::grant::{OnViolation, SecretBinding, SecretPosition};
use crate::limits::{LimitName, LimitSetting, LimitSettings};
use crate::name::{Publisher, ToolPattern};
use crate::resolve::{self, ResolveTable};
use crate::resources::{Secret, SecretSource, ServiceRule, Share, Workspace};
use crate::rule::Defaults;
use crate::values;

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
            let error = error::LIMIT.error(message).at(field.key_at);
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
            .map_err(|message| error::LIMIT.error(message).at(at))?;
    }
    Ok(settings)
}

pub(super) fn network(mut fields: Fields<'_>) -> Result<Option<String>, PolicyError> {
    let file = optional(&mut fields, "ca_file", |text| {
        values::check_file_name("ca_file", text).map(|()| text.to_owned())
    })?;
    finish(fields)?;
    Ok(file)
}

pub(super) fn resolve(mut fields: Fields<'_>) -> Result<ResolveTable, PolicyError> {
    let denied_tags = each(&mut fields, "denied_tags", resolve::label)?;
    let fallback = fields.take("fallback");
    let resolve = ResolveTable {
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

pub(super) fn workspace(mut fields: Fields<'_>) -> Result<Workspace, PolicyError> {
    let path = required(&mut fields, "path", |text| {
        PathPattern::parse(text).map_err(|message| error::WORKSPACE.error(message))
    })?;
    let directory = required(&mut fields, "directory", |text| {
        // It would be taken for a directory of that name next to the file.
        if text.starts_with('~') || text.contains('$') {
            return Err(error::WORKSPACE
                .expected("a directory", text)
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
            return Err(error::SECRET
                .error("expected `env` or `file`, found both")
                .hinted("say where the value comes from once"));
        }
        (Some(name), None) => SecretSource::Env(name.to_owned()),
        (None, Some(name)) => SecretSource::File(name.to_owned()),
        (None, None) => SecretSource::Store,
    };
    let origin = optional(&mut fields, "origin", |text| {
        values::read_origin(text).map(|_| text)
    })?;
    let header = optional(&mut fields, "header", values::read_header)?;
    let query = optional(&mut fields, "query", values::read_parameter)?;
    let methods = each(&mut fields, "methods", values::read_method)?;
    let prefix = optional(&mut fields, "path_prefix", values::read_path_prefix)?;
    let span = fields.at.clone();
    finish(fields)?;
    let methods_of = |given: &Option<Vec<String>>| match given {
        Some(methods) => methods.clone(),
        None => vec!["GET".to_owned(), "HEAD".to_owned()],
    };
    let position = match (header, query) {
        (Some(_), Some(_)) => {
            return Err(error::SECRET
                .error("expected `header` or `query`, found both")
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
            let binding = SecretBinding::new(origin, &position, &methods, prefix);
            Some(Arc::new(binding.map_err(|error| error.at(span))?))
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

pub(super) fn service(mut fields: Fields<'_>) -> Result<ServiceRule, PolicyError> {
    let name = required(&mut fields, "name", |text| Ok(text.to_owned()))?;
    let span = fields.at.clone();
    let hosts = each(&mut fields, "hosts", |text| {
        HostPattern::parse(text).map_err(|message| error::HOST.error(message))
    })?;
    let hosts = hosts.ok_or_else(|| {
        error::MISSING_KEY
            .error("expected `hosts` in [[service]], found none")
            .at(span)
    })?;
    finish(fields)?;
    Ok(ServiceRule { name, hosts })
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

pub(super) fn approval(fields: &mut Fields<'_>) -> Result<Option<ApprovalClass>, PolicyError> {
    use ApprovalClass::{Always, Auto, OnMutate};
    let known = [("auto", Auto), ("on-mutate", OnMutate), ("always", Always)];
    word(fields, "approval", "auto, on-mutate or always", &known)
}

pub(super) fn on_violation(fields: &mut Fields<'_>) -> Result<Option<OnViolation>, PolicyError> {
    let known = [("record", OnViolation::Record), ("end", OnViolation::End)];
    word(fields, "on_violation", "record or end", &known)
}
