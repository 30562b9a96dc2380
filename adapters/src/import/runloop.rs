//! Makes a bundle from a tools.json, version 1, of Runloop (another host for agents). Hidden
//! characters in the document's prose are escaped. Otherwise the document stays the same, since
//! Toolward's host can read version 1. `policy.caps` contains Runloop's grants to an agent: TOML
//! with one table of lists and booleans.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use toolward_bundle::documents::Documents;
use toolward_bundle::files::Files;
use toolward_bundle::index::{self, TOOLS_JSON};
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::{Index, IndexEntry, Transport};
use toolward_contract::json;
use toolward_support::fields::{without_mark, without_mark_bytes};

use super::document::{Draft, Granted, NewBundle, unhidden};
use super::{ImportError, Imported, Remark};

/// The files about tools in an agent's directory.
#[derive(Debug, Clone, Default)]
pub struct RunloopFiles {
    /// `tools.json`.
    pub tools_json: Vec<u8>,
    /// The files of `schemas`, by name. `schema:NAME` refers to `NAME.json`.
    pub schemas: BTreeMap<String, Vec<u8>>,
    /// `policy.caps`, if it exists.
    pub policy_caps: Option<String>,
}

/// Makes a bundle from a tools.json of version 1. Also makes a draft of the policy with the grants
/// that its tools need and `policy.caps` allows.
///
/// # Errors
///
/// If a document or `policy.caps` is not valid, the document has another version or no tools, the
/// id or the publisher is not an id, or the bundle's time can't be written.
pub fn runloop(given: &RunloopFiles, bundle: &NewBundle) -> Result<Imported, ImportError> {
    bundle.check("id")?;
    let caps = given.policy_caps.as_deref().map(Caps::parse).transpose();
    let caps = caps.map_err(ImportError::Caps)?;
    let mut files = Files::new();
    put(&mut files, TOOLS_JSON.to_owned(), &given.tools_json)?;
    for (name, bytes) in &given.schemas {
        put(&mut files, format!("schemas/{name}"), bytes)?;
    }
    let documents = Documents::read(&files);
    let mut found = Vec::new();
    let index = index::check(&files, &documents, &mut found);
    if found.iter().any(Diagnostic::is_error) {
        found.retain(Diagnostic::is_error);
        return Err(ImportError::Definition(found));
    }
    let index = index.filter(|index| index.version == 1 && !index.tools.is_empty());
    let Some(index) = index else {
        return Err(ImportError::NoTool(Remark {
            name: TOOLS_JSON.to_owned(),
            message: "it is not of version 1, or has no tools".to_owned(),
            code: "import-nothing-offered",
        }));
    };
    let mut imported = Imported {
        files: vec![bundle.file()?],
        tools: index.tools.iter().map(|one| one.id.to_string()).collect(),
        ..Imported::default()
    };
    let written = files.into_iter();
    imported
        .files
        .extend(written.map(|(name, bytes)| (name, bytes.to_vec())));
    // Only warnings are left, for example about entries whose transport is denied.
    for warning in found {
        let entry = index.tools.iter().find(|one| one.at == warning.position());
        imported.remarks.push(Remark {
            name: entry.map_or_else(|| TOOLS_JSON.to_owned(), |one| one.id.to_string()),
            code: warning.code,
            message: warning.message,
        });
    }
    imported.policy = draft(&index, caps.as_ref()).write(&bundle.publisher);
    Ok(imported)
}

/// Adds a document without hidden characters, so that it can be signed.
fn put(files: &mut Files, name: String, bytes: &[u8]) -> Result<(), ImportError> {
    const PROSE: [&str; 3] = ["title", "description", "$comment"];
    let bytes = without_mark_bytes(bytes);
    let Ok(value) = json::parse(bytes, &json::Limits::default()) else {
        // `runloop` reports the error and its position when it reads the documents.
        files.insert(name, Arc::from(bytes));
        return Ok(());
    };
    let cleaned: Value =
        unhidden(&value, &PROSE).ok_or_else(|| ImportError::Hidden(name.clone()))?;
    let bytes = match cleaned == value {
        true => bytes.to_vec(),
        false => format!("{cleaned:#}\n").into_bytes(),
    };
    files.insert(name, bytes.into());
    Ok(())
}

