//! A draft of the policy that imported tools need. It grants what their contracts declare and nothing else; where a
//! secret comes from and goes to is a person's choice, as in the lines that `policy suggest` writes.

use std::collections::{BTreeMap, BTreeSet};

use toolward_bundle::text::visible_line;
use toolward_policy::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};

/// Characters of one comment.
const MAX_COMMENT: usize = 300;

/// The tables of a draft.
#[derive(Debug, Default)]
pub(super) struct Draft {
    remarks: Vec<String>,
    workspaces: BTreeSet<String>,
    secrets: BTreeMap<String, Secret>,
    grants: Vec<Granted>,
}

/// What is known of a secret.
#[derive(Debug, Default)]
struct Secret {
    hosts: BTreeSet<String>,
    methods: BTreeSet<&'static str>,
    /// Where the driver puts it; `None` where it leaves that to the policy.
    header: Option<String>,
}

/// What one tool gets.
#[derive(Debug, Default)]
pub(super) struct Granted {
    pub(super) tool: String,
    pub(super) requires: Vec<String>,
    pub(super) mutates: Vec<String>,
}

impl Draft {
    /// A comment before all tables.
    pub(super) fn remark(&mut self, text: &str) {
        let remark = format!("# {}", visible_line(text, MAX_COMMENT));
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// A path that tools know, whose directory a person chooses.
    pub(super) fn workspace(&mut self, path: &str) {
        self.workspaces.insert(path.to_owned());
    }

    /// A secret that goes to a host with a method.
    pub(super) fn secret(
        &mut self,
        slug: &str,
        host: &str,
        method: &'static str,
        header: Option<&str>,
    ) {
        let known = self.secrets.entry(slug.to_owned()).or_default();
        known.hosts.insert(host.to_owned());
        known.methods.insert(method);
        if known.header.is_none() {
            known.header = header.map(str::to_owned);
        }
    }

    pub(super) fn grant(&mut self, granted: Granted) {
        if !granted.requires.is_empty() || !granted.mutates.is_empty() {
            self.grants.push(granted);
        }
    }

    /// The draft as TOML; empty where nothing is needed.
    pub(super) fn write(&self, publisher: &str) -> String {
        let mut blocks: Vec<Vec<String>> = Vec::new();
        if !self.remarks.is_empty() {
            blocks.push(self.remarks.clone());
        }
        for (number, path) in self.workspaces.iter().enumerate() {
            let directory = text(&format!("{PLACEHOLDER_DIRECTORY}/{}", number + 1));
            blocks.push(vec![
                "[[workspace]]".to_owned(),
                format!("path = {}", text(path)),
                format!("directory = {directory} # choose"),
            ]);
        }
        for (slug, secret) in &self.secrets {
            let hosts: Vec<&str> = secret.hosts.iter().map(String::as_str).collect();
            let hosts = visible_line(&hosts.join(", "), MAX_COMMENT);
            let header = secret.header.as_deref().unwrap_or("authorization");
            let or_query = if secret.header.is_none() {
                " # choose, or `query`"
            } else {
                ""
            };
            blocks.push(vec![
                "[[secret]]".to_owned(),
                format!("slug = {}", text(slug)),
                format!("publisher = {}", text(publisher)),
                format!("env = {} # choose", text(PLACEHOLDER_VARIABLE)),
                format!(
                    "origin = {} # choose; the driver reaches {hosts}",
                    text(&format!("https://{PLACEHOLDER_HOST}"))
                ),
                format!("header = {}{or_query}", text(&header.to_ascii_lowercase())),
                format!("methods = {}", list(secret.methods.iter().copied())),
            ]);
        }
        for granted in &self.grants {
            let mut block = vec![
                "[[grant]]".to_owned(),
                format!("publisher = {}", text(publisher)),
                format!("tool = {}", text(&granted.tool)),
            ];
            for (key, all) in [
                ("requires", &granted.requires),
                ("mutates", &granted.mutates),
            ] {
                if !all.is_empty() {
                    let all = list(all.iter().map(String::as_str));
                    block.push(format!("{key} = {all}"));
                }
            }
            blocks.push(block);
        }
        let blocks = blocks.into_iter().map(|block| block.join("\n") + "\n");
        blocks.collect::<Vec<_>>().join("\n")
    }
}

fn text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = all.map(text).collect();
    format!("[{}]", all.join(", "))
}
