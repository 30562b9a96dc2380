//! Writes the parts of imported bundles: documents with front matter, `bundle.toml`, and a
//! [`Draft`] of the policy that the tools need. Before another host's text is written, it must pass
//! [`clean`], [`line`] or [`unhidden`].

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
    /// The name of the publisher.
    pub publisher: String,
    /// `created`, in seconds since 1970.
    pub created: i64,
}

impl NewBundle {
    /// Returns the `bundle.toml` of its first release; `None` if `created` can't be written as a
    /// time.
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

    /// Returns the file `bundle.toml`.
    pub(super) fn file(&self) -> Result<(String, Vec<u8>), ImportError> {
        let toml = self.toml().ok_or(ImportError::Time)?;
        Ok(("bundle.toml".to_owned(), toml.into_bytes()))
    }

    /// Checks its id and its publisher. `id` describes the id in errors.
    pub(super) fn check(&self, id: &str) -> Result<(), ImportError> {
        check_id(id, &self.id)?;
        check_id("publisher", &self.publisher)
    }
}

/// Checks that `name` is an id. `what` describes it in errors.
pub(super) fn check_id(what: &str, name: &str) -> Result<(), ImportError> {
    let parsed = Id::parse(name).map(drop);
    parsed.map_err(|source| ImportError::Name(what.to_owned(), source))
}

/// Returns another host's text, with hidden characters escaped, except line feeds and tabs.
pub(super) fn clean(text: &str) -> String {
    visible(text, usize::MAX).trim().to_owned()
}

/// Returns another host's text on one line, with hidden characters escaped.
pub(super) fn line(text: &str) -> String {
    visible_line(text.trim(), usize::MAX)
}

/// Applies [`line`] to all texts of a value, including keys.
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

/// Applies [`clean`] to the texts of the keys in `prose`. Any other text can't be cleaned without
/// changing its meaning, so the result is `None` if such a text has hidden characters.
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

/// Returns at most this many characters of a text. If it is longer, the last character is `…`.
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

/// Writes a value as a block of YAML. Texts are written as in JSON, which YAML reads in the same
/// way.
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

/// Whether a value is written on one line.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items
            .iter()
            .all(|item| !item.is_object() && !item.is_array()),
        _ => true,
    }
}

/// Writes a value as JSON, and escapes the one character that JSON allows and YAML does not.
fn flow(value: &Value) -> String {
    value.to_string().replace('\u{7f}', "\\u007f")
}

/// Writes a key, in quotes if YAML could read it as something else.
fn key(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let letter = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '$');
    match letter && name.bytes().all(plain) && !words.contains(&&*name.to_ascii_lowercase()) {
        true => name.to_owned(),
        false => flow(&Value::from(name)),
    }
}

/// The most characters of a comment.
const MAX_COMMENT: usize = 300;

/// A draft of a policy. It grants only what contracts declare. A person must choose the source and
/// the destination of each secret, as in the output of `policy suggest`.
#[derive(Debug, Default)]
pub(super) struct Draft {
    remarks: Vec<String>,
    workspaces: BTreeSet<String>,
    secrets: BTreeMap<String, Secret>,
    grants: Vec<Granted>,
}

/// The known facts about a secret.
#[derive(Debug, Default)]
struct Secret {
    hosts: BTreeSet<String>,
    methods: BTreeSet<&'static str>,
    /// The header in which the driver sends the secret; `None` if the driver leaves that to the
    /// policy.
    header: Option<String>,
}

/// The grants of one tool.
#[derive(Debug, Default)]
pub(super) struct Granted {
    pub(super) tool: String,
    pub(super) requires: Vec<String>,
    pub(super) mutates: Vec<String>,
}

impl Draft {
    /// Adds a comment before all tables.
    pub(super) fn remark(&mut self, text: &str) {
        let remark = format!("# {}", visible_line(text, MAX_COMMENT));
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Adds a path that tools use. A person must choose the directory that is mounted there.
    pub(super) fn workspace(&mut self, path: &str) {
        self.workspaces.insert(path.to_owned());
    }

    /// Adds a secret that is sent to a host with a method.
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

    /// Writes the draft as TOML. The text is empty if the tools need nothing.
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
