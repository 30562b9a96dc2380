//! Compares two policies: whether one grants at most as much as the other, so that a running server
//! may adopt it. If the comparison can't decide, the later policy counts as wider.

use std::fmt;

use toolward_contract::capability::{Capability, CapabilitySet, Class, HostPattern};

use crate::limits::{LimitName, LimitSettings};
use crate::policy::{Policy, PolicyTables};
use crate::resources::{ServiceRule, Workspace};
use crate::rule::{DenyRule, Rule};

/// A part of a policy that may grant more than an earlier policy did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Wider(String);

fn wider(what: impl fmt::Display) -> Result<(), Wider> {
    Err(Wider(what.to_string()))
}

impl Policy {
    /// Checks that every tool gets at most what it gets under `earlier`, and that a person is asked
    /// at least as often. A policy narrows another policy if
    ///
    /// * each of its grants has the tools, publishers and driver of an earlier grant, and grants at
    ///   most what that grant does;
    /// * for each earlier grant that requires approval, or ends a call at a violation, it has a
    ///   grant about the same tools that is at least as strict;
    /// * it has each earlier deny and, if any of its grants has `partial`, each earlier grant;
    /// * its workspaces, secrets, programs, documents and approvals were in the earlier policy, but
    ///   a workspace may have lower limits. No workspace takes over the path of a removed
    ///   workspace;
    /// * its contexts, services and shares are exactly the earlier ones, since a tool may get
    ///   another one in place of a removed one;
    /// * the earlier `[resolve]` accepts every driver that the later `[resolve]` accepts;
    /// * no number of `[limits]` is higher or set in only one of the policies, no default is
    ///   weaker, and no other CA file is trusted.
    ///
    /// # Errors
    /// The first part that is, or may be, wider.
    pub fn narrows(&self, earlier: &Self) -> Result<(), Wider> {
        // Each field is compared below. If a field is added, the pattern does not compile until the
        // field is named here.
        let Self {
            grants: _,
            denies: _,
            context_places: _,
            tables:
                PolicyTables {
                    workspaces: _,
                    secrets: _,
                    contexts: _,
                    execs: _,
                    services: _,
                    shares: _,
                    documents: _,
                    approvals: _,
                    resolve: _,
                    ca_file: _,
                    limits: _,
                    defaults: _,
                },
        } = self;
        for placed in &self.grants {
            if !earlier.grants().any(|known| placed.rule.narrows(known)) {
                return wider(format_args!(
                    "{} gives something that no one grant gave",
                    placed.id
                ));
            }
        }
        for placed in &earlier.grants {
            let rule = &placed.rule;
            if rule.is_strict() && !self.grants().any(|known| known.is_as_strict(rule)) {
                return wider(format_args!(
                    "{} is no longer there, and was stricter than the defaults",
                    placed.id
                ));
            }
        }
        self.partial_narrows(earlier)?;
        for placed in &earlier.denies {
            if !self.denies().any(|known| is_same_deny(known, &placed.rule)) {
                return wider(format_args!("{} is no longer there", placed.id));
            }
        }
        self.tables.narrow(&earlier.tables)?;
        if let Err(key) = self.tables.resolve.narrows(&earlier.tables.resolve) {
            return wider(format_args!(
                "[resolve] `{key}` wants drivers that were not wanted"
            ));
        }
        limits(&self.tables.limits, &earlier.tables.limits)?;
        let (now, before) = (self.tables.defaults, earlier.tables.defaults);
        if now.approval.unwrap_or_default() < before.approval.unwrap_or_default()
            || now.on_violation.unwrap_or_default() < before.on_violation.unwrap_or_default()
        {
            return wider("[defaults] is weaker");
        }
        match self.tables.ca_file.as_deref() {
            Some(file) if earlier.tables.ca_file.as_deref() != Some(file) => {
                wider("[network] `ca_file` names another file")
            }
            _ => Ok(()),
        }
    }

    /// If a rule has `partial`, checks that all earlier grants are kept. Otherwise a tool that
    /// loses a grant may be served without the lost part. So it may run although it was blocked
    /// before, or without the approval that it needed before.
    fn partial_narrows(&self, earlier: &Self) -> Result<(), Wider> {
        let is_there = |rule: &Rule| self.grants().any(|known| known == rule);
        if !self.grants().any(|rule| rule.partial) {
            return Ok(());
        }
        match earlier.grants.iter().find(|one| !is_there(&one.rule)) {
            Some(gone) => wider(format_args!(
                "{} is another, beside a grant with `partial`",
                gone.id
            )),
            None => Ok(()),
        }
    }
}

