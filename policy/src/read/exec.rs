//! The `[[exec]]` tables of `toolward.toml`.

use super::fields::{Field, Fields, finish, flag, integer, table, texts};
use super::tables::{optional, required};
use crate::error::{self, PolicyError, quoted};
use crate::exec::{ExecLimits, ExecRule, Interpreter, WorkspaceAccess};
use crate::name::{Publisher, ToolPattern};

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
        _ => Err(PolicyError::new(
            &error::EXEC,
            format!(
                "expected `network` to be \"unfiltered\", found {}",
                quoted(text)
            ),
        )
        .hinted("no rule filters what a program sends: leave the key out, or say so")),
    })?;
    rule.network = network.unwrap_or_default();
    if let Some(field) = fields.take("workspaces") {
        for (path, access) in field.members()? {
            rule.workspaces.insert(path.to_owned(), workspace(&access)?);
        }
    }
    rule.processes = flag(&mut fields, "processes")?;
    if let Some(field) = fields.take("limits") {
        rule.limits = limits(field)?;
    }
    finish(fields)?;
    Ok(rule)
}

fn workspace(field: &Field<'_>) -> Result<WorkspaceAccess, PolicyError> {
    match field.text()? {
        "read-only" => Ok(WorkspaceAccess::ReadOnly),
        "read-write" => Ok(WorkspaceAccess::ReadWrite),
        other => Err(PolicyError::new(
            &error::EXEC,
            format!(
                "expected a workspace to be read-only or read-write, found {}",
                quoted(other)
            ),
        )
        .at(field.at.clone())),
    }
}

fn limits(field: Field<'_>) -> Result<ExecLimits, PolicyError> {
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
