//! Ids and names for completion in a shell. Nothing is verified or written; bundles that run are
//! loaded and verified.

use std::collections::BTreeSet;
use std::time::Duration;

use toolward_contract::tool::ToolId;
use toolward_signing::id;

use crate::Environment;
use crate::installed::StoreLocation;
use crate::trust::Trust;

/// Maximum number of names. More are of no use on a screen.
const MAX_NAMES: usize = 1000;

/// How long to wait for a process that writes: a person waits for the shell.
const WAIT: Duration = Duration::from_millis(100);

/// The ids of installed tools, of bundles, or of both, sorted; empty if they can't be read. A stored id that the grammar of
/// ids does not allow is left out.
pub fn installed(
    store: &StoreLocation,
    (tools, bundles): (bool, bool),
    environment: &Environment,
) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let Ok(Some(store)) = store.untouched(environment, WAIT) else {
        return names;
    };
    if tools {
        let ids = store.tools().unwrap_or_default().into_iter();
        let ids = ids.map(|tool| tool.entry.id);
        names.extend(ids.filter(|id| ToolId::relaxed(id).is_ok()).take(MAX_NAMES));
    }
    if bundles {
        let ids = store.list().unwrap_or_default().into_iter();
        let ids = ids.map(|one| one.release.id);
        names.extend(ids.filter(|id| id::check(id).is_ok()).take(MAX_NAMES));
    }
    names
}

/// The names of the publishers of `toolward trust`, sorted; empty if they can't be read.
pub fn publishers(trust: &Trust, environment: &Environment) -> BTreeSet<String> {
    let names = trust
        .publishers(environment)
        .and_then(|publishers| publishers.names(MAX_NAMES));
    names.into_iter().flatten().collect()
}