impl PolicyTables {
    fn narrow(&self, earlier: &Self) -> Result<(), Wider> {
        for workspace in &self.workspaces {
            let mut known = earlier.workspaces.iter();
            if !known.any(|known| is_within(workspace, known)) {
                return wider(format_args!("[[workspace]] {} is another", workspace.path));
            }
        }
        // The paths of a removed workspace fall to the workspace above it, which has another
        // directory.
        for gone in &earlier.workspaces {
            let root = |workspace: &Workspace| {
                Capability::of(Class::Workspace, &workspace.path.to_string()).ok()
            };
            let is_above = |left: &Workspace| match (root(left), root(gone)) {
                (Some(left), Some(gone)) => left != gone && left.covers(&gone),
                _ => true,
            };
            let is_known = |left: &Workspace| left.path == gone.path;
            let left = &self.workspaces;
            if !left.iter().any(is_known) && left.iter().any(is_above) {
                return wider(format_args!(
                    "[[workspace]] {} is no longer there, and another one takes its path in",
                    gone.path
                ));
            }
        }
        let secret = added(&self.secrets, &earlier.secrets);
        let document = added(&self.documents, &earlier.documents);
        // A removed approval policy counts as `always`, which is not wider.
        let approval = added(&self.approvals, &earlier.approvals);
        let exec = added(&self.execs, &earlier.execs);
        let others = |table: &str| format!("the [[{table}]] tables are others");
        let found = [
            secret.map(|one| format!("[[secret]] {} is another", one.slug)),
            document.map(|one| format!("a [[document]] of {} is another", one.publisher)),
            approval.map(|one| format!("[approval.{}] is another", one.name)),
            exec.map(|one| format!("[[exec]] of {} is another", one.tool)),
            (!same(&self.contexts, &earlier.contexts)).then(|| others("context")),
            (!same(&spelled(&self.services), &spelled(&earlier.services)))
                .then(|| others("service")),
            (!same(&self.shares, &earlier.shares)).then(|| others("share")),
        ];
        found.into_iter().flatten().next().map_or(Ok(()), wider)
    }
}

fn added<'t, T: PartialEq>(tables: &'t [T], earlier: &[T]) -> Option<&'t T> {
    tables.iter().find(|one| !earlier.contains(one))
}

fn same<T: PartialEq>(some: &[T], others: &[T]) -> bool {
    some.len() == others.len() && some.iter().all(|one| others.contains(one))
}

/// Whether two denies are the same, including the spelling of hosts: a host without a port is
/// denied at every port, and with `:443` only at that port.
fn is_same_deny(one: &DenyRule, other: &DenyRule) -> bool {
    let written = |rule: &DenyRule| rule.capabilities.as_ref().map(written);
    one == other && written(one) == written(other)
}

/// Services including the spelling of hosts: `host` and `host:443` are equal, but plain http is
/// never allowed to `host:443`.
fn spelled(services: &[ServiceRule]) -> Vec<(&ServiceRule, Vec<Option<u16>>)> {
    let ports = |service: &ServiceRule| {
        service
            .hosts
            .iter()
            .map(HostPattern::written_port)
            .collect()
    };
    services
        .iter()
        .map(|service| (service, ports(service)))
        .collect()
}

fn written(capabilities: &CapabilitySet) -> Vec<String> {
    capabilities.iter().map(Capability::as_written).collect()
}

fn is_within(workspace: &Workspace, known: &Workspace) -> bool {
    workspace.path == known.path
        && workspace.directory == known.directory
        && workspace.shared == known.shared
        && is_at_most(workspace.max_bytes, known.max_bytes)
        && is_at_most(workspace.max_files, known.max_files)
}

fn limits(now: &LimitSettings, before: &LimitSettings) -> Result<(), Wider> {
    for name in LimitName::settable_by_policy() {
        let (now, before) = (now.get(name), before.get(name));
        if !is_at_most(now.default, before.default) || !is_at_most(now.maximum, before.maximum) {
            return wider(format_args!(
                "[limits] `{name}` is higher, or the host's own on one side"
            ));
        }
    }
    Ok(())
}

/// Without a number, the host's own number applies, which is not known here.
fn is_at_most(now: Option<u64>, before: Option<u64>) -> bool {
    match (now, before) {
        (Some(now), Some(before)) => now <= before,
        (now, before) => now == before,
    }
}
