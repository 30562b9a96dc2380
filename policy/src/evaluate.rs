//! Evaluates a declaration against a policy, capability by capability. Decision and explanation are
//! derived from the result.

use std::collections::BTreeSet;

use toolward_contract::capability::{Backing, Capability, Class, HostPattern};

use crate::denial::Why;
use crate::grant::OnViolation;
use crate::implementation::{self, Contract, Declared, DeclaredBy, Implementation, Machine};
use crate::name::{Placed, RuleId};
use crate::policy::Policy;
use crate::resources::{Secret, ServiceRule, Workspace};
use crate::rule::{Confirmed, DenyRule, Rule};

/// The part of a policy that matches one contract and one driver.
pub(crate) struct PolicyView<'a> {
    pub(crate) contract: Contract<'a>,
    pub(crate) implementation: Implementation<'a>,
    pub(crate) policy: &'a Policy,
    /// The grants that match, in order.
    pub(crate) grants: Vec<&'a Placed<Rule>>,
    /// The denies that match, in order.
    denies: Vec<&'a Placed<DenyRule>>,
    /// The workspaces, by the paths that they map.
    workspaces: Vec<(Capability, &'a Workspace)>,
    /// The machine where calls would run, if known.
    machine: Option<&'a Machine>,
}

/// The rules that grant a capability, or why it is not granted.
pub(crate) type Found<'a> = Result<Vec<&'a Placed<Rule>>, Why>;

/// One declared capability, and the result for each of its parts.
pub(crate) struct Evaluated<'a> {
    pub(crate) declared: Declared,
    /// For each required part, the rules that grant it, or why it is not granted.
    pub(crate) found: Vec<(Capability, Found<'a>)>,
    /// The parts that a rule with `partial` leaves out, each with the reason why no rule grants it.
    /// Smaller parts of them may be granted; these are in `found`.
    pub(crate) withheld: Vec<(Capability, Why)>,
}

/// Each required part, with its declaration and its result.
pub(crate) fn parts<'e, 'a>(
    evaluated: &'e [Evaluated<'a>],
) -> impl Iterator<Item = (&'e Declared, &'e Capability, &'e Found<'a>)> {
    evaluated.iter().flat_map(|one| {
        let found = one.found.iter();
        found.map(|(asked, found)| (&one.declared, asked, found))
    })
}

impl<'a> PolicyView<'a> {
    pub(crate) fn new(
        contract: Contract<'a>,
        implementation: Implementation<'a>,
        policy: &'a Policy,
        machine: Option<&'a Machine>,
    ) -> Self {
        let id = contract.tool.id.as_str();
        let major = contract.tool.version.major;
        let driver = implementation.driver.id.as_str();
        let grants = policy.grants.iter().filter(|placed| {
            let rule = &placed.rule;
            rule.is_about(&contract)
                && rule.driver_publisher.as_str() == implementation.publisher
                && rule.driver.as_ref().is_none_or(|own| own == driver)
        });
        let denies = policy.denies.iter().filter(|placed| {
            let rule = &placed.rule;
            // A denied publisher is denied both as the contract's and as the driver's publisher.
            let publishers = [contract.publisher, implementation.publisher];
            let denied = rule.publisher.as_ref();
            denied.is_none_or(|denied| publishers.contains(&denied.as_str()))
                && rule.tool.matches(id, major)
        });
        Self {
            contract,
            implementation,
            policy,
            grants: grants.collect(),
            denies: denies.collect(),
            workspaces: (policy.tables.workspaces.iter())
                .filter_map(|workspace| {
                    let root = Capability::of(Class::Workspace, &workspace.path.to_string());
                    Some((root.ok()?, workspace))
                })
                .collect(),
            machine,
        }
    }

    /// The matching grants among `rules`, in the policy's order.
    pub(crate) fn in_order(&self, rules: &BTreeSet<&RuleId>) -> Vec<RuleId> {
        let ids = self.grants.iter().map(|placed| &placed.id);
        ids.filter(|id| rules.contains(id)).cloned().collect()
    }

    /// The claims of the tool that the matching rules confirm, no matter what these rules grant.
    pub(crate) fn confirmed(&self) -> Confirmed {
        let rules = self.grants.iter().map(|placed| placed.rule.confirms);
        rules.collect()
    }

