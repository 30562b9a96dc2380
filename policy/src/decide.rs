//! The decision: declaration against policy, and what becomes of it. A pure
//! function without I/O.

mod lacking;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use toolward_contract::capability::{Capability, Class, HostPattern};

use crate::approval_class::ApprovalClass;
use crate::decision::{Allowed, AskReason, Decision, DecisionContext};
use crate::declared::DeclaredBy;
use crate::denial::{Denial, Missing};
use crate::effects::Effects;
use crate::evaluate::{Evaluated, View, gives, reveals};
use crate::exec::{self, ExecRule};
use crate::grant::{BucketGrant, Grant, HostGrant, SecretGrant, WorkspaceGrant};
use crate::implementation::{ASK_FROM_RISK, Contract, Implementation};
use crate::partial::Partial;
use crate::policy::Policy;
use crate::rule::Rule;
use crate::rule_id::{Placed, RuleId};

/// Decides what `implementation` gets to carry out `contract`: the grant is what
/// both declare and the policy gives, in full, or the tool is blocked; hosts and workspaces
/// may be left out where a rule says `partial`. Nothing declared is dropped silently, and
/// nothing undeclared is given.
#[must_use]
pub fn decide(
    contract: &Contract<'_>,
    implementation: &Implementation<'_>,
    policy: &Policy,
    request: &DecisionContext<'_>,
) -> Decision {
    let view = View::new(*contract, *implementation, policy, request.machine);
    let evaluated = view.evaluate();
    of(&view, &evaluated, request)
}

/// The decision about what was evaluated.
pub(crate) fn of(
    view: &View<'_>,
    evaluated: &[Evaluated<'_>],
    request: &DecisionContext<'_>,
) -> Decision {
    let denied_by = view.denied_by();
    // Two wide declarations may ask for the same part.
    let mut seen = HashSet::new();
    let missing = evaluated.iter().flat_map(missing);
    let missing: Vec<Missing> = missing.filter(|one| seen.insert(one.clone())).collect();
    let program = exec::find(view, evaluated);
    if !denied_by.is_empty() || !missing.is_empty() || program.is_err() {
        let workspaces = view.policy.workspaces().iter();
        let placeholders = workspaces.filter(|workspace| workspace.is_placeholder());
        return Decision::Deny(Denial {
            tool: view.contract.tool.major_id(),
            publisher: view.contract.publisher.to_owned(),
            driver: view.implementation.driver.id.to_string(),
            driver_publisher: view.implementation.publisher.to_owned(),
            denied_by,
            lacks: lacking::lacks(view, &missing),
            missing,
            program: program.err(),
            placeholders: placeholders.map(|known| known.directory.clone()).collect(),
        });
    }
    let contract = view.contract;
    let approval = view.policy.approval_of(contract.tool, contract.publisher);
    let own = Effects::given(contract.tool, view.implementation.driver, evaluated);
    let own = own.asking(approval);
    let defaults = view.policy.defaults();
    let raised = view.grants.iter().map(|placed| placed.rule.approval);
    let approval = raised
        .chain(defaults.approval)
        .chain([own.approval, request.reachable.approval])
        .max()
        .unwrap_or_default();
    let mut allowed = Allowed {
        grant: match program {
            Ok(Some(rule)) => of_program(grant(view, evaluated), rule),
            _ => grant(view, evaluated),
        },
        rules: rules(view, evaluated),
        preapproved: Vec::new(),
        confirmed: view.confirmed(),
        effects: own.join(request.reachable),
        own_effects: own,
        partial: Partial::of(evaluated),
        approval,
    };
    let reasons = reasons(view, own, request.reachable);
    if reasons.is_empty() {
        return Decision::Allow(allowed);
    }
    if reasons.iter().all(AskReason::can_be_preapproved)
        && let Some(rules) = preapproval(view, evaluated, own, request.reachable)
    {
        allowed.preapproved = rules;
        return Decision::Allow(allowed);
    }
    Decision::Ask(allowed, reasons)
}

fn missing(evaluated: &Evaluated<'_>) -> Vec<Missing> {
    let declared = &evaluated.declared;
    let failed = evaluated.found.iter().filter_map(|(asked, found)| {
        found.as_ref().err().map(|why| Missing {
            capability: asked.clone(),
            mutates: declared.mutates,
            declared_by: declared.by,
            why: why.clone(),
        })
    });
    failed.collect()
}

/// The rules that gave something, in the policy's order.
fn rules(view: &View<'_>, evaluated: &[Evaluated<'_>]) -> Vec<RuleId> {
    let found = evaluated.iter().flat_map(|one| &one.found);
    let rules = found.flat_map(|(_, found)| found.iter().flatten());
    let gave: BTreeSet<&RuleId> = rules.map(|placed| &placed.id).collect();
    let ids = view.grants.iter().map(|placed| &placed.id);
    ids.filter(|id| gave.contains(id)).cloned().collect()
}

