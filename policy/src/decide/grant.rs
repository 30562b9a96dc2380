//! Makes the grant from the evaluated declarations.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolward_contract::capability::{Capability, Class, HostPattern};

use crate::evaluate::{Evaluated, PolicyView, gives, parts, reveals};
use crate::exec::ExecRule;
use crate::grant::{BucketGrant, Grant, HostGrant, SecretGrant, WorkspaceGrant};
use crate::implementation::Declared;
use crate::name::Placed;
use crate::rule::Rule;

pub(super) fn of(view: &PolicyView<'_>, evaluated: &[Evaluated<'_>]) -> Grant {
    let mut grant = Grant {
        on_violation: view.on_violation(),
        ..Grant::default()
    };
    let mut seen = BTreeSet::new();
    for (declared, asked, found) in parts(evaluated) {
        if let Ok(rules) = found
            && seen.insert((asked, declared.mutates, declared.by))
        {
            add(&mut grant, view, declared, asked, rules);
        }
    }
    tidy(grant)
}

/// The grant for a program, which runs in a separate process. The program gets files and network
/// only by `rule`, its `[[exec]]`, so the rest of the grant has none of them.
pub(super) fn of_program(grant: Grant, rule: &ExecRule) -> Grant {
    Grant {
        secrets: grant.secrets,
        on_violation: grant.on_violation,
        program: Some(Arc::new(rule.clone())),
        ..Grant::default()
    }
}

/// The grant for one part of a declaration alone.
pub(crate) fn part(
    view: &PolicyView<'_>,
    declared: &Declared,
    asked: &Capability,
    rules: &[&Placed<Rule>],
) -> Grant {
    let mut grant = Grant::default();
    add(&mut grant, view, declared, asked, rules);
    tidy(grant)
}

fn add(
    grant: &mut Grant,
    view: &PolicyView<'_>,
    declared: &Declared,
    asked: &Capability,
    rules: &[&Placed<Rule>],
) {
    match asked.class() {
        Class::Network => network(grant, view, asked, declared),
        Class::External => external(grant, view, asked, declared),
        Class::Workspace => workspace(grant, view, asked, declared),
        Class::Database => database(grant, view, asked, declared),
        Class::Secret => secret(grant, view, asked, declared, rules),
        // A rule may accept an unknown class, but the sandbox gets nothing for it.
        Class::Other(_) => {}
        class => {
            let scopes = grant.scopes.entry(class.clone()).or_default();
            scopes.push(asked.scope());
        }
    }
}

fn tidy(mut grant: Grant) -> Grant {
    grant.network = widest(grant.network, HostGrant::contains);
    grant.workspaces = widest(grant.workspaces, WorkspaceGrant::contains);
    grant.buckets = widest(grant.buckets, |a, b| {
        a.name == b.name && a.owner == b.owner && (a.write || !b.write)
    });
    for (class, scopes) in &mut grant.scopes {
        scopes.sort();
        scopes.sort_by_key(|scope| class.place(scope));
        scopes.dedup();
    }
    grant
}

/// Adds the part of the declared hosts that each rule grants, with that rule's terms. So plain http
/// or a private address that one rule grants does not extend to the hosts of another rule.
fn network(grant: &mut Grant, view: &PolicyView<'_>, asked: &Capability, declared: &Declared) {
    for placed in view.grants_for(declared.by) {
        let rule = &placed.rule;
        let read = rule.requires.iter().map(|entry| (entry, false));
        let write = rule.mutates.iter().map(|entry| (entry, declared.mutates));
        for (entry, unsafe_methods) in read.chain(write) {
            if let Some(host) = asked.intersect(entry).and_then(|both| both.host().cloned()) {
                let written = entry.host().and_then(HostPattern::written_port);
                let given = host_grant(rule, host, written, unsafe_methods);
                grant.network.push(given);
            }
        }
    }
}

fn external(grant: &mut Grant, view: &PolicyView<'_>, asked: &Capability, declared: &Declared) {
    let hosts = view.service_hosts(asked);
    for placed in view.grants_for(declared.by) {
        let rule = &placed.rule;
        if gives(rule, &view.contract, asked, true) {
            let hosts = hosts.iter().cloned();
            let given = hosts.map(|(host, written)| host_grant(rule, host, written, true));
            grant.network.extend(given);
        }
    }
}

/// The grant of a host by an entry of `rule` or of a `[[service]]`; `written` is the port in that
/// entry. If the rule grants plain http, http passes to port 80, even if the host has no port, and
/// to a port that the entry names. It never passes if the entry or the declaration names 443, the
/// port of https.
fn host_grant(
    rule: &Rule,
    host: HostPattern,
    written: Option<u16>,
    unsafe_methods: bool,
) -> HostGrant {
    let port = host.port();
    let names_https = [written, host.written_port()].contains(&Some(443));
    let named = matches!(port, None | Some(80)) || port == written;
    let mut terms = rule.host_terms.clone();
    terms.plain_http &= named && !names_https;
    HostGrant {
        host,
        unsafe_methods,
        terms,
    }
}

fn workspace(grant: &mut Grant, view: &PolicyView<'_>, asked: &Capability, declared: &Declared) {
    if let (Some(path), Some(workspace)) = (asked.path(), view.workspace(asked)) {
        grant.workspaces.push(WorkspaceGrant {
            path: path.clone(),
            root: workspace.path.to_string(),
            directory: workspace.directory.clone(),
            write: declared.mutates,
            max_bytes: workspace.max_bytes,
            max_files: workspace.max_files,
        });
    }
}

/// Adds the buckets of the declared name that other publishers share with the declaring publisher.
/// If no bucket is shared, adds the publisher's own bucket. For `*`, adds all shared buckets and
/// all of the publisher's own buckets.
fn database(grant: &mut Grant, view: &PolicyView<'_>, asked: &Capability, declared: &Declared) {
    let (name, publisher) = (asked.scope(), view.publisher_of(declared.by));
    let write = declared.mutates;
    let shared = view.policy.tables.shares.iter().filter(|share| {
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
    view: &PolicyView<'_>,
    asked: &Capability,
    declared: &Declared,
    rules: &[&Placed<Rule>],
) {
    let (slug, store, by) = (asked.scope(), declared.mutates, declared.by);
    // Permission to store a secret includes neither sending nor reading it.
    let table = view.secret(asked, by).filter(|_| !store);
    let binding = table.and_then(|table| table.binding.clone());
    let reveal = !store && reveals(rules, asked);
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

/// In a longer list, parts that another part covers stay. Leaving them out only makes the grant
/// shorter.
const MAX_TIDIED_PARTS: usize = 256;

/// Leaves out the parts that another part covers. Of equal parts, the first stays.
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
        self.host.covers(&other.host)
            && (self.unsafe_methods || !other.unsafe_methods)
            && other.terms.narrow(&self.terms)
    }
}

impl WorkspaceGrant {
    /// Whether everything in `other` is in this one, too.
    fn contains(&self, other: &Self) -> bool {
        self.path.covers(&other.path) && self.root == other.root && (self.write || !other.write)
    }
}
