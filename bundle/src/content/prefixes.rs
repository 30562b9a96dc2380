//! That every id of a bundle is one that its publisher may publish.

use toolward_contract::tool::mapped;
use toolward_signing::manifest::Manifest;

use super::{ContentError, ToolEntry};
use crate::documents::Documents;
use crate::index::TOOLS_JSON;

/// The id that a name over MCP stands for: prefixes are about ids. Each `_` ends a segment,
/// so that a name inside the prefix of somebody else is never taken for one inside a shorter
/// prefix.
pub(super) fn id_of(name: &str) -> String {
    mapped(name).to_ascii_lowercase().replace('_', ".")
}

/// Which ids a publisher may publish.
#[derive(Clone, Copy)]
pub(super) struct Prefixes<'a> {
    pub(super) of_all: &'a dyn Fn(&str) -> bool,
    pub(super) of_actions: &'a dyn Fn(&str) -> bool,
}

/// Refuses a bundle with an id that its publisher may not publish.
pub(super) fn check_prefixes(
    manifest: &Manifest,
    documents: &Documents,
    tools: &[ToolEntry],
    publisher: &str,
    granted: Prefixes<'_>,
) -> Result<(), ContentError> {
    let bundle = std::iter::once(("bundle", manifest.id.as_str(), "manifest.toml"));
    let contracts = tools.iter().map(|entry| {
        let path = entry.path.as_deref().unwrap_or(TOOLS_JSON);
        ("contract", entry.tool.id.as_str(), path)
    });
    let drivers = documents
        .drivers
        .iter()
        .map(|driver| ("driver", driver.value.id.as_str(), driver.path.as_str()));
    let actions = documents
        .actions
        .iter()
        .map(|action| ("action", action.value.id.as_str(), action.path.as_str()));
    // A host answers to an alias as it does to an id.
    let aliases = tools.iter().flat_map(|entry| {
        let path = entry.path.as_deref().unwrap_or(TOOLS_JSON);
        let aliases = entry.tool.aliases.iter();
        aliases.map(move |alias| ("contract alias", alias.as_str(), path))
    });
    let prompts = documents
        .prompts
        .iter()
        .map(|prompt| ("prompt", prompt.value.id.as_str(), prompt.path.as_str()));
    let ids = bundle.chain(contracts).chain(drivers).chain(actions);
    let ids = ids.chain(prompts);
    for (kind, id, path) in ids.chain(aliases) {
        let granted = match kind {
            "action" => granted.of_actions,
            _ => granted.of_all,
        };
        if !granted(id) {
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
