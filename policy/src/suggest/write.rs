//! Writes the tables of a policy that blocked tools lack, with the operator's choices.

use std::collections::BTreeSet;
use std::path::PathBuf;

use toolward_contract::capability::Capability;

use super::{ChosenLines, GrantParts, OpenChoice, SecretChoice, SuggestedLines};
use crate::grant::SecretPosition;
use crate::toml_text::{
    PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE, comment, list, pair,
};

/// The most hosts of a driver that a comment names.
const MAX_SHOWN_HOSTS: usize = 5;

impl SuggestedLines {
    pub(super) fn write(mut self) -> ChosenLines {
        let mut blocks = Vec::new();
        if !self.remarks.is_empty() {
            let title = "# No line can give these:".to_owned();
            blocks.push([vec![title], std::mem::take(&mut self.remarks)].concat());
        }
        let mut open = Vec::new();
        blocks.extend(self.workspace_blocks(&mut open));
        blocks.extend(self.secret_blocks(&mut open));
        blocks.extend(self.service_blocks(&mut open));
        blocks.extend(self.grant_blocks());
        let whole = self.programs.iter().chain(&self.contexts);
        if whole.clone().any(|tables| tables.contains("# choose")) {
            open.push(OpenChoice::Tables);
        }
        let blocks = blocks.into_iter().map(|block| block.join("\n") + "\n");
        let blocks: Vec<String> = blocks.chain(whole.cloned()).collect();
        ChosenLines {
            lines: blocks.join("\n"),
            unused: self.unused(),
            ambiguous: self.ambiguous(),
            narrower: None,
            open,
        }
    }

    fn workspace_blocks(&self, open: &mut Vec<OpenChoice>) -> Vec<Vec<String>> {
        let mut blocks = Vec::new();
        let mut taken = self.taken.clone();
        for path in &self.workspaces {
            let above = |other: &Capability| other != path && other.covers(path);
            let is_below = self.workspaces.iter().any(above);
            let path = path.scope();
            let directory = match self.choices.workspaces.get(&*path) {
                Some(chosen) => pair("directory", chosen),
                None if is_below => continue,
                None => {
                    open.push(OpenChoice::Workspace(path.to_string()));
                    let directory = placeholder(&path, &mut taken);
                    format!("{} # choose", pair("directory", &directory))
                }
            };
            blocks.push(vec![
                "[[workspace]]".to_owned(),
                pair("path", &path),
                directory,
            ]);
        }
        blocks
    }

    /// A bundle must never decide where a secret comes from or is sent, so these values work only
    /// once the operator has chosen them.
    fn secret_blocks(&self, open: &mut Vec<OpenChoice>) -> Vec<Vec<String>> {
        let mut blocks = Vec::new();
        for ((publisher, slug), secret) in &self.secrets {
            let (name, other) = match &secret.position {
                Some(SecretPosition::Query(name)) => (pair("query", name), "header"),
                Some(SecretPosition::Header(name)) => (pair("header", name), "query"),
                None => (pair("header", "authorization"), "query"),
            };
            let mut block = vec![
                "[[secret]]".to_owned(),
                pair("slug", slug),
                pair("publisher", publisher),
            ];
            if let Some(chosen) = self.chosen_secret(publisher, slug) {
                let place = pair(chosen.source, &chosen.place);
                block.extend([place, pair("origin", &chosen.origin), name]);
            } else {
                open.push(OpenChoice::Secret {
                    publisher: publisher.clone(),
                    slug: slug.clone(),
                    egress: secret.egress.clone(),
                });
                let origin = pair("origin", &format!("https://{PLACEHOLDER_HOST}"));
                block.extend([
                    format!("{} # choose", pair("env", PLACEHOLDER_VARIABLE)),
                    format!("{origin} {}", choose(&secret.egress)),
                    format!("{name} # choose, or `{other}`"),
                ]);
            }
            if !secret.methods.is_empty() {
                block.push(list("methods", &secret.methods));
            }
            blocks.push(block);
        }
        blocks
    }

    fn service_blocks(&self, open: &mut Vec<OpenChoice>) -> Vec<Vec<String>> {
        let mut blocks = Vec::new();
        for (name, egress) in &self.services {
            let hosts = match self.chosen_hosts(name).as_slice() {
                [] => {
                    open.push(OpenChoice::Service {
                        name: name.clone(),
                        egress: egress.clone(),
                    });
                    format!("{} {}", list("hosts", [PLACEHOLDER_HOST]), choose(egress))
                }
                chosen => list("hosts", chosen),
            };
            blocks.push(vec!["[[service]]".to_owned(), pair("name", name), hosts]);
        }
        blocks
    }

