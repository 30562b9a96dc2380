//! Ids and names for completion in a shell. Nothing is verified or written; bundles that run are
//! loaded and verified.

use std::collections::BTreeSet;
use std::time::Duration;

use toolward_contract::tool::ToolId;
use toolward_signing::id;
use toolward_store::Store;

use crate::Environment;
use crate::installed::StoreLocation;
use crate::trust::Trust;

/// Maximum number of names. More are of no use on a screen.
const MAX_NAMES: usize = 1000;

/// How long to wait for a process that writes: a person waits for the shell.
const WAIT: Duration = Duration::from_millis(100);

/// The ids of installed tools, sorted; empty if they can't be read. A stored id that the grammar of
/// tool ids does not allow is left out.
pub fn tools(store: &StoreLocation, environment: &Environment) -> BTreeSet<String> {
    read(store, environment, tools_of)
}

/// The ids of installed bundles, sorted; empty if they can't be read.
pub fn bundles(store: &StoreLocation, environment: &Environment) -> BTreeSet<String> {
    read(store, environment, bundles_of)
}

/// The ids of installed bundles and of their tools, sorted; empty if they can't be read.
pub fn installed(store: &StoreLocation, environment: &Environment) -> BTreeSet<String> {
    read(store, environment, |store| {
        &tools_of(store) | &bundles_of(store)
    })
}

fn read(
    store: &StoreLocation,
    environment: &Environment,
    names: impl FnOnce(&Store) -> BTreeSet<String>,
) -> BTreeSet<String> {
    let store = store.untouched(environment, WAIT).ok().flatten();
    store.as_ref().map(names).unwrap_or_default()
}

fn tools_of(store: &Store) -> BTreeSet<String> {
    let tools = store.tools().unwrap_or_default().into_iter();
    let ids = tools.map(|tool| tool.entry.id);
    ids.filter(|id| ToolId::relaxed(id).is_ok())
        .take(MAX_NAMES)
        .collect()
}

fn bundles_of(store: &Store) -> BTreeSet<String> {
    let ids = store.list().unwrap_or_default().into_iter();
    ids.map(|one| one.release.id)
        .filter(|id| id::check(id).is_ok())
        .take(MAX_NAMES)
        .collect()
}

/// The names of the publishers of `toolward trust`, sorted; empty if they can't be read.
pub fn publishers(trust: &Trust, environment: &Environment) -> BTreeSet<String> {
    let names = trust
        .publishers(environment)
        .and_then(|publishers| publishers.names(MAX_NAMES));
    names.into_iter().flatten().collect()
}
