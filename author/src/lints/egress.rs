//! Drivers that reach every host, or none although their contract needs the network.

use toolward_bundle::codes;
use toolward_bundle::documents::{Documents, Located};
use toolward_bundle::files::Files;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::capability::Class;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::index::IndexEntry;

use super::place;

/// Looks at the hosts that an entry of tools.json declares.
pub(super) fn check_entry(entry: &IndexEntry, diagnostics: &mut Vec<Diagnostic>) {
    let mut hosts = entry.capabilities.iter().filter_map(|one| one.host());
    if hosts.any(|host| host.host() == "*") {
        let message = format!("`capabilities` of {} have `net:*`: any host", entry.id);
        let found = Diagnostic::new(&codes::EGRESS_ANY, TOOLS_JSON, entry.at, message);
        diagnostics.push(found.with_hint("name the host of its `url`, and no other"));
    }
}

/// Compares what a driver reaches with what its contracts need.
pub(super) fn check(
    driver: &Located<Driver>,
    documents: &Documents,
    files: &Files,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let egress = &driver.value.egress;
    let mut hosts = egress.iter().filter_map(|one| one.host());
    if hosts.any(|host| host.host() == "*") {
        let at = place(files, &driver.path, "/network/egress");
        let message = "`network.egress` has `*`: the driver may send what it gets to any host";
        let found = Diagnostic::new(&codes::EGRESS_ANY, &driver.path, at, message);
        diagnostics
            .push(found.with_hint("name the hosts that it needs: many operators grant no others"));
    }
    if !egress.is_empty() || driver.value.kind != DriverKind::Component {
        return;
    }
    let networked = |class: &Class| matches!(class, Class::Network | Class::External);
    let needing = documents.tools.iter().find(|tool| {
        let declaration = tool.value.declaration();
        let serving = driver
            .value
            .implements_tool(tool.value.id.as_str(), &tool.value.version);
        serving.is_some() && declaration.iter().any(|one| networked(one.class()))
    });
    if let Some(tool) = needing {
        let at = place(files, &driver.path, "/network");
        let message = format!(
            "`network.egress` is empty, and {} needs the network: every request is refused",
            tool.value.id
        );
        let found = Diagnostic::new(&codes::EGRESS_EMPTY, &driver.path, at, message);
        diagnostics.push(found.with_hint("list the hosts in `network.egress`"));
    }
}
