//! Drivers as surfaces of [`Version::V1`](super::super::Version) have them.

use serde_json::{Map, Value, json};
use toolward_contract::driver::{Driver, DriverKind};

use super::{Version, costs, names};

pub(super) fn driver(driver: &Driver, version: Version) -> Value {
    let implements = driver.implements.iter();
    let implements = implements.map(|entry| entry.named().to_owned());
    let means = match driver.kind {
        DriverKind::Http => Some(("http".to_owned(), requests(driver))),
        DriverKind::Exec => Some(("exec".to_owned(), programs(driver))),
        DriverKind::Component | DriverKind::Form | DriverKind::Other(_) => None,
    };
    let fields = json!({
        "name": driver.name,
        "description": driver.description,
        "kind": driver.kind.as_str(),
        "implements": implements.collect::<Vec<_>>(),
        "egress": names(&driver.egress, version),
        "requires": names(&driver.requires.capabilities, version),
        "region": driver.region,
        "policy_tags": driver.policy_tags,
        "auth": driver.auth,
    });
    let fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let cost = costs(driver).map(|cost| ("cost".to_owned(), cost));
    let own = !driver.kind_fields.is_empty();
    let own = own.then(|| {
        (
            "fields".to_owned(),
            Value::Object(driver.kind_fields.clone()),
        )
    });
    let more = means.into_iter().chain(cost).chain(own);
    Value::Object(fields.into_iter().chain(more).collect())
}

/// What a declarative driver sends where, and what its errors say. Other drivers have code instead.
fn requests(driver: &Driver) -> Value {
    let entries = driver.implements.iter().map(|entry| {
        json!({
            "tool": entry.named(),
            "version": entry.version_text,
            "drop_inputs": entry.drop_inputs,
            "drop_outputs": entry.drop_outputs,
            "mapping": entry.mapping.iter().map(|(name, source)| (name, &source.from)).collect::<Vec<_>>(),
            "request": entry.metadata.get("http"),
        })
    });
    json!({ "defaults": driver.request_defaults, "entries": entries.collect::<Vec<_>>() })
}

/// What a driver has run outside the sandbox.
fn programs(driver: &Driver) -> Value {
    let entries = driver.implements.iter().filter_map(|entry| {
        let program = entry.program.as_ref()?;
        Some(json!({
            "tool": entry.named(),
            "command": program.command,
            "args": program.args,
        }))
    });
    entries.collect()
}
