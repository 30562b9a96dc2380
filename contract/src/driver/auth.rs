//! `auth` (AIP-30): the names of secrets. Nobody is logged in.

use serde_json::{Map, Value};

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::scopes;
use crate::source::{Field, Fields};

/// What describes a flow that this host has not.
const FLOWS: &[&str] = &["login", "refresh", "expiry"];

/// The field as written, and the secrets that `auth.state.env` names. `sent`: those that the requests of a declarative
/// driver send.
pub(super) fn read(
    fields: &mut Fields<'_>,
    sent: Option<&CapabilitySet>,
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
        inner.take(key);
    }
    let secrets = match inner.take("state") {
        Some(state) => kept(&state, sent, report),
        None => CapabilitySet::new(),
    };
    report.unknown(inner);
    (Some(written), secrets)
}

/// `auth.state`: variables, which become secrets of the same names, and files, which nobody reads.
fn kept(state: &Field<'_>, sent: Option<&CapabilitySet>, report: &mut Report<'_>) -> CapabilitySet {
    let Some(mut inner) = report.read(Fields::of(state)) else {
        return CapabilitySet::new();
    };
    let env = inner.take("env");
    let secrets = env
        .as_ref()
        .map(|field| scopes(field, &Class::Secret, report));
    if let Some(paths) = inner.take("paths") {
        report.texts(&paths);
    }
    report.unknown(inner);
    let secrets: CapabilitySet = secrets.into_iter().flatten().filter(named).collect();
    if let (Some(sent), Some(field)) = (sent, &env) {
        for unused in secrets.iter().filter(|secret| !sent.covers_one(secret)) {
            let name = unused.scope();
            let message = format!(
                "expected requests that send every secret of `{}`, found none that sends {name}",
                field.name
            );
            let hint = format!("write `${{secrets.{name}}}` where the service expects it");
            report.add_with_hint(&codes::HTTP_SECRET_UNUSED, field.at, message, hint);
        }
    }
    secrets
}

fn named(secret: &Capability) -> bool {
    !secret.is_wildcard()
}
