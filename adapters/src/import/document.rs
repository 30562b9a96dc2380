//! What imported bundles are written with: front matter by a serialiser, and `bundle.toml`. Foreign text passes
//! [`clean`] or [`line`] before it gets here. And a [`Draft`] of the policy that imported tools need.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use toolward_bundle::text::{is_hidden, visible, visible_line};
use toolward_policy::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};
use toolward_signing::id::Id;
use toolward_signing::timestamp::Timestamp;

use super::ImportError;

/// Longest description of a contract, in characters.
pub(super) const MAX_DESCRIPTION: usize = 2000;

/// A new bundle.
#[derive(Debug, Clone, Default)]
pub struct NewBundle {
    /// Its id.
    pub id: String,
    /// Who will sign it.
    pub publisher: String,
    /// `created`, in seconds since 1970.
    pub created: i64,
}

impl NewBundle {
    /// `bundle.toml` of its first release; `None` if the time can't be written.
    pub(crate) fn toml(&self) -> Option<String> {
        let created = Timestamp::from_unix(self.created).ok()?;
        Some(format!(
            "id = {}\nversion = \"0.1.0\"\n# Rises with every release, so that going back can be noticed.\n\
             sequence = 1\npublisher = {}\ncreated = {}\n",
            text(&self.id),
            text(&self.publisher),
            text(&created.to_string()),
        ))
    }

    /// The file.
    pub(super) fn file(&self) -> Result<(String, Vec<u8>), ImportError> {
        let toml = self.toml().ok_or(ImportError::Time)?;
        Ok(("bundle.toml".to_owned(), toml.into_bytes()))
    }

    /// Checks its names; `id` is what its id is called.
    pub(super) fn check(&self, id: &str) -> Result<(), ImportError> {
        check_id(id, &self.id)?;
        check_id("publisher", &self.publisher)
    }
}

/// Checks that `name` is an id; `what` it is.
pub(super) fn check_id(what: &str, name: &str) -> Result<(), ImportError> {
    let parsed = Id::parse(name).map(drop);
    parsed.map_err(|source| ImportError::Name(what.to_owned(), source))
}

/// Foreign text of several lines, in which nothing is hidden.
pub(super) fn clean(text: &str) -> String {
    visible(text, usize::MAX).trim().to_owned()
}

/// Foreign text on one line, in which nothing is hidden.
pub(super) fn line(text: &str) -> String {
    visible_line(text.trim(), usize::MAX)
}

/// A value whose texts are all cleaned, for readers that act on none of them.
pub(super) fn lines(value: &Value) -> Value {
    match value {
        Value::String(text) => line(text).into(),
        Value::Array(items) => items.iter().map(lines).collect(),
        Value::Object(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .map(|(key, value)| (line(key), lines(value)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// A value in which nothing is hidden: prose, which stands below these keys, is cleaned. The rest can't be written
/// otherwise without a change of its meaning, so `None` where something is hidden there.
pub(super) fn unhidden(value: &Value, prose: &[&str]) -> Option<Value> {
    let is_fine = |text: &str| !text.chars().any(is_hidden);
    Some(match value {
        Value::Object(members) => {
            let mut cleaned = Map::new();
            for (key, value) in members {
                let value = match value {
                    Value::String(text) if prose.contains(&key.as_str()) => clean(text).into(),
                    value => unhidden(value, prose)?,
                };
                cleaned.insert(is_fine(key).then(|| key.clone())?, value);
            }
            Value::Object(cleaned)
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| unhidden(item, prose));
            Value::Array(items.collect::<Option<_>>()?)
        }
        Value::String(text) => is_fine(text).then(|| Value::String(text.clone()))?,
        other => other.clone(),
    })
}

/// The first characters of a text; the last one shows that it was longer.
pub(super) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept = text.chars().take(characters.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A document with front matter.
pub(super) fn document(fields: &Value, body: &str) -> String {
    let mut text = "---\n".to_owned();
    block(fields, 0, &mut text);
    text.push_str("---\n");
    if !body.is_empty() {
        text.push('\n');
        text.push_str(body);
    }
    text
}

/// Writes a value as a block of YAML. Texts are written as in JSON, which YAML reads alike.
fn block(value: &Value, indent: usize, text: &mut String) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let key = key(name);
                if is_flat(value) {
                    text.push_str(&format!("{spaces}{key}: {}\n", flow(value)));
                    continue;
                }
                text.push_str(&format!("{spaces}{key}:\n"));
                block(value, indent + 2, text);
            }
        }
        Value::Array(items) => {
            for item in items {
                if is_flat(item) {
                    text.push_str(&format!("{spaces}- {}\n", flow(item)));
                    continue;
                }
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                text.push_str(&format!("{spaces}- {}", inner.trim_start_matches(' ')));
            }
        }
        scalar => text.push_str(&format!("{spaces}{}\n", flow(scalar))),
    }
}

/// Whether a value stands on one line.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    }
}

/// A value as JSON, without the one character that YAML does not take and JSON does.
fn flow(value: &Value) -> String {
    value.to_string().replace('\u{7f}', "\\u007f")
}

/// A key, quoted where a reader of YAML could take it for something else.
fn key(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let letter = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '$');
    match letter && name.bytes().all(plain) && !words.contains(&&*name.to_ascii_lowercase()) {
        true => name.to_owned(),
        false => flow(&Value::from(name)),
    }
}

/// Characters of one comment.
const MAX_COMMENT: usize = 300;

/// A draft of a policy. It grants what contracts declare and nothing else; where a
/// secret comes from and goes to is a person's choice, as in the lines that `policy suggest` writes.
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
        let owner = text(publisher);
        let mut blocks = Vec::new();
        if !self.remarks.is_empty() {
            blocks.push(self.remarks.join("\n"));
        }
        for (number, path) in self.workspaces.iter().enumerate() {
            let directory = text(&format!("{PLACEHOLDER_DIRECTORY}/{}", number + 1));
            let path = text(path);
            blocks.push(format!(
                "[[workspace]]\npath = {path}\ndirectory = {directory} # choose"
            ));
        }
        for (slug, secret) in &self.secrets {
            let hosts: Vec<&str> = secret.hosts.iter().map(String::as_str).collect();
            let hosts = visible_line(&hosts.join(", "), MAX_COMMENT);
            let (header, or_query) = match &secret.header {
                Some(header) => (text(&header.to_ascii_lowercase()), ""),
                None => (text("authorization"), " # choose, or `query`"),
            };
            blocks.push(format!(
                "[[secret]]\nslug = {}\npublisher = {owner}\nenv = {} # choose\norigin = {} # choose; the driver reaches {hosts}\n\
                 header = {header}{or_query}\nmethods = {}",
                text(slug),
                text(PLACEHOLDER_VARIABLE),
                text(&format!("https://{PLACEHOLDER_HOST}")),
                list(secret.methods.iter().copied()),
            ));
        }
        for granted in &self.grants {
            let tool = text(&granted.tool);
            let mut block = format!("[[grant]]\npublisher = {owner}\ntool = {tool}");
            let lists = [
                ("requires", &granted.requires),
                ("mutates", &granted.mutates),
            ];
            for (key, all) in lists.into_iter().filter(|(_, all)| !all.is_empty()) {
                let all = list(all.iter().map(String::as_str));
                block.push_str(&format!("\n{key} = {all}"));
            }
            blocks.push(block);
        }
        let blocks = blocks.into_iter().map(|block| block + "\n");
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
