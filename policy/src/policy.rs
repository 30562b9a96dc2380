//! The policy: all that an operator is ready to give, and to whom. An empty one
//! gives nothing.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::check::{self, Place, Table};
use crate::context::{ContextRule, ContextSource, ContextValue};
use crate::document::DocumentRule;
use crate::error::{self, PolicyError};
use crate::limits::LimitSettings;
use crate::rule::{Defaults, DenyRule, Rule, Secret, SecretSource, Service, Share, Workspace};

/// Grants and denies of a policy together.
pub(crate) const RULES: usize = 4096;
/// Tables of each other kind.
pub(crate) const TABLES: usize = 1024;

/// Whether a rule gives or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// `[[grant]]`
    Grant,
    /// `[[deny]]`
    Deny,
}

/// Names a rule to people, so that the rule that decided can be shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct RuleId {
    /// Whether it gives or denies.
    pub kind: RuleKind,
    /// Its place among the rules of its kind in its source, from 1.
    pub number: usize,
    /// Where it comes from, a file's name for example.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The line where its table stands, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What it is about, in a few words.
    pub description: String,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            RuleKind::Grant => "grant",
            RuleKind::Deny => "deny",
        };
        write!(f, "[[{kind}]] {}", self.number)?;
        match (&self.source, self.line) {
            (Some(source), Some(line)) => write!(f, " ({source}:{line})")?,
            (Some(source), None) => write!(f, " ({source})")?,
            (None, Some(line)) => write!(f, " (line {line})")?,
            (None, None) => {}
        }
        write!(f, ": {}", self.description)
    }
}

/// A rule and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) id: RuleId,
    pub(crate) rule: T,
}

/// What an operator grants, denies and limits: read from a file
/// ([`Policy::from_toml`]) or put together in code ([`Policy::builder`]). The
/// default is [`Policy::empty`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub(crate) grants: Vec<Placed<Rule>>,
    pub(crate) denies: Vec<Placed<DenyRule>>,
    pub(crate) workspaces: Vec<Workspace>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) contexts: Vec<ContextRule>,
    pub(crate) services: Vec<Service>,
    pub(crate) shares: Vec<Share>,
    pub(crate) documents: Vec<DocumentRule>,
    ca_file: Option<String>,
    limits: LimitSettings,
    defaults: Defaults,
}

impl Policy {
    /// The policy that grants nothing: every tool with a declaration is denied.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A policy under construction.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// This policy with another one on top. Rules and tables of both hold, the
    /// denies of either win over the grants of both, and single values
    /// (defaults, limits, the CA file) of `later` win.
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
        self.services.extend(later.services);
        self.shares.extend(later.shares);
        self.documents.extend(later.documents);
        self.ca_file = later.ca_file.or(self.ca_file);
        self.limits = self.limits.layer(&later.limits);
        self.defaults = Defaults {
            approval: later.defaults.approval.or(self.defaults.approval),
            on_violation: later.defaults.on_violation.or(self.defaults.on_violation),
        };
        match check::policy(&self) {
            Ok(()) => Ok(self),
            Err((place, error)) => Err(error.of(place)),
        }
    }

    /// The grants with their names, in order.
    pub fn grants(&self) -> impl Iterator<Item = &Rule> {
        self.grants.iter().map(|placed| &placed.rule)
    }

    /// Whether a grant lets this tool be shown by a name that it asks for.
    #[must_use]
    pub fn names_tool(&self, publisher: &str, id: &str, major: u64, name: &str) -> bool {
        self.grants().any(|rule| {
            rule.publisher.as_str() == publisher
                && rule.tool.matches(id, major)
                && rule.names.iter().any(|own| own == name)
        })
    }

    /// The denies, in order.
    pub fn denies(&self) -> impl Iterator<Item = &DenyRule> {
        self.denies.iter().map(|placed| &placed.rule)
    }

    /// `[[workspace]]`: which host directories stand behind contracts' paths.
    #[must_use]
    pub fn workspaces(&self) -> &[Workspace] {
        &self.workspaces
    }

    /// `[[secret]]`: where values come from and where they go out.
    #[must_use]
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// `[[context]]`: the state that tools are given.
    #[must_use]
    pub fn contexts(&self) -> &[ContextRule] {
        &self.contexts
    }

    /// Looks up the values of `[[context]]` that come from a variable or a file,
    /// once: `look` gives the text, or says what is wrong, and never the text in
    /// that. Without it a tool whose context needs one of them is blocked.
    #[must_use]
    pub fn with_contexts(
        mut self,
        look: &mut dyn FnMut(&ContextSource) -> Result<String, String>,
    ) -> Self {
        let rules = self.contexts.iter_mut();
        let values = rules.flat_map(|rule| rule.values.values_mut());
        values.for_each(|value| value.look_up(look));
        self
    }

    /// `[[service]]`: the hosts behind external services.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// `[[share]]`: buckets of one publisher for another.
    #[must_use]
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// `[network] ca_file`, as written: certificates to trust in addition to
    /// the system's. Relative to the policy's file.
    #[must_use]
    pub fn ca_file(&self) -> Option<&str> {
        self.ca_file.as_deref()
    }

    /// `[limits]`.
    #[must_use]
    pub fn limits(&self) -> &LimitSettings {
        &self.limits
    }

    /// `[defaults]`.
    #[must_use]
    pub fn defaults(&self) -> Defaults {
        self.defaults
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
            check::file_name("ca_file", name)?;
        }
        match check::policy(&policy) {
            Ok(()) => Ok(policy),
            Err((place, error)) => Err(placed(place, error)),
        }
    }
}

/// Makes what is relative absolute.
fn resolve(policy: &mut Policy, base: &Path) -> Result<(), PolicyError> {
    // An empty name is none, and refused as such.
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

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tools {} of {}", self.tool, self.publisher)?;
        match &self.driver {
            Some(driver) => write!(f, ", by driver {driver} of {}", self.driver_publisher),
            None if self.driver_publisher != self.publisher => {
                write!(f, ", by drivers of {}", self.driver_publisher)
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for DenyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.capabilities {
            None => f.write_str("everything")?,
            Some(capabilities) => {
                const SHOWN: usize = 5;
                let shown: Vec<String> = capabilities
                    .iter()
                    .take(SHOWN)
                    .map(ToString::to_string)
                    .collect();
                f.write_str(&shown.join(", "))?;
                if capabilities.len() > SHOWN {
                    f.write_str(", …")?;
                }
            }
        }
        write!(f, " for tools {}", self.tool)?;
        match &self.publisher {
            Some(publisher) => write!(f, " of {publisher}"),
            None => f.write_str(" of everybody"),
        }
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