    /// The rules that deny the whole tool.
    pub(crate) fn denied_by(&self) -> Vec<RuleId> {
        self.denies
            .iter()
            .filter(|placed| placed.rule.capabilities.is_none())
            .map(|placed| placed.id.clone())
            .collect()
    }

    /// Evaluates one declared capability, without regard to `partial`.
    pub(crate) fn evaluated(&self, declared: Declared) -> Evaluated<'a> {
        let found = declared.asked.iter();
        let found = found.map(|asked| {
            let result = self.look_up(asked, declared.mutates, declared.by);
            (asked.clone(), result)
        });
        Evaluated {
            found: found.collect(),
            withheld: Vec::new(),
            declared,
        }
    }

    /// The grants that may apply to declarations of `by`. For the driver, only grants that name it.
    pub(crate) fn grants_for(&self, by: DeclaredBy) -> impl Iterator<Item = &'a Placed<Rule>> {
        self.grants
            .iter()
            .copied()
            .filter(move |placed| by == DeclaredBy::Contract || placed.rule.driver.is_some())
    }

    /// What happens at the first attempt to go beyond the grant: the strictest of the defaults and
    /// all grants that match.
    pub(crate) fn on_violation(&self) -> OnViolation {
        let rules = self.grants.iter().map(|placed| placed.rule.on_violation);
        rules
            .chain(self.policy.tables.defaults.on_violation)
            .max()
            .unwrap_or_default()
    }

    /// The publisher whose secrets and buckets `by` uses.
    pub(crate) fn publisher_of(&self, by: DeclaredBy) -> &'a str {
        match by {
            DeclaredBy::Contract => self.contract.publisher,
            DeclaredBy::Driver => self.implementation.publisher,
        }
    }

    pub(crate) fn look_up(&self, asked: &Capability, mutates: bool, by: DeclaredBy) -> Found<'a> {
        let class = asked.class();
        let unknown = matches!(class, Class::Other(_));
        if (!mutates && !unknown && !class.can_be_required())
            || (asked.is_wildcard() && !class.allows_wildcard())
        {
            return Err(Why::NeverGranted);
        }
        if let Some(rule) = self.denial_of(asked) {
            return Err(Why::DeniedBy(rule.clone()));
        }
        let rules: Vec<_> = self
            .grants_for(by)
            .filter(|placed| gives(&placed.rule, &self.contract, asked, mutates))
            .collect();
        if rules.is_empty() && unknown {
            return Err(Why::UnknownClass);
        }
        if rules.is_empty() {
            return Err(self.why_not(asked, mutates, by));
        }
        match class.backing() {
            Some(Backing::Workspace) => self.usable(asked)?,
            // A tool that stores a secret neither sends nor reads it, so it needs no `[[secret]]`.
            Some(Backing::Secret) if mutates => {}
            Some(Backing::Secret) => match self.secret(asked, by) {
                None => return Err(Why::NoSecret),
                Some(secret) if secret.is_placeholder() => return Err(Why::NotChosen),
                Some(secret) if secret.binding.is_none() && !reveals(&rules, asked) => {
                    return Err(Why::SecretNotUsable);
                }
                Some(secret) => {
                    let sent = self.secret_use(&asked.scope());
                    let binding = secret.binding.as_ref();
                    let misfit = sent.zip(binding).and_then(|(sent, to)| sent.misfit(to));
                    if let Some(misfit) = misfit {
                        return Err(Why::SecretMisfit(misfit));
                    }
                }
            },
            Some(Backing::Service) if !self.has_service(asked) => return Err(Why::NoService),
            Some(Backing::Service) if self.services(asked).all(ServiceRule::is_placeholder) => {
                return Err(Why::NotChosen);
            }
            Some(Backing::Service) | None => {}
        }
        Ok(rules)
    }

    fn denial_of(&self, asked: &Capability) -> Option<&'a RuleId> {
        let hosts = match asked.class().backing() {
            Some(Backing::Service) => self.service_hosts(asked),
            _ => Vec::new(),
        };
        let about = |capability: &Capability| {
            capability.overlaps(asked)
                || capability
                    .host()
                    .is_some_and(|denied| hosts.iter().any(|(host, _)| denied.overlaps(host)))
        };
        let mut denies = self.denies.iter();
        let denial = denies.find(|placed| placed.rule.capabilities.iter().flatten().any(about));
        denial.map(|placed| &placed.id)
    }

    fn why_not(&self, asked: &Capability, mutates: bool, by: DeclaredBy) -> Why {
        let give = |by, mutates| {
            let mut grants = self.grants_for(by);
            grants.any(|placed| gives(&placed.rule, &self.contract, asked, mutates))
        };
        if by == DeclaredBy::Driver && give(DeclaredBy::Contract, mutates) {
            Why::DriverNotNamed
        } else if mutates && give(by, false) {
            Why::OnlyReading
        } else if !mutates && give(by, true) {
            Why::OnlyStoring
        } else if asked.is_wildcard() {
            Why::WildcardNotWritten
        } else {
            Why::NoRule
        }
    }

    /// Checks that a path has a usable directory.
    fn usable(&self, asked: &Capability) -> Result<(), Why> {
        let workspace = self.workspace(asked).ok_or(Why::NoWorkspace)?;
        let machine = self.machine;
        match machine.and_then(|machine| machine.unusable(&workspace.directory)) {
            Some(_) if workspace.is_placeholder() => Err(Why::NotChosen),
            Some(unusable) => Err(Why::Directory(unusable.clone())),
            None => Ok(()),
        }
    }

    /// The closest workspace that contains a path.
    pub(crate) fn workspace(&self, asked: &Capability) -> Option<&'a Workspace> {
        self.workspaces
            .iter()
            .filter(|(root, _)| root.covers(asked))
            .max_by_key(|(root, _)| root.scope().len())
            .map(|(_, workspace)| *workspace)
    }

    /// The `[[secret]]` behind a slug.
    pub(crate) fn secret(&self, asked: &Capability, by: DeclaredBy) -> Option<&'a Secret> {
        let (slug, publisher) = (asked.scope(), self.publisher_of(by));
        let mut secrets = self.policy.tables.secrets.iter();
        secrets.find(|secret| secret.slug == slug && secret.publisher.as_str() == publisher)
    }

    fn services(&self, asked: &Capability) -> impl Iterator<Item = &'a ServiceRule> {
        let (all, name) = (asked.is_wildcard(), asked.scope());
        let services = self.policy.tables.services.iter();
        services.filter(move |service| all || service.name == name)
    }

    /// Whether a `[[service]]` of this name exists.
    pub(crate) fn has_service(&self, asked: &Capability) -> bool {
        self.services(asked).next().is_some()
    }

    /// The hosts behind an external service, as far as the driver's egress covers them, each with
    /// the port that its `[[service]]` names.
    pub(crate) fn service_hosts(&self, asked: &Capability) -> Vec<(HostPattern, Option<u16>)> {
        let egress = &self.implementation.driver.egress;
        let narrowed = |written: &HostPattern| {
            let host = Capability::of(Class::Network, &written.to_string()).ok();
            let parts = host.map(|host| implementation::narrowed(&host, egress));
            let parts = parts.into_iter().flatten();
            let hosts: Vec<_> = parts.filter_map(|part| part.host().cloned()).collect();
            let port = written.written_port();
            hosts.into_iter().map(move |host| (host, port))
        };
        self.services(asked)
            .filter(|service| !service.is_placeholder())
            .flat_map(|service| &service.hosts)
            .flat_map(narrowed)
            .collect()
    }
}

/// Whether an entry of a rule covers the capability. Permission to change includes permission to
/// read, but permission to store a secret does not include permission to use it.
pub(crate) fn gives(
    rule: &Rule,
    contract: &Contract<'_>,
    asked: &Capability,
    mutates: bool,
) -> bool {
    // `accepts` lets the tool run, but grants the sandbox nothing.
    if let Class::Other(class) = asked.class() {
        return mutates
            && rule.accepts.contains(class)
            && rule.is_declared_by_action(contract, asked);
    }
    let by_changing = mutates || *asked.class() != Class::Secret;
    (by_changing && rule.mutates.covers_one(asked)) || (!mutates && rule.requires.covers_one(asked))
}

/// Whether one of the rules reveals the secret.
pub(crate) fn reveals(rules: &[&Placed<Rule>], secret: &Capability) -> bool {
    let slug = secret.scope();
    rules
        .iter()
        .any(|placed| placed.rule.reveal.contains(&slug))
}