/// Drafts grants of the capabilities that the tools declare and `policy.caps` covers. A comment in
/// the draft names each declared capability that is not covered.
fn draft(index: &Index, caps: Option<&Caps>) -> Draft {
    let mut draft = Draft::default();
    if caps.is_none() {
        draft.remark("There was no policy.caps: this is what the tools declare.");
    }
    for text in caps.iter().flat_map(|caps| &caps.untranslated) {
        draft.remark(text);
    }
    for (entry, contract) in index.tools.iter().zip(index.contracts()) {
        if let Some(Err(denied)) = entry.driver(&contract, TOOLS_JSON) {
            draft.remark(&format!(
                "{} gets nothing: its transport is denied, {}",
                entry.id, denied.message
            ));
            continue;
        }
        if let Transport::Exec { command, .. } = &entry.transport {
            draft.remark(&format!(
                "{} runs the program {command}, which an operator has to allow by name",
                entry.id
            ));
        }
        let mut kept = |set: &CapabilitySet| -> Vec<String> {
            let covered = set.iter().filter(|one| {
                let covered = caps.is_none_or(|caps| caps.covers(one));
                if !covered {
                    draft.remark(&format!(
                        "{} needs {one}, which policy.caps does not give: it stays blocked",
                        entry.id
                    ));
                }
                covered
            });
            covered.map(ToString::to_string).collect()
        };
        let requires = kept(&contract.requires.capabilities);
        let mutates = kept(&contract.mutates);
        for set in [&contract.requires.capabilities, &contract.mutates] {
            for path in set.iter().filter(|one| *one.class() == Class::Workspace) {
                if caps.is_none_or(|caps| caps.covers(path)) {
                    draft.workspace(&path.scope());
                }
            }
        }
        secrets(entry, &mut draft);
        draft.grant(Granted {
            tool: entry.id.to_string(),
            requires,
            mutates,
        });
    }
    draft
}

/// Adds the secrets that an http transport sends to its host.
fn secrets(entry: &IndexEntry, draft: &mut Draft) {
    let Transport::Http {
        method,
        url,
        headers,
    } = &entry.transport
    else {
        return;
    };
    let host = url.strip_prefix("https://").unwrap_or_default();
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host =
        Capability::of(Class::Network, host).map_or_else(|_| String::new(), |host| host.scope());
    let method = toolward_contract::driver::Method::parse(method).map_or("GET", |one| one.as_str());
    for slug in &entry.secrets {
        let placed = headers.iter().find(|(_, value)| {
            ["secret:", "secret.", ""]
                .iter()
                .any(|before| value.contains(&format!("${{{before}{slug}}}")))
        });
        let header = placed.map(|(name, _)| name.as_str());
        draft.secret(slug, &host, method, header);
    }
}

/// The largest `policy.caps`, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// The grants in `policy.caps`.
#[derive(Debug)]
struct Caps {
    /// The granted capabilities by family, such as `net`. `None` means everything of the family.
    given: Vec<(Class, Option<Vec<Capability>>)>,
    /// Whether the text has the family `secrets`. If not, all secrets count as covered.
    names_secrets: bool,
    /// Grants without an equivalent in a policy, in words.
    untranslated: Vec<String>,
}

