//! Assembles the contents of a bundle from its files, and checks that its publisher may publish
//! every id in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::tool::{Tool, mapped};
use toolward_signing::digest::Digest;
use toolward_signing::manifest::Manifest;
use toolward_signing::verify::Bundle;

use super::{Content, ContentError, ContentOrigin, DriverEntry, ToolEntry, takes_action};
use crate::documents::{Documents, ids, role_of};
use crate::index::{self, TOOLS_JSON};
use crate::libraries::{Libraries, Library, Surroundings};
use crate::rules;
use crate::shown;

impl Content {
    pub(super) fn assemble(
        origin: ContentOrigin,
        manifest_digest: Digest,
        manifest: Arc<Manifest>,
        files: BTreeMap<String, Arc<[u8]>>,
        publisher: &str,
        signed: Option<&Bundle>,
        libraries: &dyn Libraries,
    ) -> Result<Self, ContentError> {
        check_roles(&manifest)?;
        // An unsigned directory has no verified publisher, so the publisher that its manifest
        // claims is used.
        let owner = match origin.is_dev() {
            true => manifest.publisher.as_str(),
            false => publisher,
        };
        let own = Library {
            publisher: owner,
            id: &manifest.id,
        };
        let surroundings = Surroundings {
            own: Some(own),
            others: Some(libraries),
        };
        let (documents, mut diagnostics) = rules::read_in(&files, surroundings);
        // `pack` wrote tools.json without libraries (the actions of other bundles), so it is
        // compared with documents that are read without libraries.
        let takes_actions = documents.tools.iter().any(|tool| takes_action(&tool.value));
        let written = takes_actions.then(|| {
            let surroundings = Surroundings::of_author(owner, &manifest.id);
            Documents::read_in(&files, surroundings)
        });
        let as_signed = written.as_ref().unwrap_or(&documents);
        let indexed = index::read(&files, as_signed, &mut diagnostics);
        if let Some(index) = &indexed.index {
            diagnostics.extend(index::check_version(&manifest, index));
        }
        let written = documents.tools.iter();
        let written = written.map(|tool| (Arc::clone(&tool.value), Some(tool.path.clone())));
        let indexed_only = indexed.contracts.into_iter().map(|tool| (tool, None));
        let entry = |(tool, path): (Arc<Tool>, Option<String>)| ToolEntry {
            names_itself: tool
                .mcp_name
                .as_deref()
                .is_some_and(|name| may_publish(signed, &id_of(name))),
            tool,
            path,
            arrival: None,
        };
        let tools: Vec<ToolEntry> = written.chain(indexed_only).map(entry).collect();

        let mut drivers = Vec::with_capacity(documents.drivers.len());
        for driver in &documents.drivers {
            match rules::component(driver, &documents, &files, Some(&manifest), signed) {
                Ok(component) => drivers.push(DriverEntry {
                    driver: Arc::clone(&driver.value),
                    path: driver.path.clone(),
                    component,
                }),
                Err(diagnostic) => diagnostics.push(*diagnostic),
            }
        }
        drivers.extend(indexed.drivers.into_iter().map(|driver| DriverEntry {
            driver,
            path: TOOLS_JSON.to_owned(),
            component: None,
        }));
        let (errors, warnings): (Vec<_>, Vec<_>) =
            diagnostics.into_iter().partition(Diagnostic::is_error);
        let Some(index) = indexed.index.filter(|_| errors.is_empty()) else {
            return Err(ContentError::Invalid(errors));
        };
        check_prefixes(&manifest, &documents, &tools, publisher, signed)?;

        let mut prompts = documents.prompts.clone();
        prompts.sort_by(|a, b| a.value.id.cmp(&b.value.id));
        let resources = shown::resources(&documents, &files);
        let mut content = Self {
            origin,
            manifest_digest,
            manifest,
            tools,
            drivers,
            denied: indexed.denied,
            actions: documents
                .actions
                .iter()
                .map(|action| Arc::clone(&action.value))
                .collect(),
            prompts,
            resources,
            index,
            files,
            provenance: None,
            warnings,
        };
        let tools = &mut content.tools;
        tools.sort_by_cached_key(|entry| (entry.tool.id.clone(), entry.tool.version.clone()));
        let drivers = &mut content.drivers;
        drivers.sort_by_cached_key(|one| (one.driver.id.clone(), one.driver.version.clone()));
        Ok(content)
    }
}

fn check_roles(manifest: &Manifest) -> Result<(), ContentError> {
    for entry in &manifest.artifacts.files {
        let expected = role_of(entry.path.as_str());
        if entry.role != expected {
            return Err(ContentError::RoleMismatch {
                path: entry.path.as_str().to_owned(),
                found: entry.role.to_string(),
                expected: expected.to_string(),
            });
        }
    }
    Ok(())
}

/// Turns an MCP name into an id, which can be compared with prefixes. Each `_` becomes a dot, so
/// that a segment of the id ends there. Otherwise, `acme.tools_x` would match a publisher's prefix
/// `acme`, but not another publisher's longer prefix `acme.tools`.
fn id_of(name: &str) -> String {
    mapped(name).to_ascii_lowercase().replace('_', ".")
}

/// Whether the publisher of a signed bundle may publish an id. A working directory, which isn't
/// signed, may have any id.
fn may_publish(signed: Option<&Bundle>, id: &str) -> bool {
    signed.is_none_or(|bundle| bundle.may_publish(id))
}

/// Refuses a bundle with an id that its publisher may not publish.
fn check_prefixes(
    manifest: &Manifest,
    documents: &Documents,
    tools: &[ToolEntry],
    publisher: &str,
    signed: Option<&Bundle>,
) -> Result<(), ContentError> {
    let mut all = vec![("bundle", manifest.id.as_str(), "manifest.toml")];
    let mut add = |kind, (id, path)| all.push((kind, id, path));
    for entry in tools {
        let path = entry.path.as_deref().unwrap_or(TOOLS_JSON);
        add("contract", (entry.tool.id.as_str(), path));
    }
    ids(&documents.drivers, |driver| Some(driver.id.as_str())).for_each(|one| add("driver", one));
    ids(&documents.actions, |action| Some(action.id.as_str())).for_each(|one| add("action", one));
    ids(&documents.prompts, |prompt| Some(prompt.id.as_str())).for_each(|one| add("prompt", one));
    // A host accepts an alias in place of an id, so the prefixes apply to aliases too.
    for entry in tools {
        let path = entry.path.as_deref().unwrap_or(TOOLS_JSON);
        for alias in &entry.tool.aliases {
            add("contract alias", (alias.as_str(), path));
        }
    }
    for (kind, id, path) in all {
        let is_granted = match kind {
            "action" => signed.is_none_or(|bundle| bundle.may_publish_action(id)),
            _ => may_publish(signed, id),
        };
        if !is_granted {
            return Err(ContentError::PrefixNotGranted {
                path: path.to_owned(),
                kind,
                id: id.to_owned(),
                publisher: publisher.to_owned(),
            });
        }
    }
    Ok(())
}
