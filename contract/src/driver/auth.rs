//! `auth` (AIP-30): the names of secrets. Nobody is logged in.

use serde_json::{Map, Value};

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::scopes;
use crate::source::{Field, Fields};

/// What describes a flow that this host has not.
const FLOWS: &[&str] = &["login", "refresh", "expiry"];

/// The field as written, and the secrets that `auth.state.env` names.
pub(super) fn read(
    fields: &mut Fields<'_>,
    report: &mut Report<'_>,
) -> (Option<Map<String, Value>>, CapabilitySet) {
    let Some(field) = fields.take("auth") else {
        return (None, CapabilitySet::new());
    };
    let Some(mut inner) = report.read(Fields::of(&field)) else {
        return (None, CapabilitySet::new());
    };
    let written = match field.to_value() {
        Value::Object(written) => written,
        _ => Map::new(),
    };
    // SECRETS.md is for people; its path says nothing here.
    if let Some(reference) = inner.take("ref") {
        report.read(reference.text());
    }
    for key in FLOWS {
        if let Some(flow) = inner.take(key) {
            let message = format!(
                "expected secrets that the operator gives, found `{}`: this host does not log in for a driver",
                flow.name
            );
            report.add(&codes::DRIVER_AUTH_UNSUPPORTED, flow.key_at, message);
        }
    }
    let secrets = match inner.take("state") {
        Some(state) => kept(&state, report),
        None => CapabilitySet::new(),
    };
    report.unknown(inner);
    (Some(written), secrets)
}

/// `auth.state`: variables, which become secrets of the same names, and files, which nobody reads.
fn kept(state: &Field<'_>, report: &mut Report<'_>) -> CapabilitySet {
    let Some(mut inner) = report.read(Fields::of(state)) else {
        return CapabilitySet::new();
    };
    let secrets = inner
        .take("env")
        .map(|field| scopes(&field, &Class::Secret, report));
    if let Some(paths) = inner.take("paths") {
        report.texts(&paths);
        let message = format!(
            "expected secrets that the operator gives, found `{}`: a driver has no files of its own",
            paths.name
        );
        report.add(&codes::DRIVER_AUTH_UNSUPPORTED, paths.key_at, message);
    }
    report.unknown(inner);
    let secrets = secrets.unwrap_or_default();
    secrets.into_iter().filter(named).collect()
}

fn named(secret: &Capability) -> bool {
    !secret.is_wildcard()
}