impl Caps {
    /// Parses the text.
    ///
    /// # Errors
    /// A description of the problem, which completes a sentence.
    fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("has more than {MAX_BYTES} bytes"));
        }
        let table: toml::Table = without_mark(text)
            .parse()
            .map_err(|error: toml::de::Error| format!("is not TOML: {}", error.message()))?;
        let all = table
            .get("capabilities")
            .and_then(toml::Value::as_table)
            .ok_or("has no table `capabilities`")?;
        let mut caps = Self {
            given: Vec::new(),
            names_secrets: all.contains_key("secrets"),
            untranslated: Vec::new(),
        };
        for (family, value) in all {
            let class = match family.as_str() {
                "net" => Class::Network,
                "fs" => Class::Workspace,
                "db" => Class::Database,
                "secrets" => Class::Secret,
                _ => {
                    caps.leave(family, value);
                    continue;
                }
            };
            let given = caps.given(family, &class, value)?;
            caps.given.push((class, given));
        }
        Ok(caps)
    }

    fn given(
        &mut self,
        family: &str,
        class: &Class,
        value: &toml::Value,
    ) -> Result<Option<Vec<Capability>>, String> {
        let wrong = || format!("has a `{family}` that is neither a list nor a boolean");
        let items = match value {
            toml::Value::Boolean(true) => return Ok(None),
            toml::Value::Boolean(false) => return Ok(Some(Vec::new())),
            other => other.as_array().ok_or_else(wrong)?,
        };
        let mut given = Vec::new();
        for item in items {
            let text = item
                .as_str()
                .ok_or_else(|| format!("has something else than text in `{family}`"))?;
            // The family may precede the scope: `net:HOST`.
            let scope = text.strip_prefix(&format!("{family}:")).unwrap_or(text);
            match Capability::of(class.clone(), scope) {
                Ok(capability) => given.push(capability),
                Err(_) => self.untranslated.push(format!(
                    "policy.caps gives {family} {text:?}, which no policy can say"
                )),
            }
        }
        Ok(Some(given))
    }

    /// Notes a family without an equivalent in a policy.
    fn leave(&mut self, family: &str, value: &toml::Value) {
        let gives = match value {
            toml::Value::Boolean(given) => *given,
            toml::Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        if gives {
            self.untranslated.push(format!(
                "policy.caps gives `{family}`, which has nothing like it here"
            ));
        }
    }

    /// Whether the caps cover a capability.
    fn covers(&self, wanted: &Capability) -> bool {
        if *wanted.class() == Class::Secret && !self.names_secrets {
            return true;
        }
        let mut given = self.given.iter();
        given.any(|(class, given)| {
            let covers = |all: &Vec<Capability>| all.iter().any(|one| one.covers(wanted));
            class == wanted.class() && given.as_ref().is_none_or(covers)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(caps: &str, wanted: &str) -> bool {
        let caps = Caps::parse(caps).unwrap();
        caps.covers(&Capability::parse(wanted).unwrap())
    }

    #[test]
    fn what_is_not_given_is_not_covered() {
        let some = "[capabilities]\nnet = [\"a.example\", \"net:b.example\"]\nfs = [\"/data\"]\ntime = true\n";
        for (wanted, covered) in [
            ("network:a.example", true),
            ("network:b.example", true),
            ("network:c.example", false),
            ("network:a.example:8443", false),
            ("workspace:/data/x", true),
            ("workspace:/other", false),
            ("database:d", false),
            // The text does not mention secrets.
            ("secret:k", true),
        ] {
            assert_eq!(covers(some, wanted), covered, "{wanted}");
        }
        assert!(covers("[capabilities]\nnet = true\n", "network:c.example"));
        assert!(!covers(
            "[capabilities]\nnet = false\n",
            "network:c.example"
        ));
        assert!(!covers("[capabilities]\nsecrets = [\"a\"]\n", "secret:k"));
    }

    #[test]
    fn what_has_nothing_like_it_is_said() {
        let caps = "[capabilities]\nfs = [\"~/.config\"]\nkb_read = [\"contacts\"]\nkb_write = []\nmodel = true\ntime = false\n";
        let caps = Caps::parse(caps).unwrap();
        assert_eq!(
            caps.untranslated,
            [
                "policy.caps gives fs \"~/.config\", which no policy can say",
                "policy.caps gives `kb_read`, which has nothing like it here",
                "policy.caps gives `model`, which has nothing like it here",
            ]
        );
        for wrong in [
            "",
            "capabilities = 1",
            "[capabilities]\nnet = 1",
            "[capabilities]\nnet = [1]",
            "\u{7f}",
        ] {
            assert!(Caps::parse(wrong).is_err(), "{wrong}");
        }
    }
}
