//! Suggests lines that an operator could add to a policy: for one blocked tool, or the fewest lines
//! for a whole bundle. They are only for people; an agent never sees them.

mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toolward_contract::capability::{Capability, CapabilitySet, Class};

use crate::context::{ContextLack, Contexts};
use crate::decision::{Decision, DecisionContext};
use crate::denial::{Denial, Lack, MissingGrant};
use crate::grant::SecretPosition;
use crate::implementation::{Contract, DeclaredBy, Implementation, Machine};
use crate::name::Publisher;
use crate::partial::can_be_left_out;
use crate::policy::Policy;
use crate::routing::{Rejection, ToolRoutes};
use crate::toml_text::comment;

/// The fewest lines that let these tools run, when they are appended to the file of `policy`; empty
/// if nothing is missing. The lines are as narrow as the declarations, with one rule for each tool
/// and major version. They leave the approval classes unchanged.
///
/// Without `driver`, the lines are for drivers of each contract's own publisher, and do not affect
/// other drivers, whether the policy binds them or not. With `driver`, the lines are only for this
/// driver. If it has another publisher, the lines bind it to the contract. With `preapproved`, each
/// `[[grant]]` of the lines has this key. `policy` and `machine` must be the same as when the
/// routes were made. `choices` are the values that the operator has chosen already.
pub fn suggest<'r, 'a: 'r>(
    tools: impl IntoIterator<Item = &'r ToolRoutes<'a>>,
    driver: Option<&str>,
    preapproved: bool,
    policy: &Policy,
    machine: &Machine,
    choices: &Choices,
) -> ChosenLines {
    let taken = policy.tables.workspaces.iter();
    let taken = taken.map(|known| known.directory.clone()).collect();
    let mut lines = SuggestedLines::new(taken);
    lines.preapproved = preapproved;
    lines.choices = choices.clone();
    for tool in tools {
        for route in &tool.routes {
            let wanted = match driver {
                None => !route.is_foreign(),
                Some(id) => route.implementation.driver.id.as_str() == id,
            };
            if !wanted {
                continue;
            }
            if let Decision::Deny(denial) = &route.decision {
                lines.add(denial);
            }
            let contexts = Contexts::of(&route.contract, &route.implementation, policy);
            let lack = contexts.lack().map(ContextLack::lines_to_add);
            lines.contexts.extend(lack);
        }
        for rejected in &tool.rejected {
            let implementation = &rejected.implementation;
            if driver == Some(implementation.driver.id.as_str())
                && rejected.reasons == [Rejection::NotBound]
            {
                let request = DecisionContext {
                    machine: Some(machine),
                    ..DecisionContext::default()
                };
                let decision = crate::decide(&tool.contract, implementation, policy, &request);
                lines.bind(&tool.contract, implementation, &decision);
            }
        }
    }
    let mut narrower = lines.clone();
    let narrowed = narrower.narrow();
    ChosenLines {
        narrower: narrowed.then(|| narrower.write().lines),
        ..lines.write()
    }
}

/// The operator's choices for suggested lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// The directory of each workspace, by its path.
    pub workspaces: BTreeMap<String, String>,
    /// The source and destination of each secret, by its publisher and name. The publisher may be
    /// left out if only one publisher has a secret of this name in the lines.
    pub secrets: BTreeMap<(Option<String>, String), SecretChoice>,
    /// The hosts of the services, each with the name of its service. The name may be left out if
    /// the lines have one service.
    pub hosts: Vec<(Option<String>, String)>,
    /// Private addresses that the hosts of the grants may have.
    pub addresses: Vec<String>,
}

impl Choices {
    /// Reads `HOST` or `SERVICE=HOST`, and adds it.
    pub fn add_host(&mut self, text: &str) {
        let (service, host) = match text.split_once('=') {
            Some((service, host)) => (Some(service.to_owned()), host),
            None => (None, text),
        };
        self.hosts.push((service, host.to_owned()));
    }

    /// Adds the choice of a secret by `NAME` or `PUBLISHER:NAME`.
    pub fn add_secret(&mut self, name: &str, choice: SecretChoice) {
        let key = match name.rsplit_once(':') {
            Some((publisher, slug)) => (Some(publisher.to_owned()), slug.to_owned()),
            None => (None, name.to_owned()),
        };
        self.secrets.insert(key, choice);
    }
}

