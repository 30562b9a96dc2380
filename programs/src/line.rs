//! One `[[exec]]` table in the form that the broker gets when it is started.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolward_policy::{ExecLimits, ExecRule, Policy, SecretSource, Workspace, WorkspaceAccess};

/// A table, with its secrets' sources and its workspaces' directories from the policy.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) command: Named,
    pub(crate) interpreter: Option<Named>,
    pub(crate) args: Vec<String>,
    /// The variables, and the sources of their values.
    pub(crate) env: Vec<(String, Source)>,
    pub(crate) network: bool,
    pub(crate) processes: bool,
    pub(crate) workspaces: Vec<(PathBuf, WorkspaceAccess)>,
    pub(crate) limits: ExecLimits,
}

/// A file and its digest. The digest is `None` if the operator must still choose it, and then
/// matches no file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) digest: Option<[u8; 32]>,
}

/// The source of a secret's value.
#[derive(Serialize, Deserialize)]
pub(crate) enum Source {
    /// A variable of the operator, with its value when the broker was started.
    Value(String),
    File(PathBuf),
    /// The secret has no source, so the program is not started.
    Missing,
}

toolward_support::opaque!(Source);

impl Named {
    /// The program of a table, and its interpreter.
    pub(crate) fn of(rule: &ExecRule) -> (Self, Option<Self>) {
        let named = |path: &str, digest| Self {
            path: PathBuf::from(path),
            digest,
        };
        let interpreter = rule.interpreter.as_ref();
        (
            named(&rule.command, rule.digest.bytes()),
            interpreter.map(|one| named(&one.path, one.digest.bytes())),
        )
    }
}

impl Line {
    pub(crate) fn of(
        rule: &ExecRule,
        policy: &Policy,
        base: &Path,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Self {
        let source = |slug: &str| {
            let mut secrets = policy.tables().secrets.iter();
            let secret = secrets.find(|one| one.slug == slug && one.publisher == rule.publisher);
            match secret.map(|secret| &secret.source) {
                Some(SecretSource::Env(name)) => {
                    environment(name).map_or(Source::Missing, Source::Value)
                }
                Some(SecretSource::File(path)) => Source::File(base.join(path)),
                Some(SecretSource::Store) | None => Source::Missing,
            }
        };
        let directory = |path: &str| {
            let named = |one: &&Workspace| one.path.to_string() == path;
            let known = policy.tables().workspaces.iter().find(named);
            known.map(|workspace| workspace.directory.clone())
        };
        let workspaces = rule.workspaces.iter();
        let (command, interpreter) = Named::of(rule);
        Self {
            command,
            interpreter,
            args: rule.args.clone(),
            env: (rule.env.iter())
                .map(|(slug, name)| (name.clone(), source(slug)))
                .collect(),
            network: rule.network,
            processes: rule.processes,
            // A workspace without a directory in the policy blocks the tool, so no call uses this
            // table.
            workspaces: workspaces
                .filter_map(|(path, access)| Some((directory(path)?, *access)))
                .collect(),
            limits: rule.limits,
        }
    }
}
