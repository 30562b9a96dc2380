//! The lines that an operator would add to a policy: of one blocked tool, or
//! the fewest for a whole bundle. Only for people: an agent is never shown them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use toolward_contract::capability::{Capability, CapabilitySet, Class};

use crate::decision::{Contract, Decision, Denial, Implementation, Missing, Request, Why};
use crate::declared::DeclaredBy;
use crate::examine::View;
use crate::name::Publisher;
use crate::policy::Policy;
use crate::rule::PLACEHOLDER_DIRECTORY;

/// A host that is nobody's (RFC 2606, section 2), where an operator has to
/// choose one.
const PLACEHOLDER_HOST: &str = "host.invalid";

/// A table that a blocked tool needs beside rules.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// A workspace at or above this path.
    Workspace(Capability),
    /// A secret of this name and publisher, and a host where it may go out.
    Secret {
        slug: String,
        publisher: String,
        host: String,
    },
    /// A service of this name, and hosts that it may have.
    Service { name: String, hosts: Vec<String> },
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
                let host = egress(view).into_iter().find(|host| !host.contains('*'));
                lacks.push(Lack::Secret {
                    slug: asked.scope(),
                    publisher: view.publisher_of(one.declared_by).to_owned(),
                    host: host.unwrap_or_else(|| PLACEHOLDER_HOST.to_owned()),
                });
            }
            Class::External if !view.has_service(asked) => {
                let declared = view.contract.tool.declaration();
                let other = |scope: &String| {
                    Capability::of(Class::Network, scope)
                        .is_ok_and(|host| !declared.covers_one(&host))
                };
                let mut hosts: Vec<String> = egress(view).into_iter().filter(other).collect();
                if hosts.is_empty() {
                    hosts.push(PLACEHOLDER_HOST.to_owned());
                }
                // Every service was asked for, and there is none.
                let name = match asked.is_wildcard() {
                    true => "choose".to_owned(),
                    false => asked.scope(),
                };
                lacks.push(Lack::Service { name, hosts });
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
            Self::DeniedBy(_) | Self::NeverGranted | Self::UnknownClass | Self::SecretNotUsable
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
    /// variable, a comment says so. What no line can give is a comment, too.
    #[must_use]
    pub fn lines_to_add(&self) -> String {
        let mut lines = Lines::new(self.placeholders.clone());
        lines.add(self);
        lines.write()
    }
}

/// The fewest lines that let these drivers carry out these contracts, one pair
/// at a time, when they are appended to the file of `policy`; empty where
/// nothing is missing. As narrow as the declarations: one rule for each tool
/// and major version. Approval stays what it is.
#[must_use]
pub fn suggest<'a>(
    pairs: impl IntoIterator<Item = (Contract<'a>, Implementation<'a>)>,
    policy: &Policy,
) -> String {
    let taken = policy.workspaces().iter();
    let mut lines = Lines::new(taken.map(|known| known.directory.clone()).collect());
    for (contract, implementation) in pairs {
        let request = Request::default();
        if let Decision::Deny(denial) = crate::decide(&contract, &implementation, policy, &request)
        {
            lines.add(&denial);
        }
    }
    lines.write()
}

/// What a `[[grant]]` is about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    publisher: String,
    tool: String,
    driver_publisher: String,
    driver: Option<String>,
}

/// Tables to write, each once.
struct Lines {
    /// Directories that a placeholder must keep clear of.
    taken: Vec<PathBuf>,
    workspaces: CapabilitySet,
    secrets: BTreeMap<(String, String), String>,
    services: BTreeMap<String, BTreeSet<String>>,
    grants: BTreeMap<Key, [CapabilitySet; 2]>,
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
                    host,
                } => {
                    self.secrets.entry((publisher, slug)).or_insert(host);
                }
                Lack::Service { name, hosts } => {
                    self.services.entry(name).or_default().extend(hosts);
                }
            }
        }
        for missing in &denial.missing {
            if missing.why.rule_helps() {
                let key = Key {
                    publisher: denial.publisher.clone(),
                    tool: denial.tool.clone(),
                    driver_publisher: denial.driver_publisher.clone(),
                    driver: match missing.declared_by {
                        DeclaredBy::Contract => None,
                        DeclaredBy::Driver => Some(denial.driver.clone()),
                    },
                };
                let [requires, mutates] = self.grants.entry(key).or_default();
                let set = if missing.mutates { mutates } else { requires };
                set.insert(missing.capability.clone());
            } else if !missing.why.lines_help() {
                self.remark(denial, &missing.to_string());
            }
        }
    }

    fn remark(&mut self, denial: &Denial, text: &str) {
        let remark = format!("# {}: {text}", denial.tool);
        let remark = remark.replace(char::is_control, " ");
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
        for ((publisher, slug), host) in &self.secrets {
            blocks.push(vec![
                "[[secret]]".to_owned(),
                pair("slug", slug),
                pair("publisher", publisher),
                format!("{} # choose", pair("env", &variable(slug))),
                format!("{} # choose", pair("origin", &format!("https://{host}"))),
                format!("{} # choose", pair("header", "authorization")),
            ]);
        }
        for (name, hosts) in &self.services {
            blocks.push(vec![
                "[[service]]".to_owned(),
                pair("name", name),
                format!("{} # choose", list("hosts", hosts)),
            ]);
        }
        for (key, [requires, mutates]) in &self.grants {
            let mut block = vec![
                "[[grant]]".to_owned(),
                pair("publisher", &key.publisher),
                pair("tool", &key.tool),
            ];
            if key.driver_publisher != key.publisher {
                block.push(pair("driver_publisher", &key.driver_publisher));
            }
            block.extend(key.driver.as_ref().map(|driver| pair("driver", driver)));
            for (name, set) in [("requires", requires), ("mutates", mutates)] {
                if !set.is_empty() {
                    block.push(list(name, set.iter().map(ToString::to_string)));
                }
            }
            blocks.push(block);
        }
        let blocks: Vec<String> = blocks
            .into_iter()
            .map(|block| block.join("\n") + "\n")
            .collect();
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

/// The environment variable that a secret's name suggests.
fn variable(slug: &str) -> String {
    let upper = slug.to_ascii_uppercase();
    let name = upper.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("SECRET_{name}");
    }
    name
}

fn pair(key: &str, value: &str) -> String {
    format!("{key} = {}", text(value))
}

fn list<T: AsRef<str>>(key: &str, values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| text(value.as_ref()))
        .collect();
    format!("{key} = [{}]", values.join(", "))
}

/// A TOML basic string.
fn text(value: &str) -> String {
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
