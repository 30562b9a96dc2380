//! A bundle of Runloop's tools.json, version 1. The document stays what it is, cleaned: a host reads version 1 itself.

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
use toolward_signing::id::Id;
use toolward_support::fields::without_mark_bytes;

mod caps;

use caps::Caps;

use super::document::{bundle_toml, unhidden};
use super::policy::{Draft, Granted};
use super::{ImportError, Imported, LeftOut, Remark};

/// What an agent's directory holds of its tools.
#[derive(Debug, Clone, Default)]
pub struct RunloopFiles {
    /// `tools.json`.
    pub tools_json: Vec<u8>,
    /// The files of `schemas`, by name: `NAME.json` is what `schema:NAME` refers to.
    pub schemas: BTreeMap<String, Vec<u8>>,
    /// `policy.caps`, where there is one.
    pub policy_caps: Option<String>,
}

/// How they become a bundle.
#[derive(Debug, Clone, Default)]
pub struct RunloopOptions {
    /// The id of the bundle.
    pub id: String,
    /// Who will sign it.
    pub publisher: String,
    /// `created`, in seconds since 1970.
    pub created: i64,
}

/// Makes a bundle of a version 1 tools.json, and a draft of the policy that its tools need and `policy.caps` allows.
///
/// # Errors
///
/// When a document is not valid, or the id or the publisher is none.
pub fn runloop(given: &RunloopFiles, options: &RunloopOptions) -> Result<Imported, ImportError> {
    for (what, name) in [("id", &options.id), ("publisher", &options.publisher)] {
        Id::parse(name).map_err(|source| ImportError::Name {
            what: what.to_owned(),
            source,
        })?;
    }
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
        return Err(ImportError::NoTool(LeftOut {
            function: TOOLS_JSON.to_owned(),
            reason: "it is not of version 1, or has no tools".to_owned(),
            code: "import-nothing-offered",
        }));
    };
    let toml = bundle_toml(&options.id, &options.publisher, options.created)?;
    let mut imported = Imported {
        files: vec![("bundle.toml".to_owned(), toml.into_bytes())],
        tools: index.tools.iter().map(|one| one.id.to_string()).collect(),
        ..Imported::default()
    };
    let written = files.into_iter();
    imported
        .files
        .extend(written.map(|(name, bytes)| (name, bytes.to_vec())));
    // Denied attachments, and what else differs from the document.
    for warning in found {
        let entry = index.tools.iter().find(|one| one.at == warning.position());
        imported.remarks.push(Remark {
            tool: entry.map_or_else(|| TOOLS_JSON.to_owned(), |one| one.id.to_string()),
            code: warning.code,
            message: warning.message,
        });
    }
    imported.policy = draft(&index, caps.as_ref()).write(&options.publisher);
    Ok(imported)
}

/// A document, as it can be signed.
fn put(files: &mut Files, name: String, bytes: &[u8]) -> Result<(), ImportError> {
    const PROSE: [&str; 3] = ["title", "description", "$comment"];
    let bytes = without_mark_bytes(bytes);
    let Ok(value) = json::parse(bytes, &json::Limits::default()) else {
        // Its reader reports what is wrong, and where.
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

/// What the tools declare, as far as `policy.caps` covers it. What it does not cover stays ungranted, with a comment.
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

/// The secrets of an http transport, which go to its host.
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