fn reasons(view: &View<'_>, own: Effects, reachable: Effects) -> Vec<AskReason> {
    let mut reasons = Vec::new();
    let mut add = |holds: bool, reason: AskReason| {
        if holds {
            reasons.push(reason);
        }
    };
    let always = ApprovalClass::Always;
    let (tool, publisher) = (view.contract.tool, view.contract.publisher);
    let reference = view.policy.approval_reference(tool, publisher);
    match &reference {
        None => add(own.approval == always, AskReason::Contract),
        Some(reference) => {
            let asks = own.approval == always;
            add(asks, AskReason::Policy(reference.clone()));
        }
    }
    add(own.writes, AskReason::Mutates);
    add(own.risk >= ASK_FROM_RISK, AskReason::Risk(own.risk));
    add(reachable.writes, AskReason::ReachesMutation);
    let risk = reachable.risk;
    add(risk >= ASK_FROM_RISK, AskReason::ReachesRisk(risk));
    add(reachable.approval == always, AskReason::ReachesApproval);
    let default = view.policy.defaults().approval;
    add(default == Some(always), AskReason::Default);
    for placed in &view.grants {
        let raises = placed.rule.approval == always;
        add(raises, AskReason::Rule(placed.id.clone()));
    }
    // What is asked for other reasons is asked in its name, too.
    if let Some(reference) = reference.filter(|_| own.approval != always && !reasons.is_empty()) {
        reasons.push(AskReason::Policy(reference));
    }
    reasons
}

/// The rules that replace the person's approval, if they do. Each thing that is changed,
/// and each tool that is called where tools change something, is given by a
/// rule with `preapproved`; from risk 2 on, everything that is asked for is.
fn preapproval(
    view: &View<'_>,
    evaluated: &[Evaluated<'_>],
    own: Effects,
    reachable: Effects,
) -> Option<Vec<RuleId>> {
    let calls_matter = reachable.writes || reachable.risk >= ASK_FROM_RISK;
    let matters = |one: &&Evaluated<'_>| {
        own.risk >= ASK_FROM_RISK
            || one.declared.mutates
            || (calls_matter && *one.declared.capability.class() == Class::Tool)
    };
    let needed = evaluated.iter().filter(matters).flat_map(|one| &one.found);
    let mut needed: Vec<_> = needed.map(|(_, rules)| rules).collect();
    if needed.is_empty() {
        let parts = evaluated.iter().flat_map(|one| &one.found);
        needed = parts.map(|(_, rules)| rules).collect();
    }
    let standing = |placed: &&&Placed<Rule>| placed.rule.preapproved;
    let rules: BTreeSet<&RuleId> = if needed.is_empty() {
        // It asks for nothing that a rule could give. A rule about all tools says
        // nothing of this one.
        let rules = view.grants.iter().filter(standing);
        let named = rules.filter(|placed| !placed.rule.tool.is_all());
        named.map(|placed| &placed.id).collect()
    } else {
        let mut gave = BTreeSet::new();
        for rules in needed {
            let mut standing = rules.iter().flatten().filter(standing).peekable();
            standing.peek()?;
            gave.extend(standing.map(|placed| &placed.id));
        }
        gave
    };
    let ids = view.grants.iter().map(|placed| &placed.id);
    let rules: Vec<RuleId> = ids.filter(|id| rules.contains(id)).cloned().collect();
    (!rules.is_empty()).then_some(rules)
}

