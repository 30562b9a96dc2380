//! `partial` of a `[[grant]]`: a tool is served with some of its declared hosts and workspaces, and
//! without the others. It narrows a declaration and grants nothing. All other declarations must be
//! granted, or the tool is blocked.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::DriverKind;

use crate::denial::Why;
use crate::error::{self, PolicyError, Refuse as _};
use crate::evaluate::{self, Evaluated, Found, PolicyView};
use crate::implementation::{self, DeclaredBy};
use crate::rule::Rule;

/// The most parts of a tool's declarations that rules can grant separately. With more parts, the
/// tool stays blocked. A hostile declaration may have thousands of wildcards, and a long rule may
/// grant thousands of parts of each.
const MAX_PARTS: usize = 1024;

/// The parts of a declaration that a tool gets, if a rule has `partial` and something is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// All granted capabilities, and whether each may be changed. Hosts are included only as far as
    /// the driver uses them.
    pub given: Vec<(Capability, bool)>,
    /// The declared capabilities that are not granted, or not in full; at least one.
    pub withheld: Vec<Withheld>,
}

/// A declared host or workspace that a tool is served without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// The capability as declared.
    pub capability: Capability,
    /// Whether it is declared in `mutates`.
    pub mutates: bool,
    /// Who declared it.
    pub declared_by: DeclaredBy,
    /// The parts of it that are granted nevertheless.
    pub given: Vec<Capability>,
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most parts that are named.
        const MAX_SHOWN: usize = 5;
        write!(f, "{}", self.capability)?;
        if self.mutates {
            f.write_str(" (to change it)")?;
        }
        if self.given.is_empty() {
            return Ok(());
        }
        let shown = self.given.iter().take(MAX_SHOWN);
        let shown: Vec<String> = shown.map(ToString::to_string).collect();
        write!(f, " but for {}", shown.join(", "))?;
        match self.given.len().checked_sub(MAX_SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => write!(f, " and {more} more"),
        }
    }
}

impl<'a> PolicyView<'a> {
    /// Evaluates everything that is declared.
    pub(crate) fn evaluate(&self) -> Vec<Evaluated<'a>> {
        let all = implementation::declared(self.contract.tool, self.implementation.driver);
        let evaluated = all.into_iter().map(|declared| self.evaluated(declared));
        narrow(self, evaluated.collect())
    }
}

