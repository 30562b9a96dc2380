//! The lines that an operator would add to a policy: of one blocked tool, or
//! the fewest for a whole bundle. Only for people: an agent is never shown them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toolward_contract::capability::{Capability, CapabilitySet, Class};

use crate::context::{ContextLack, Contexts};
use crate::decision::{Contract, Decision, Denial, Implementation, Missing, Request, Why};
use crate::declared::DeclaredBy;
use crate::examine::View;
use crate::name::Publisher;
use crate::policy::Policy;
use crate::routing::{Machine, Rejection, ToolRoutes};
use crate::rule::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};

/// Hosts of a driver that a remark names.
const HOSTS: usize = 5;
/// Characters of a remark.
const REMARK: usize = 500;

/// A table that a blocked tool needs beside rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// A workspace at or above this path.
    Workspace(Capability),
    /// A secret of this name and publisher.
    Secret {
        slug: String,
        publisher: String,
        /// What the driver says that it reaches: for a person to look at, never
        /// for a value.
        egress: Vec<String>,
    },
    /// A service of this name.
    Service { name: String, egress: Vec<String> },
}

/// The tables that are lacking for what is missing.
pub(crate) fn lacking(view: &View<'_>, missing: &[Missing]) -> Vec<Lack> {
    let mut lacks = Vec::new();
    for one in missing.iter().filter(|one| one.why.lines_help()) {
        let asked = &one.capability;
        match asked.class() {
            Class::Workspace if view.workspace(asked).is_none() => {
                let directory = asked.path().map(|path| path.directory());
                let root = directory.and_then(|path| Capability::of(Class::Workspace, &path).ok());
                lacks.extend(root.map(Lack::Workspace));
            }
            Class::Secret if !one.mutates && view.secret(asked, one.declared_by).is_none() => {
                lacks.push(Lack::Secret {
                    slug: asked.scope(),
                    publisher: view.publisher_of(one.declared_by).to_owned(),
                    egress: egress(view),
                });
            }
            Class::External if !view.has_service(asked) => {
                let declared = view.contract.tool.declaration();
                let other = |scope: &String| {
                    Capability::of(Class::Network, scope)
                        .is_ok_and(|host| !declared.covers_one(&host))
                };
                // Every service was asked for, and there is none.
                let name = match asked.is_wildcard() {
                    true => "choose".to_owned(),
                    false => asked.scope(),
                };
                let egress = egress(view).into_iter().filter(other).collect();
                lacks.push(Lack::Service { name, egress });
            }
            _ => {}
        }
    }
    lacks
}

fn egress(view: &View<'_>) -> Vec<String> {
    let egress = view.implementation.driver.egress.iter();
    egress.map(Capability::scope).collect()
}

impl Why {
    /// Whether lines that are added can change it.
    fn lines_help(&self) -> bool {
        !matches!(
            self,
            Self::DeniedBy(_)
                | Self::NeverGranted
                | Self::SecretNotUsable
                | Self::NotChosen
                | Self::Directory(_)
        )
    }

    /// Whether a rule is among them.
    fn rule_helps(&self) -> bool {
        self.lines_help() && !matches!(self, Self::NoWorkspace | Self::NoSecret | Self::NoService)
    }
}

impl Denial {
    /// The lines to add to the policy's file for this tool, as TOML that can be
    /// appended. Where the operator has to choose a directory, a host or a
    /// variable, there is a value that gives nothing, and a comment that says so.
    /// What no line can give is a comment, too.
    #[must_use]
    pub fn lines_to_add(&self) -> String {
        let mut lines = Lines::new(self.placeholders.clone());
        lines.add(self);
        lines.write()
    }
}

/// The fewest lines that let these tools run, when they are appended to the file
/// of `policy`; empty where nothing is missing. As narrow as the declarations: one
/// rule for each tool and major version. Approval stays what it is.
///
/// Without `driver` the lines are for drivers of each contract's own publisher,
/// and change nothing about others, whether the policy binds them or not. With it
/// they are for this one driver, and bind it where it is another publisher's.
/// `policy` and `machine` are those that the routes were made with.
#[must_use]
pub fn suggest<'r, 'a: 'r>(
    tools: impl IntoIterator<Item = &'r ToolRoutes<'a>>,
    driver: Option<&str>,
    policy: &Policy,
    machine: &Machine,
) -> String {
    let mut lines = Lines::new(directories(policy));
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
                let request = Request::default().on(machine);
                let decision = crate::decide(&tool.contract, implementation, policy, &request);
                lines.bind(&tool.contract, implementation, &decision);
            }
        }
    }
    lines.write()
}

/// The directories that a placeholder must keep clear of.
fn directories(policy: &Policy) -> Vec<PathBuf> {
    let taken = policy.workspaces().iter();
    taken.map(|known| known.directory.clone()).collect()
}

/// What a `[[grant]]` is about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    publisher: String,
    tool: String,
    driver_publisher: String,
    driver: Option<String>,
}

/// What a `[[grant]]` gives.
#[derive(Default)]
struct Given {
    requires: CapabilitySet,
    mutates: CapabilitySet,
    accepts: BTreeSet<String>,
}

impl Given {
    fn add(&mut self, missing: &Missing) {
        let capability = missing.capability.clone();
        match capability.class() {
            Class::Other(class) => {
                self.accepts.insert(class.clone());
            }
            _ if missing.mutates => self.mutates.insert(capability),
            _ => self.requires.insert(capability),
        }
    }
}