/// The source and the destination of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretChoice {
    /// The key of `[[secret]]`: `env` or `file`.
    pub source: &'static str,
    /// The variable, or the path of the file.
    pub place: String,
    /// The origin that it may be sent to: `https://api.example.com`.
    pub origin: String,
}

impl SecretChoice {
    /// Reads `env:VARIABLE@https://HOST` or `file:PATH@https://HOST`.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, origin) = text.rsplit_once("@https://")?;
        let (source, place) = from.split_once(':')?;
        let source = ["env", "file"].into_iter().find(|known| *known == source)?;
        (!place.is_empty() && !origin.is_empty()).then(|| Self {
            source,
            place: place.to_owned(),
            origin: format!("https://{origin}"),
        })
    }
}

/// A choice that only the operator can make, and has not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenChoice {
    /// The directory of the workspace with this path.
    Workspace(String),
    /// The source and destination of a secret.
    Secret {
        /// The publisher whose drivers use it.
        publisher: String,
        /// Its name.
        slug: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// The hosts of a service.
    Service {
        /// Its name.
        name: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// Tables of a program or a context, in which the operator must replace values.
    Tables,
}

/// Suggested lines, with the choices that are still open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChosenLines {
    /// Tables to append.
    pub lines: String,
    /// The open choices. In their place, the lines have a value that grants nothing.
    pub open: Vec<OpenChoice>,
    /// Fewer lines, as an example that grants only some of the hosts and workspaces, with
    /// `partial`.
    pub narrower: Option<String>,
    /// The choices that no line uses.
    pub unused: Vec<String>,
    /// The choices that could mean several secrets or services, as sentences. No line uses them.
    pub ambiguous: Vec<String>,
}

impl Denial {
    /// The lines to add to the policy's file for this tool, as TOML that can be appended. If the
    /// operator must choose a directory, a host or a variable, the lines have a value that grants
    /// nothing, with a comment. Capabilities that no line can grant are only comments.
    pub fn lines_to_add(&self) -> String {
        SuggestedLines::of(self).write().lines
    }

    /// Fewer lines than [`Denial::lines_to_add`], as an example that grants only the first of the
    /// hosts and workspaces, with `partial`. Empty if the tool lacks at most one host or workspace.
    pub fn narrower_lines(&self) -> String {
        let mut lines = SuggestedLines::of(self);
        match lines.narrow() {
            true => lines.write().lines,
            false => String::new(),
        }
    }
}

/// The subject of a `[[grant]]`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    publisher: String,
    tool: String,
    driver_publisher: String,
    driver: Option<String>,
}

/// The known facts of a secret.
#[derive(Clone, Default)]
struct KnownSecret {
    /// The hosts that the drivers declare, which are only shown.
    egress: BTreeSet<String>,
    /// The methods of the requests that send it; empty if no declarative driver sends it.
    methods: BTreeSet<&'static str>,
    /// The position of the secret in a request.
    position: Option<SecretPosition>,
}

/// The capabilities of a `[[grant]]`.
#[derive(Clone, Default)]
struct GrantParts {
    requires: CapabilitySet,
    mutates: CapabilitySet,
    accepts: BTreeSet<String>,
    partial: bool,
}

impl GrantParts {
    /// Leaves out all hosts and workspaces except the first, and returns the capabilities that it
    /// left out.
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

    fn has_network(&self) -> bool {
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
struct SuggestedLines {
    /// Directories that a placeholder must not overlap.
    taken: Vec<PathBuf>,
    workspaces: CapabilitySet,
    /// The secrets by publisher and slug.
    secrets: BTreeMap<(String, String), KnownSecret>,
    services: BTreeMap<String, BTreeSet<String>>,
    grants: BTreeMap<Key, GrantParts>,
    programs: BTreeSet<String>,
    /// The contexts, as whole tables.
    contexts: BTreeSet<String>,
    /// Whether each `[[grant]]` has `preapproved`.
    preapproved: bool,
    choices: Choices,
    remarks: Vec<String>,
}

impl SuggestedLines {
    fn new(taken: Vec<PathBuf>) -> Self {
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

    fn add(&mut self, denial: &Denial) {
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

    /// Adds a rule that binds another publisher's driver to a contract, and everything that the
    /// driver lacks.
    fn bind(
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

    /// Leaves out hosts and workspaces. Returns `false` if nothing can be left out.
    fn narrow(&mut self) -> bool {
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