    fn grant_blocks(&self) -> Vec<Vec<String>> {
        let blocks = self.grants.iter().map(|(key, given)| {
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
            if given.partial {
                block.push(
                    "partial = true # served without its other hosts and workspaces".to_owned(),
                );
            }
            if given.has_network() && !self.choices.addresses.is_empty() {
                block.push(list("addresses", &self.choices.addresses));
            }
            if !given.accepts.is_empty() {
                let accepts = list("accepts", &given.accepts);
                block.push(format!("{accepts} # unknown to this host: gives nothing"));
            }
            if self.preapproved {
                block.push("preapproved = true".to_owned());
            }
            block
        });
        blocks.collect()
    }

    /// The publishers that have a secret of this name in the lines.
    fn publishers_of(&self, slug: &str) -> Vec<&str> {
        let known = self.secrets.keys().filter(|(_, known)| known == slug);
        known.map(|(publisher, _)| publisher.as_str()).collect()
    }

    /// The choice for a publisher's secret. A choice without a publisher applies only if the name
    /// is unique, since a credential for one publisher must not reach another.
    fn chosen_secret(&self, publisher: &str, slug: &str) -> Option<&SecretChoice> {
        let of = |publisher: Option<&str>| {
            let key = (publisher.map(str::to_owned), slug.to_owned());
            self.choices.secrets.get(&key)
        };
        let is_only = self.publishers_of(slug).len() == 1;
        of(Some(publisher)).or_else(|| of(None).filter(|_| is_only))
    }

    /// The hosts that were chosen for a service.
    fn chosen_hosts(&self, name: &str) -> Vec<&str> {
        let is_only = self.services.len() == 1;
        let chosen = self
            .choices
            .hosts
            .iter()
            .filter(|(service, _)| match service {
                Some(service) => service == name,
                None => is_only,
            });
        chosen.map(|(_, host)| host.as_str()).collect()
    }

    /// The choices that no line uses.
    fn unused(&self) -> Vec<String> {
        let choices = &self.choices;
        let named = |path: &str| self.workspaces.iter().any(|one| *one.scope() == *path);
        let workspaces = choices.workspaces.keys().filter(|path| !named(path));
        let secrets = choices.secrets.keys().filter_map(|(publisher, slug)| {
            let known = self.publishers_of(slug);
            match publisher {
                None => known.is_empty().then(|| slug.clone()),
                Some(publisher) if known.contains(&publisher.as_str()) => None,
                Some(publisher) => Some(format!("{publisher}:{slug}")),
            }
        });
        let hosts = choices
            .hosts
            .iter()
            .filter_map(|(service, host)| match service {
                None => self.services.is_empty().then(|| host.clone()),
                Some(service) if self.services.contains_key(service) => None,
                Some(service) => Some(format!("{service}={host}")),
            });
        let network = self.grants.values().any(GrantParts::has_network);
        let addresses = choices.addresses.iter().filter(|_| !network);
        let all = workspaces.chain(addresses).cloned();
        all.chain(secrets).chain(hosts).collect()
    }

    /// The choices that could be meant for several lines.
    fn ambiguous(&self) -> Vec<String> {
        let choices = &self.choices;
        let secrets = choices.secrets.keys().filter_map(|(publisher, slug)| {
            let known = self.publishers_of(slug);
            (publisher.is_none() && known.len() > 1).then(|| {
                format!(
                    "expected PUBLISHER:{slug}, since {} each have a secret {slug}; found {slug}",
                    known.join(", ")
                )
            })
        });
        let unnamed = (choices.hosts.iter())
            .filter(|(service, _)| service.is_none() && self.services.len() > 1);
        let hosts = unnamed.map(|(_, host)| {
            let names: Vec<&str> = self.services.keys().map(String::as_str).collect();
            format!(
                "expected SERVICE={host}, since there are the services {}; found {host}",
                names.join(", ")
            )
        });
        secrets.chain(hosts).collect()
    }
}

/// A placeholder directory for the operator to replace. If possible, it overlaps no directory in
/// `taken`.
fn placeholder(path: &str, taken: &mut Vec<PathBuf>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = path.chars().take(64);
    let name: String = name.map(|c| if plain(c) { c } else { '-' }).collect();
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
        // If an existing directory contains all candidates, the last one is taken. The operator
        // replaces it anyway.
        if taken.iter().all(apart) || number > taken.len() + 1 {
            taken.push(own);
            return directory;
        }
        number += 1;
    }
}

/// A comment that marks a host to choose, and names the hosts that the driver declares.
fn choose(egress: &BTreeSet<String>) -> String {
    if egress.is_empty() {
        return comment("choose");
    }
    let mut hosts: Vec<String> = egress.iter().take(MAX_SHOWN_HOSTS).cloned().collect();
    if egress.len() > MAX_SHOWN_HOSTS {
        hosts.push(format!("{} more", egress.len() - MAX_SHOWN_HOSTS));
    }
    comment(&format!("choose; the driver reaches {}", hosts.join(", ")))
}