/// Tables to write, each once.
struct Lines {
    /// Directories that a placeholder must keep clear of.
    taken: Vec<PathBuf>,
    workspaces: CapabilitySet,
    /// With what the drivers reach.
    secrets: BTreeMap<(String, String), BTreeSet<String>>,
    services: BTreeMap<String, BTreeSet<String>>,
    grants: BTreeMap<Key, Given>,
    /// Whole blocks.
    contexts: BTreeSet<String>,
    remarks: Vec<String>,
}

impl Lines {
    fn new(taken: Vec<PathBuf>) -> Self {
        Self {
            taken,
            workspaces: CapabilitySet::new(),
            secrets: BTreeMap::new(),
            services: BTreeMap::new(),
            grants: BTreeMap::new(),
            contexts: BTreeSet::new(),
            remarks: Vec::new(),
        }
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
                } => {
                    let known = self.secrets.entry((publisher, slug));
                    known.or_default().extend(egress);
                }
                Lack::Service { name, egress } => {
                    self.services.entry(name).or_default().extend(egress);
                }
            }
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

    fn write(mut self) -> String {
        let mut blocks = Vec::new();
        if !self.remarks.is_empty() {
            let mut block = vec!["# No line can give these:".to_owned()];
            block.append(&mut self.remarks);
            blocks.push(block);
        }
        let all = self.workspaces.clone();
        for path in &self.workspaces {
            let above = |other: &Capability| other != path && other.covers(path);
            if !all.iter().any(above) {
                let path = path.scope();
                let directory = placeholder(&path, &mut self.taken);
                blocks.push(vec![
                    "[[workspace]]".to_owned(),
                    pair("path", &path),
                    format!("{} # choose", pair("directory", &directory)),
                ]);
            }
        }
        // What a bundle says of itself is never where a secret comes from or goes
        // to: these values work only once they are replaced.
        for ((publisher, slug), egress) in &self.secrets {
            let origin = pair("origin", &format!("https://{PLACEHOLDER_HOST}"));
            blocks.push(vec![
                "[[secret]]".to_owned(),
                pair("slug", slug),
                pair("publisher", publisher),
                format!("{} # choose", pair("env", PLACEHOLDER_VARIABLE)),
                format!("{origin} {}", choose(egress)),
                format!("{} # choose", pair("header", "authorization")),
            ]);
        }
        for (name, egress) in &self.services {
            blocks.push(vec![
                "[[service]]".to_owned(),
                pair("name", name),
                format!("{} {}", list("hosts", [PLACEHOLDER_HOST]), choose(egress)),
            ]);
        }
        for (key, given) in &self.grants {
            let mut block = vec![
                "[[grant]]".to_owned(),
                pair("publisher", &key.publisher),
                pair("tool", &key.tool),
            ];
            if key.driver_publisher != key.publisher {
                block.push(pair("driver_publisher", &key.driver_publisher));
            }
            block.extend(key.driver.as_ref().map(|driver| pair("driver", driver)));
            for (name, set) in [("requires", &given.requires), ("mutates", &given.mutates)] {
                if !set.is_empty() {
                    block.push(list(name, set.iter().map(ToString::to_string)));
                }
            }
            if !given.accepts.is_empty() {
                let accepts = list("accepts", &given.accepts);
                block.push(format!("{accepts} # unknown to this host: gives nothing"));
            }
            blocks.push(block);
        }
        let blocks = blocks.into_iter().map(|block| block.join("\n") + "\n");
        let blocks: Vec<String> = blocks.chain(self.contexts).collect();
        blocks.join("\n")
    }
}

/// A directory for the operator to replace, apart from all others.
fn placeholder(path: &str, taken: &mut Vec<PathBuf>) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let name: String = path.chars().take(64).map(plain).collect();
    let name = match name.trim_matches('-') {
        "" => "root",
        name => name,
    };
    let mut number = 1_usize;
    loop {
        let directory = match number {
            1 => format!("{PLACEHOLDER_DIRECTORY}/{name}"),
            _ => format!("{PLACEHOLDER_DIRECTORY}/{name}-{number}"),
        };
        let own = PathBuf::from(&directory);
        let apart = |other: &PathBuf| !other.starts_with(&own) && !own.starts_with(other);
        // Some existing directory may hold all of them: the operator chooses
        // another one anyway.
        if taken.iter().all(apart) || number > taken.len() + 1 {
            taken.push(own);
            return directory;
        }
        number += 1;
    }
}

/// Marks a host to choose, with those that the driver declares.
fn choose(egress: &BTreeSet<String>) -> String {
    if egress.is_empty() {
        return comment("choose");
    }
    let mut hosts: Vec<String> = egress.iter().take(HOSTS).cloned().collect();
    if egress.len() > HOSTS {
        hosts.push(format!("{} more", egress.len() - HOSTS));
    }
    comment(&format!("choose; the driver reaches {}", hosts.join(", ")))
}

/// A comment on one line, in which nothing looks like something else.
pub(crate) fn comment(text: &str) -> String {
    let mut comment = String::from("# ");
    for c in text.chars().take(REMARK) {
        match c {
            c if is_plain(c) => comment.push(c),
            c => comment.extend(c.escape_unicode()),
        }
    }
    comment
}

/// Whether a character shows as itself: not one that controls, formats or
/// joins others.
fn is_plain(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

pub(crate) fn pair(key: &str, value: &str) -> String {
    format!("{key} = {}", text(value))
}

pub(crate) fn list<T: AsRef<str>>(key: &str, values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| text(value.as_ref()))
        .collect();
    format!("{key} = [{}]", values.join(", "))
}

/// A TOML basic string.
pub(crate) fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if is_plain(c) => quoted.push(c),
            c => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}
