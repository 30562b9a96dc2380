//! The parts of policies: rules and tables, from a file or from code. All parts are checked.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Policy;
use crate::approval::{self, ApprovalPolicy};
use crate::check::{self, TablePlace};
use crate::context::rule::{ContextRule, ContextValue};
use crate::document::DocumentRule;
use crate::error::{self, PolicyError, Refuse as _};
use crate::exec::ExecRule;
use crate::limits::LimitSettings;
use crate::name::{Placed, RuleId, RuleKind, written_at};
use crate::resolve::ResolveTable;
use crate::resources::{self, Secret, SecretSource, ServiceRule, Share, Workspace};
use crate::rule::{Defaults, DenyRule, Rule};

/// The tables of a policy, without its rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyTables {
    /// `[[workspace]]`: the host directories behind contracts' paths.
    pub workspaces: Vec<Workspace>,
    /// `[[secret]]`: where values come from and where they are sent.
    pub secrets: Vec<Secret>,
    /// `[[context]]`: the state that tools are given.
    pub contexts: Vec<ContextRule>,
    /// `[[exec]]`: the programs that may run outside the sandbox.
    pub execs: Vec<ExecRule>,
    /// `[[service]]`: the hosts behind external services.
    pub services: Vec<ServiceRule>,
    /// `[[share]]`: buckets of one publisher for another.
    pub shares: Vec<Share>,
    /// `[[document]]`: the prompts and resources that are shown.
    pub documents: Vec<DocumentRule>,
    /// `[approval.NAME]`: the class that contracts' `approval: policy:NAME` stands for.
    pub approvals: Vec<ApprovalPolicy>,
    /// `[resolve]`: the drivers that may serve tools at all.
    pub resolve: ResolveTable,
    /// `[network] ca_file`: certificates to trust in addition to the system's. A relative path
    /// starts at the directory of the policy's file.
    pub ca_file: Option<String>,
    /// `[limits]`.
    pub limits: LimitSettings,
    /// `[defaults]`.
    pub defaults: Defaults,
}

/// The parts from which a [`Policy`] is built in code.
///
/// ```
/// use toolward_policy::{PolicyParts, Publisher, Rule};
///
/// let rule = Rule::new(Publisher::parse("acme")?);
/// let policy = PolicyParts { grants: vec![rule], ..PolicyParts::default() }.build()?;
/// assert_eq!(policy.grants().count(), 1);
/// # Ok::<(), toolward_policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PolicyParts {
    /// The source of the rules, such as the name of a file, which is shown to people with the
    /// rules.
    pub source: Option<String>,
    /// The base for relative paths: directories of workspaces, and files of secrets, of contexts
    /// and of the CA. Without it, a relative directory is refused, and files stay relative.
    pub base: Option<PathBuf>,
    /// `[[grant]]`.
    pub grants: Vec<Rule>,
    /// `[[deny]]`.
    pub denies: Vec<DenyRule>,
    /// All other tables.
    pub tables: PolicyTables,
}

impl PolicyParts {
    /// Makes the policy.
    ///
    /// # Errors
    /// The first problem. The same rules apply as for a file.
    pub fn build(self) -> Result<Policy, PolicyError> {
        self.build_with(&|_| None, &|place, error| error.of(place))
    }

    /// Like [`PolicyParts::build`], for tables of a file. `line` returns the line of a table, and
    /// `placed` adds the place of a table to an error.
    pub(crate) fn build_with(
        self,
        line: &dyn Fn(TablePlace) -> Option<usize>,
        placed: &dyn Fn(TablePlace, PolicyError) -> PolicyError,
    ) -> Result<Policy, PolicyError> {
        let Self {
            source,
            base,
            grants,
            denies,
            mut tables,
        } = self;
        if let Some(base) = &base {
            tables.resolve_beneath(base)?;
        }
        let source = source.as_deref();
        let contexts = (0..tables.contexts.len()).map(|index| {
            let place = TablePlace("context", index);
            written_at(&place.to_string(), source, line(place))
        });
        let policy = Policy {
            grants: named_rules(grants, RuleKind::Grant, source, line),
            denies: named_rules(denies, RuleKind::Deny, source, line),
            context_places: contexts.collect(),
            tables,
        };
        if let Some(name) = &policy.tables.ca_file {
            resources::check_file_name("ca_file", name)?;
        }
        policy.checked(placed)
    }
}

