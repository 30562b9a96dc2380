//! Makes policies: put together in code, or of two others. All of them are
//! checked.

use std::path::{Path, PathBuf};

use super::Policy;
use crate::approval_policy::{self, ApprovalPolicy};
use crate::check::{self, Place, Table};
use crate::context::rule::ContextRule;
use crate::context::value::ContextValue;
use crate::document::DocumentRule;
use crate::error::{self, PolicyError};
use crate::exec::ExecRule;
use crate::file_name;
use crate::limits::LimitSettings;
use crate::resolve::Resolve;
use crate::rule::{Defaults, DenyRule, Rule, Secret, SecretSource, Service, Share, Workspace};
use crate::rule_id::{Placed, RuleId, RuleKind, written_at};

impl Policy {
    /// A policy under construction.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// This policy with another one on top. Rules and tables of both hold, the
    /// denies of either win over the grants of both, the denied tags of either
    /// are denied, and single values (defaults, limits, the CA file, the other
    /// keys of `[resolve]`) of `later` win.
    ///
    /// # Errors
    /// Where both have a table about the same thing, workspaces that overlap,
    /// or too many rules together.
    pub fn layer(mut self, later: Self) -> Result<Self, PolicyError> {
        self.grants.extend(later.grants);
        self.denies.extend(later.denies);
        self.workspaces.extend(later.workspaces);
        self.secrets.extend(later.secrets);
        self.contexts.extend(later.contexts);
        self.context_places.extend(later.context_places);
        self.execs.extend(later.execs);
        self.services.extend(later.services);
        self.shares.extend(later.shares);
        self.documents.extend(later.documents);
        self.approvals.extend(later.approvals);
        self.resolve = self.resolve.layer(later.resolve);
        self.ca_file = later.ca_file.or(self.ca_file);
        self.limits = self.limits.layer(&later.limits);
        self.defaults = Defaults {
            approval: later.defaults.approval.or(self.defaults.approval),
            on_violation: later.defaults.on_violation.or(self.defaults.on_violation),
        };
        named(&self)?;
        match check::policy(&self) {
            Ok(()) => Ok(self),
            Err((place, error)) => Err(error.of(place)),
        }
    }
}

/// Collects what a [`Policy`] is made of.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct PolicyBuilder {
    source: Option<String>,
    base: Option<PathBuf>,
    grants: Vec<Rule>,
    denies: Vec<DenyRule>,
    policy: Policy,
}

impl PolicyBuilder {
    /// What people know the rules by.
    pub fn source(mut self, name: &str) -> Self {
        self.source = Some(name.to_owned());
        self
    }

    /// Where relative directories of workspaces, and relative files of secrets
    /// and authorities, lie. Without it a relative directory is refused, and
    /// files stay as they are written.
    pub fn base(mut self, directory: &Path) -> Self {
        self.base = Some(directory.to_owned());
        self
    }

    /// Adds a `[[grant]]`.
    pub fn grant(mut self, rule: Rule) -> Self {
        self.grants.push(rule);
        self
    }

    /// Adds a `[[deny]]`.
    pub fn deny(mut self, rule: DenyRule) -> Self {
        self.denies.push(rule);
        self
    }