fn grant(view: &View<'_>, evaluated: &[Evaluated<'_>]) -> Grant {
    let mut grant = Grant {
        on_violation: view.on_violation(),
        ..Grant::default()
    };
    let mut seen = BTreeSet::new();
    for one in evaluated {
        for (asked, found) in &one.found {
            if let Ok(rules) = found
                && seen.insert((asked, one.declared.mutates, one.declared.by))
            {
                add(&mut grant, view, one, asked, rules);
            }
        }
    }
    tidy(grant)
}

/// The grant of a program: what it reaches, it reaches by its line, in the process that is
/// made for it. This process reaches nothing of that.
fn of_program(grant: Grant, rule: &ExecRule) -> Grant {
    Grant {
        network: Vec::new(),
        workspaces: Vec::new(),
        buckets: Vec::new(),
        tools: Vec::new(),
        program: Some(Arc::new(rule.clone())),
        ..grant
    }
}

/// What one part of a declaration adds to the grant.
pub(crate) fn part(
    view: &View<'_>,
    one: &Evaluated<'_>,
    asked: &Capability,
    rules: &[&Placed<Rule>],
) -> Grant {
    let mut grant = Grant::default();
    add(&mut grant, view, one, asked, rules);
    tidy(grant)
}

fn add(
    grant: &mut Grant,
    view: &View<'_>,
    one: &Evaluated<'_>,
    asked: &Capability,
    rules: &[&Placed<Rule>],
) {
    let (mutates, by) = (one.declared.mutates, one.declared.by);
    match asked.class() {
        Class::Network => network(grant, view, asked, mutates, by),
        Class::External => external(grant, view, asked, by),
        Class::Workspace => workspace(grant, view, asked, mutates),
        Class::Database => database(grant, view, asked, mutates, by),
        Class::Secret => secret(grant, view, asked, mutates, by, rules),
        Class::Tool => grant.tools.push(asked.scope()),
        Class::User => match asked.scope().as_str() {
            "form" => grant.user.form = true,
            "sample" => grant.user.sample = true,
            "roots" => grant.user.roots = true,
            _ => {}
        },
        // A rule may accept what is unknown: the sandbox gets nothing for it.
        Class::Other(_) => {}
    }
}

fn tidy(mut grant: Grant) -> Grant {
    grant.network = widest(grant.network, HostGrant::contains);
    grant.workspaces = widest(grant.workspaces, WorkspaceGrant::contains);
    grant.buckets = widest(grant.buckets, |a, b| {
        a.name == b.name && a.owner == b.owner && (a.write || !b.write)
    });
    grant.tools.sort();
    grant.tools.dedup();
    grant
}

/// What each rule gives of the asked hosts, with that rule's terms: plain http
/// or a private address granted for one host does not extend to another.
fn network(grant: &mut Grant, view: &View<'_>, asked: &Capability, mutates: bool, by: DeclaredBy) {
    for placed in view.grants_for(by) {
        let rule = &placed.rule;
        let read = rule.requires.iter().map(|entry| (entry, false));
        let write = rule.mutates.iter().map(|entry| (entry, mutates));
        for (entry, unsafe_methods) in read.chain(write) {
            if let Some(host) = asked.intersect(entry).and_then(|both| both.host().cloned()) {
                let written = entry.host().and_then(HostPattern::written_port);
                grant
                    .network
                    .push(host_grant(rule, host, written, unsafe_methods));
            }
        }
    }
}

fn external(grant: &mut Grant, view: &View<'_>, asked: &Capability, by: DeclaredBy) {
    let hosts = view.service_hosts(asked);
    for placed in view.grants_for(by) {
        if gives(&placed.rule, &view.contract, asked, true) {
            let of_rule = hosts.iter().cloned();
            let of_rule =
                of_rule.map(|(host, written)| host_grant(&placed.rule, host, written, true));
            grant.network.extend(of_rule);
        }
    }
}

/// A host as it is granted by a line of the policy, which has this port `written`. Plain
/// http passes to port 80, which no port stands for, and to a port that the line names; never
/// where the line or the declaration names 443, the port of https.
fn host_grant(
    rule: &Rule,
    host: HostPattern,
    written: Option<u16>,
    unsafe_methods: bool,
) -> HostGrant {
    let port = host.port();
    let names_https = [written, host.written_port()].contains(&Some(443));
    let named = matches!(port, None | Some(80)) || port == written;
    HostGrant {
        plain_http: rule.plain_http && named && !names_https,
        host,
        unsafe_methods,
        addresses: rule.addresses.clone(),
        headers: rule.guest_headers.clone(),
    }
}