impl Partial {
    /// Collects the parts; `None` if nothing is left out.
    pub(crate) fn of(evaluated: &[Evaluated<'_>]) -> Option<Self> {
        let withheld: Vec<Withheld> = evaluated
            .iter()
            .filter(|one| !one.withheld.is_empty())
            .map(|one| Withheld {
                capability: one.declared.capability.clone(),
                mutates: one.declared.mutates,
                declared_by: one.declared.by,
                given: one.found.iter().map(|(part, _)| part.clone()).collect(),
            })
            .collect();
        let given = evaluate::parts(evaluated);
        let given = given.map(|(declared, part, _)| (part.clone(), declared.mutates));
        (!withheld.is_empty()).then(|| Self {
            given: given.collect(),
            withheld,
        })
    }
}

/// Checks that a rule with `partial` grants a host or a workspace.
pub(crate) fn check(rule: &Rule) -> Result<(), PolicyError> {
    let all = rule.requires.iter().chain(&rule.mutates);
    if !rule.partial || all.into_iter().any(can_be_left_out) {
        return Ok(());
    }
    Err(error::WRONG_VALUE
        .error("expected a host or a workspace beside `partial`, found none")
        .hinted("write the hosts and workspaces to give into `requires` or `mutates`"))
}

/// Whether a tool can be served without the capability.
pub(crate) fn can_be_left_out(capability: &Capability) -> bool {
    matches!(capability.class(), Class::Network | Class::Workspace)
}

/// Leaves out the declared hosts and workspaces that no rule grants, if a rule with `partial`
/// grants some of them. Leaves out nothing for a program, which gets exactly the access of its
/// `[[exec]]`.
pub(crate) fn narrow<'a>(
    view: &PolicyView<'a>,
    mut evaluated: Vec<Evaluated<'a>>,
) -> Vec<Evaluated<'a>> {
    let driver = view.implementation.driver;
    if driver.kind == DriverKind::Exec {
        return evaluated;
    }
    let partial = view.grants.iter().map(|placed| &placed.rule);
    let partial = partial.filter(|rule| rule.partial && gives_some(rule, &evaluated));
    let partial: Vec<&Rule> = partial.collect();
    if partial.is_empty() {
        return evaluated;
    }
    // If a change is not granted in full, it does not include reading, so the declared reading is
    // evaluated separately.
    let narrowed = evaluated.iter().filter(|one| one.declared.mutates);
    let narrowed = narrowed.filter(|one| one.found.iter().any(|(_, found)| found.is_err()));
    let narrowed: Vec<Capability> = narrowed
        .map(|one| one.declared.capability.clone())
        .collect();
    let reads = implementation::implied_reads(view.contract.tool, driver).into_iter();
    let reads = reads.filter(|read| {
        can_be_left_out(&read.capability)
            && narrowed.iter().any(|wide| wide.covers(&read.capability))
    });
    evaluated.extend(reads.map(|read| view.evaluated(read)));

    let by_driver = partial.iter().any(|rule| rule.driver.is_some());
    let mut room = MAX_PARTS;
    for one in &mut evaluated {
        let of_side = one.declared.by == DeclaredBy::Contract || by_driver;
        for (asked, found) in std::mem::take(&mut one.found) {
            let Some(why) = found.as_ref().err().filter(|why| of_side && is_open(why)) else {
                one.found.push((asked, found));
                continue;
            };
            if !can_be_left_out(&asked) {
                one.found.push((asked, found));
            } else if driver.kind == DriverKind::Http && *asked.class() == Class::Network {
                one.found.push((asked, Err(Why::RequestHost)));
            } else if let Some(parts) = parts(view, &asked, one, &mut room) {
                one.withheld.push((asked, why.clone()));
                one.found.extend(parts);
            } else {
                one.found.push((asked, found));
            }
        }
    }
    evaluated
}

/// Whether only a rule is missing.
fn is_open(why: &Why) -> bool {
    matches!(
        why,
        Why::NoRule | Why::OnlyReading | Why::WildcardNotWritten | Why::DriverNotNamed
    )
}

/// Whether the rule grants at least a part of one declared host or workspace.
fn gives_some(rule: &Rule, evaluated: &[Evaluated<'_>]) -> bool {
    evaluated.iter().any(|one| {
        let of_side = one.declared.by == DeclaredBy::Contract || rule.driver.is_some();
        let mut asked = one.found.iter().map(|(asked, _)| asked);
        of_side
            && asked.any(|asked| {
                can_be_left_out(asked)
                    && entries(rule, one.declared.mutates)
                        .any(|entry| asked.intersect(entry).is_some())
            })
    })
}

/// The entries of a rule that can grant a capability. If the capability is changed, only `mutates`.
fn entries(rule: &Rule, mutates: bool) -> impl Iterator<Item = &Capability> {
    let reads = (!mutates).then_some(&rule.requires);
    reads.into_iter().chain([&rule.mutates]).flatten()
}

/// The parts of a required capability that rules grant, each with its result; `None` if they are
/// more than `room`.
fn parts<'a>(
    view: &PolicyView<'a>,
    asked: &Capability,
    one: &Evaluated<'_>,
    room: &mut usize,
) -> Option<Vec<(Capability, Found<'a>)>> {
    let (mutates, by) = (one.declared.mutates, one.declared.by);
    let mut parts = BTreeSet::new();
    for placed in view.grants_for(by) {
        for entry in entries(&placed.rule, mutates) {
            parts.extend(asked.intersect(entry));
            if parts.len() > *room {
                return None;
            }
        }
    }
    *room -= parts.len();
    let all: Vec<Capability> = parts.iter().cloned().collect();
    parts.retain(|part| !all.iter().any(|wide| wide != part && wide.covers(part)));
    let found = parts.into_iter().map(|part| {
        let found = view.look_up(&part, mutates, by);
        (part, found)
    });
    Some(found.collect())
}
