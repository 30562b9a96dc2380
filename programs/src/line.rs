//! One line of `[[exec]]` as the broker gets it, when it is started.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolward_policy::{ExecLimits, ExecRule, Policy, SecretSource, Workspace, WorkspaceAccess};

/// A line, with what stands behind the names in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) command: Named,
    pub(crate) interpreter: Option<Named>,
    pub(crate) args: Vec<String>,
    /// Variables, and where their values come from.
    pub(crate) env: Vec<(String, Source)>,
    pub(crate) network: bool,
    pub(crate) processes: bool,
    pub(crate) workspaces: Vec<(PathBuf, WorkspaceAccess)>,
    pub(crate) limits: ExecLimits,
}

/// A file and its digest. One that is still to be chosen fits nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    pub(crate) digest: Option<[u8; 32]>,
}

/// Where the value of a secret comes from.
#[derive(Serialize, Deserialize)]
pub(crate) enum Source {
    /// A variable of the operator, as it stood when the broker was started.
    Value(String),
    File(PathBuf),
    /// Nowhere: the program is not started.
    Missing,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Source(..)")
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
        Self {
            command: Named {
                path: PathBuf::from(&rule.command),
                digest: rule.digest.bytes(),
            },
            interpreter: rule.interpreter.as_ref().map(|interpreter| Named {
                path: PathBuf::from(&interpreter.path),
                digest: interpreter.digest.bytes(),
            }),
            args: rule.args.clone(),
            env: (rule.env.iter())
                .map(|(slug, name)| (name.clone(), source(slug)))
                .collect(),
            network: rule.network,
            processes: rule.processes,
            // One that no table maps blocks the tool, so that no call asks for the line.
            workspaces: workspaces
                .filter_map(|(path, access)| Some((directory(path)?, *access)))
                .collect(),
            limits: rule.limits,
        }
    }
}