fn workspace(grant: &mut Grant, view: &View<'_>, asked: &Capability, write: bool) {
    if let (Some(path), Some(workspace)) = (asked.path(), view.workspace(asked)) {
        grant.workspaces.push(WorkspaceGrant {
            path: path.clone(),
            root: workspace.path.to_string(),
            directory: workspace.directory.clone(),
            write,
            max_bytes: workspace.max_bytes,
            max_files: workspace.max_files,
        });
    }
}

/// The publisher's own bucket, or the one that another publisher shares with it
/// under that name. `*` is every bucket of the publisher's own and every shared
/// one.
fn database(grant: &mut Grant, view: &View<'_>, asked: &Capability, write: bool, by: DeclaredBy) {
    let (name, publisher) = (asked.scope(), view.publisher_of(by));
    let shared = view.policy.shares().iter().filter(|share| {
        share.to.as_str() == publisher && (asked.is_wildcard() || share.database == name)
    });
    let before = grant.buckets.len();
    grant.buckets.extend(shared.map(|share| BucketGrant {
        name: share.database.clone(),
        owner: share.from.to_string(),
        write,
    }));
    if asked.is_wildcard() || grant.buckets.len() == before {
        grant.buckets.push(BucketGrant {
            name,
            owner: publisher.to_owned(),
            write,
        });
    }
}

fn secret(
    grant: &mut Grant,
    view: &View<'_>,
    asked: &Capability,
    store: bool,
    by: DeclaredBy,
    rules: &[&Placed<Rule>],
) {
    let slug = asked.scope();
    // Storing includes neither sending nor reading.
    let (binding, reveal) = match store {
        true => (None, false),
        false => {
            let table = view.secret(asked, by);
            let binding = table.and_then(|table| table.binding.clone());
            (binding, reveals(rules, asked))
        }
    };
    let publisher = view.publisher_of(by);
    let same = |known: &&mut SecretGrant| known.slug == slug && known.publisher == publisher;
    let known = grant.secrets.iter_mut().find(same);
    if let Some(known) = known {
        known.binding = known.binding.take().or(binding);
        known.reveal |= reveal;
        known.store |= store;
    } else {
        grant.secrets.push(SecretGrant {
            slug,
            publisher: publisher.to_owned(),
            binding,
            reveal,
            store,
        });
    }
}

/// Parts of a grant up to which covered ones are left out. That only makes it
/// shorter.
const MAX_TIDIED_PARTS: usize = 256;

/// Leaves out parts that another one covers; of equal ones the first stays.
fn widest<T: PartialEq>(all: Vec<T>, contains: impl Fn(&T, &T) -> bool) -> Vec<T> {
    if all.len() > MAX_TIDIED_PARTS {
        return all;
    }
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for one in all {
        if !kept.iter().any(|wide| contains(wide, &one)) {
            kept.retain(|narrow| !contains(&one, narrow));
            kept.push(one);
        }
    }
    kept
}

impl HostGrant {
    /// Whether every request that passes `other` passes this one.
    fn contains(&self, other: &Self) -> bool {
        let host = |grant: &Self| Capability::of(Class::Network, &grant.host.to_string());
        let covers = match (host(self), host(other)) {
            (Ok(own), Ok(other)) => own.covers(&other),
            _ => false,
        };
        // No port stands for 443 with https and 80 with http: it does not take in
        // http at port 443.
        let ports = self.host.port() == other.host.port() || !other.plain_http;
        covers
            && ports
            && (self.unsafe_methods || !other.unsafe_methods)
            && (self.plain_http || !other.plain_http)
            && other
                .addresses
                .iter()
                .all(|net| self.addresses.contains(net))
            && other.headers.iter().all(|name| self.headers.contains(name))
    }
}

impl WorkspaceGrant {
    /// Whether everything in `other` is in this one, too.
    fn contains(&self, other: &Self) -> bool {
        let path = |grant: &Self| Capability::of(Class::Workspace, &grant.path.to_string());
        let covers = match (path(self), path(other)) {
            (Ok(own), Ok(other)) => own.covers(&other),
            _ => false,
        };
        covers && self.root == other.root && (self.write || !other.write)
    }
}