    /// Adds a `[[workspace]]`.
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.policy.workspaces.push(workspace);
        self
    }

    /// Adds a `[[secret]]`.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.policy.secrets.push(secret);
        self
    }

    /// Adds a `[[context]]`.
    pub fn context(mut self, rule: ContextRule) -> Self {
        self.policy.contexts.push(rule);
        self
    }

    /// Adds an `[[exec]]`.
    pub fn exec(mut self, rule: ExecRule) -> Self {
        self.policy.execs.push(rule);
        self
    }

    /// Adds a `[[service]]`.
    pub fn service(mut self, service: Service) -> Self {
        self.policy.services.push(service);
        self
    }

    /// Adds a `[[share]]`.
    pub fn share(mut self, share: Share) -> Self {
        self.policy.shares.push(share);
        self
    }

    /// Adds a `[[document]]`.
    pub fn document(mut self, rule: DocumentRule) -> Self {
        self.policy.documents.push(rule);
        self
    }

    /// Adds an `[approval.NAME]`.
    pub fn approval(mut self, approval: ApprovalPolicy) -> Self {
        self.policy.approvals.push(approval);
        self
    }

    /// Sets `[resolve]`.
    pub fn resolve(mut self, resolve: Resolve) -> Self {
        self.policy.resolve = resolve;
        self
    }

    /// Sets `[network] ca_file`.
    pub fn ca_file(mut self, file: impl Into<String>) -> Self {
        self.policy.ca_file = Some(file.into());
        self
    }

    /// Sets `[limits]`.
    pub fn limits(mut self, limits: LimitSettings) -> Self {
        self.policy.limits = limits;
        self
    }

    /// Sets `[defaults]`.
    pub fn defaults(mut self, defaults: Defaults) -> Self {
        self.policy.defaults = defaults;
        self
    }

    /// Makes the policy.
    ///
    /// # Errors
    /// The first thing that is wrong: the same rules hold as for a file.
    pub fn build(self) -> Result<Policy, PolicyError> {
        self.build_with(&|_| None, &|place, error| error.of(place))
    }

    /// [`PolicyBuilder::build`], where tables have lines and errors places.
    pub(crate) fn build_with(
        self,
        line: &dyn Fn(Place) -> Option<usize>,
        placed: &dyn Fn(Place, PolicyError) -> PolicyError,
    ) -> Result<Policy, PolicyError> {
        let mut policy = self.policy;
        if let Some(base) = &self.base {
            resolve(&mut policy, base)?;
        }
        let source = self.source;
        policy.context_places = (0..policy.contexts.len())
            .map(|index| {
                let place = Place::new(Table::Context, index);
                written_at(&place.to_string(), source.as_deref(), line(place))
            })
            .collect();
        let id = |kind, table, index, description: String| RuleId {
            kind,
            number: index + 1,
            source: source.clone(),
            line: line(Place::new(table, index)),
            description,
        };
        policy.grants = (self.grants.into_iter().enumerate())
            .map(|(index, rule)| Placed {
                id: id(RuleKind::Grant, Table::Grant, index, rule.to_string()),
                rule,
            })
            .collect();
        policy.denies = (self.denies.into_iter().enumerate())
            .map(|(index, rule)| Placed {
                id: id(RuleKind::Deny, Table::Deny, index, rule.to_string()),
                rule,
            })
            .collect();
        if let Some(name) = &policy.ca_file {
            file_name::check("ca_file", name)?;
        }
        named(&policy)?;
        match check::policy(&policy) {
            Ok(()) => Ok(policy),
            Err((place, error)) => Err(placed(place, error)),
        }
    }
}

/// Checks the tables that have names instead of numbers.
fn named(policy: &Policy) -> Result<(), PolicyError> {
    let resolve = policy.resolve.check();
    resolve.map_err(|error| error.of("[resolve]"))?;
    approval_policy::check(&policy.approvals).map_err(|error| error.of("[approval]"))
}

/// Makes what is relative absolute.
fn resolve(policy: &mut Policy, base: &Path) -> Result<(), PolicyError> {
    // An empty name stays empty: the check refuses it.
    for workspace in &mut policy.workspaces {
        if !workspace.directory.as_os_str().is_empty() {
            workspace.directory = base.join(&workspace.directory);
        }
    }
    let in_secrets = policy.secrets.iter_mut().filter_map(|secret| {
        let SecretSource::File(name) = &mut secret.source else {
            return None;
        };
        Some(name)
    });
    let rules = policy.contexts.iter_mut();
    let in_contexts = rules
        .flat_map(|rule| rule.values.values_mut())
        .filter_map(ContextValue::file);
    let in_secrets = in_secrets.chain(in_contexts);
    for name in in_secrets.chain(&mut policy.ca_file) {
        if !name.is_empty() {
            *name = base
                .join(&*name)
                .into_os_string()
                .into_string()
                .map_err(|_| {
                    PolicyError::new(
                        &error::WRONG_VALUE,
                        "expected the policy in a directory whose name is UTF-8, found another",
                    )
                    .hinted("move the policy, or write absolute paths")
                })?;
        }
    }
    Ok(())
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
            .workspaces()
            .iter()
            .map(|known| known.directory.as_path())
            .collect();
        assert_eq!(
            directories,
            [Path::new("/etc/toolward/notes"), Path::new("/srv/docs")]
        );
        assert_eq!(policy.ca_file(), Some("/etc/toolward/ca.pem"));
        let file = SecretSource::File("/etc/toolward/secrets/token".to_owned());
        assert_eq!(policy.secrets()[0].source, file);
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
