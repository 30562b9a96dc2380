//! Collects what blocked tools lack, and writes it as tables of a policy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toolward_contract::capability::{Capability, CapabilitySet, Class};

use super::Choices;
use crate::decision::Decision;
use crate::denial::{Denial, Lack, MissingGrant};
use crate::grant::SecretPosition;
use crate::implementation::{Contract, DeclaredBy, Implementation};
use crate::name::Publisher;
use crate::partial::can_be_left_out;
use crate::toml_text::comment;

impl Denial {
    /// The lines to add to the policy's file for this tool, as TOML that can be
    /// appended. Where the operator has to choose a directory, a host or a
    /// variable, the lines have a value that gives nothing, and a comment on it.
    /// What no line can grant is a comment, too.
    #[must_use]
    pub fn lines_to_add(&self) -> String {
        SuggestedLines::of(self).write().lines
    }

    /// Fewer lines than [`Denial::lines_to_add`], as an example: they give only the first of the hosts and workspaces, with
    /// `partial`. Empty if it lacks at most one.
    #[must_use]
    pub fn narrower_lines(&self) -> String {
        let mut lines = SuggestedLines::of(self);
        match lines.narrow() {
            true => lines.write().lines,
            false => String::new(),
        }
    }
}

/// What a `[[grant]]` is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) publisher: String,
    pub(super) tool: String,
    pub(super) driver_publisher: String,
    pub(super) driver: Option<String>,
}

/// What is known of a secret.
#[derive(Clone, Default)]
pub(super) struct KnownSecret {
    /// The hosts that the drivers declare: only shown.
    pub(super) egress: BTreeSet<String>,
    /// The methods of the requests that send it; empty where no declarative driver does.
    pub(super) methods: BTreeSet<&'static str>,
    /// Where a request has it.
    pub(super) position: Option<SecretPosition>,
}

/// What a `[[grant]]` gives.
#[derive(Clone, Default)]
pub(super) struct GrantParts {
    pub(super) requires: CapabilitySet,
    pub(super) mutates: CapabilitySet,
    pub(super) accepts: BTreeSet<String>,
    pub(super) partial: bool,
}

impl GrantParts {
    /// Leaves out all hosts and workspaces but the first, which it returns.
    fn narrow(&mut self) -> Vec<Capability> {
        let all = self.requires.iter().chain(self.mutates.iter());
        let mut removable = all.filter(|one| can_be_left_out(one)).cloned();
        let Some(kept) = removable.next() else {
            return Vec::new();
        };
        let left_out: Vec<Capability> = removable.filter(|one| *one != kept).collect();
        if left_out.is_empty() {
            return left_out;
        }
        self.partial = true;
        for set in [&mut self.requires, &mut self.mutates] {
            let stay = set.iter().filter(|one| !left_out.contains(one));
            *set = stay.cloned().collect();
        }
        left_out
    }

    pub(super) fn has_network(&self) -> bool {
        let mut all = self.requires.iter().chain(self.mutates.iter());
        all.any(|one| *one.class() == Class::Network)
    }

    fn add(&mut self, missing: &MissingGrant) {
        let capability = missing.capability.clone();
        if let Class::Other(class) = capability.class() {
            self.accepts.insert(class.clone());
        } else if missing.mutates {
            self.mutates.insert(capability);
        } else {
            self.requires.insert(capability);
        }
    }
}

/// Tables to write, each once.
#[derive(Clone, Default)]
pub(super) struct SuggestedLines {
    /// Directories that a placeholder must not overlap.
    pub(super) taken: Vec<PathBuf>,
    pub(super) workspaces: CapabilitySet,
    /// By publisher and slug.
    pub(super) secrets: BTreeMap<(String, String), KnownSecret>,
    pub(super) services: BTreeMap<String, BTreeSet<String>>,
    pub(super) grants: BTreeMap<Key, GrantParts>,
    pub(super) programs: BTreeSet<String>,
    /// Whole blocks.
    pub(super) contexts: BTreeSet<String>,
    /// Whether each `[[grant]]` has it.
    pub(super) preapproved: bool,
    pub(super) choices: Choices,
    pub(super) remarks: Vec<String>,
}

impl SuggestedLines {
    pub(super) fn new(taken: Vec<PathBuf>) -> Self {
        Self {
            taken,
            ..Self::default()
        }
    }

    fn of(denial: &Denial) -> Self {
        let mut lines = Self::new(denial.placeholders.clone());
        lines.add(denial);
        lines
    }

    pub(super) fn add(&mut self, denial: &Denial) {
        for publisher in [&denial.publisher, &denial.driver_publisher] {
            if Publisher::parse(publisher).is_err() {
                self.remark(denial, "a policy can't name its publisher");
                return;
            }
        }
        for rule in &denial.denied_by {
            self.remark(denial, &format!("denied by {rule}"));
        }
        for lack in &denial.lacks {
            match lack.clone() {
                Lack::Workspace(path) => self.workspaces.insert(path),
                Lack::Secret {
                    slug,
                    publisher,
                    egress,
                    method,
                    position,
                } => {
                    let known = self.secrets.entry((publisher, slug)).or_default();
                    known.egress.extend(egress);
                    known.methods.extend(method);
                    known.position = known.position.take().or(position);
                }
                Lack::Service { name, egress } => {
                    self.services.entry(name).or_default().extend(egress);
                }
            }
        }
        if let Some(program) = &denial.program {
            let lines = program.lines_to_add(&denial.publisher, &denial.tool);
            self.programs.insert(lines);
        }
        for missing in &denial.missing {
            if missing.why.rule_helps() {
                let key = Key {
                    publisher: denial.publisher.clone(),
                    tool: denial.tool.clone(),
                    driver_publisher: denial.driver_publisher.clone(),
                    driver: (missing.declared_by == DeclaredBy::Driver
                        || denial.driver_publisher != denial.publisher)
                        .then(|| denial.driver.clone()),
                };
                self.grants.entry(key).or_default().add(missing);
            } else if !missing.why.lines_help() {
                self.remark(denial, &missing.to_string());
            }
        }
    }

    /// Binds another publisher's driver to a contract, with all that it lacks.
    pub(super) fn bind(
        &mut self,
        contract: &Contract<'_>,
        implementation: &Implementation<'_>,
        decision: &Decision,
    ) {
        if let Decision::Deny(denial) = decision {
            self.add(denial);
            if !denial.denied_by.is_empty() {
                return;
            }
        }
        let publishers = [contract.publisher, implementation.publisher];
        if publishers.iter().all(|name| Publisher::parse(name).is_ok()) {
            let key = Key {
                publisher: contract.publisher.to_owned(),
                tool: contract.tool.major_id(),
                driver_publisher: implementation.publisher.to_owned(),
                driver: Some(implementation.driver.id.to_string()),
            };
            self.grants.entry(key).or_default();
        }
    }

    fn remark(&mut self, denial: &Denial, text: &str) {
        let remark = comment(&format!("{}: {text}", denial.tool));
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Leaves out hosts and workspaces; `false` if there is nothing to leave out.
    pub(super) fn narrow(&mut self) -> bool {
        let left_out: Vec<Capability> = self
            .grants
            .values_mut()
            .flat_map(GrantParts::narrow)
            .collect();
        let stay = self.workspaces.iter();
        let stay = stay.filter(|one| !left_out.contains(one));
        self.workspaces = stay.cloned().collect();
        !left_out.is_empty()
    }
}