fn named_rules<T: fmt::Display>(
    rules: Vec<T>,
    kind: RuleKind,
    source: Option<&str>,
    line: &dyn Fn(TablePlace) -> Option<usize>,
) -> Vec<Placed<T>> {
    let named = rules.into_iter().enumerate().map(|(index, rule)| Placed {
        id: RuleId {
            kind,
            number: index + 1,
            source: source.map(str::to_owned),
            line: line(TablePlace(kind.table(), index)),
            description: rule.to_string(),
        },
        rule,
    });
    named.collect()
}

impl Policy {
    /// Checks all tables together.
    pub(super) fn checked(
        self,
        placed: &dyn Fn(TablePlace, PolicyError) -> PolicyError,
    ) -> Result<Self, PolicyError> {
        let resolve = self.tables.resolve.check();
        resolve.map_err(|error| error.of("[resolve]"))?;
        let approvals = approval::check(&self.tables.approvals);
        approvals.map_err(|error| error.of("[approval]"))?;
        match check::policy(&self) {
            Ok(()) => Ok(self),
            Err((place, error)) => Err(placed(place, error)),
        }
    }
}

impl PolicyTables {
    /// These tables with `later` on top.
    pub(super) fn layer(mut self, later: Self) -> Self {
        self.workspaces.extend(later.workspaces);
        self.secrets.extend(later.secrets);
        self.contexts.extend(later.contexts);
        self.execs.extend(later.execs);
        self.services.extend(later.services);
        self.shares.extend(later.shares);
        self.documents.extend(later.documents);
        self.approvals.extend(later.approvals);
        self.resolve = self.resolve.layer(later.resolve);
        self.ca_file = later.ca_file.or(self.ca_file);
        self.limits = self.limits.layer(&later.limits);
        let (own, later) = (self.defaults, later.defaults);
        self.defaults.approval = later.approval.or(own.approval);
        self.defaults.on_violation = later.on_violation.or(own.on_violation);
        self
    }

    /// Makes relative paths absolute.
    fn resolve_beneath(&mut self, base: &Path) -> Result<(), PolicyError> {
        // An empty path stays empty, so that the check refuses it.
        for workspace in &mut self.workspaces {
            if !workspace.directory.as_os_str().is_empty() {
                workspace.directory = base.join(&workspace.directory);
            }
        }
        let in_secrets = self.secrets.iter_mut().filter_map(|secret| {
            let SecretSource::File(name) = &mut secret.source else {
                return None;
            };
            Some(name)
        });
        let contexts = self.contexts.iter_mut();
        let values = contexts.flat_map(|rule| rule.values.values_mut());
        let names = in_secrets.chain(values.filter_map(ContextValue::file));
        for name in names.chain(&mut self.ca_file) {
            if !name.is_empty() {
                let path = base.join(&*name).into_os_string();
                *name = path.into_string().map_err(|_| {
                    error::WRONG_VALUE
                        .error(
                            "expected the policy in a directory whose name is UTF-8, found another",
                        )
                        .hinted("move the policy, or write absolute paths")
                })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        [network]
        ca_file = "ca.pem"

        [[workspace]]
        path = "/notes"
        directory = "notes"

        [[workspace]]
        path = "/docs"
        directory = "/srv/docs"

        [[secret]]
        slug = "token"
        publisher = "acme"
        file = "secrets/token"
    "#;

    #[test]
    fn what_is_relative_lies_where_the_policy_does() {
        let policy = Policy::from_toml_in(FILE, "p.toml", Path::new("/etc/toolward")).unwrap();
        let directories: Vec<_> = policy
            .tables
            .workspaces
            .iter()
            .map(|known| known.directory.as_path())
            .collect();
        assert_eq!(
            directories,
            [Path::new("/etc/toolward/notes"), Path::new("/srv/docs")]
        );
        assert_eq!(
            policy.tables.ca_file.as_deref(),
            Some("/etc/toolward/ca.pem")
        );
        let file = SecretSource::File("/etc/toolward/secrets/token".to_owned());
        assert_eq!(policy.tables.secrets[0].source, file);
        assert_eq!(
            Policy::from_toml(FILE).unwrap_err().code(),
            "policy-workspace"
        );
    }

    #[test]
    fn no_directory_and_one_above_are_refused_wherever_the_policy_lies() {
        for directory in ["", "../notes"] {
            let text = FILE.replace("\"notes\"", &format!("{directory:?}"));
            let refused = Policy::from_toml_in(&text, "p.toml", Path::new("/etc")).unwrap_err();
            assert_eq!(refused.code(), "policy-workspace");
        }
    }
}
