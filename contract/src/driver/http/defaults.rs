//! What a driver says for all of its requests: `base_url`, `default_headers`, `default_method`.

use serde_json::{Map, Value};

use super::base_url::BaseUrl;
use super::{Method, headers, hints};
use crate::capability::{Capability, CapabilitySet};
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::driver::DriverKind;
use crate::driver::template::{Reading, Template};
use crate::shared::{Given, word};
use crate::source::{Field, Fields};

/// What all entries of a driver have in common.
#[derive(Default)]
pub(in crate::driver) struct HttpDefaults {
    base: Option<BaseUrl>,
    /// Whether `base_url` is written, right or wrong.
    has_base: bool,
    pub(super) headers: Vec<(String, Template)>,
    method: Option<Method>,
    pub(super) reading: Reading,
    written: Map<String, Value>,
    /// What no call depends on.
    hints: Map<String, Value>,
}

impl HttpDefaults {
    /// Takes the fields that only drivers of `kind: http` have.
    pub(in crate::driver) fn read(
        fields: &mut Fields<'_>,
        kind: Option<&DriverKind>,
        report: &mut Report<'_>,
    ) -> HttpDefaults {
        let mut defaults = HttpDefaults::default();
        // Of a kind that was misspelt, these fields say nothing wrong.
        if !matches!(kind, Some(DriverKind::Http) | None) {
            return defaults;
        }
        let written = &mut defaults.written;
        if let Some(field) = kept("base_url", fields, written) {
            defaults.has_base = true;
            defaults.base = base(&field, report);
        }
        if let Some(field) = kept("default_method", fields, written) {
            let code = &codes::WRONG_VALUE;
            defaults.method = word(&field, Method::NAMES, Method::parse, code, report);
        }
        if let Some(field) = kept("default_headers", fields, written) {
            defaults.headers = headers::read(&field, &mut defaults.reading, report);
        }
        let hints = &mut defaults.hints;
        if let Some(field) = kept("streaming", fields, hints) {
            hints::streaming(&field, true, report);
        }
        if let Some(field) = kept("rate_limit", fields, hints) {
            hints::rate_limit(&field, report);
        }
        defaults
    }

    /// The method of an entry that says none.
    pub(super) fn method(&self) -> Method {
        let own = if self.has_base {
            Method::Post
        } else {
            Method::Get
        };
        self.method.unwrap_or(own)
    }

    /// The path of `base_url`, as it stands there.
    pub(super) fn segments(&self) -> &[String] {
        let base = self.base.as_ref();
        base.map(|base| base.segments.as_slice())
            .unwrap_or_default()
    }

    /// The part of `network.egress` that the requests use: the one host of `base_url`, or, in the
    /// form of version 0.1, the one that is there.
    pub(in crate::driver) fn egress(
        &mut self,
        egress: Given<CapabilitySet>,
        at: Position,
        report: &mut Report<'_>,
    ) -> Given<CapabilitySet> {
        if let Some(base) = &self.base {
            let host = &base.host;
            if !egress.value.covers_one(host) {
                let message = format!(
                    "expected `network.egress` to hold the host of `base_url`, found {}",
                    egress.value
                );
                let hint = format!("write `network: {{ egress: [\"{}\"] }}`", host.scope());
                report.add_with_hint(&codes::HTTP_EGRESS, egress.at, message, hint);
            } else {
                unused(&egress, host, report);
            }
            return Given {
                value: CapabilitySet::from_iter([host.clone()]),
                at: egress.at,
            };
        }
        if self.has_base {
            return egress;
        }
        let literal = |one: &Capability| one.host().is_some_and(|host| host.is_literal());
        if egress.value.len() != 1 || !egress.value.iter().all(literal) {
            let message = format!(
                "expected `base_url`, or exactly one host without wildcard in `network.egress`, found {}",
                egress.value
            );
            report.add(&codes::HTTP_EGRESS, egress.at, message);
        }
        self.reading.old("no `base_url`", at);
        egress
    }

    /// What was found out while templates were read, the fields as written, and those without effect.
    pub(in crate::driver) fn finish(self) -> (Reading, Map<String, Value>, Map<String, Value>) {
        (self.reading, self.written, self.hints)
    }
}

/// Warns of the hosts beside that of `base_url`.
fn unused(egress: &Given<CapabilitySet>, host: &Capability, report: &mut Report<'_>) {
    let others = egress.value.iter().filter(|one| !one.covers(host));
    let others: Vec<String> = others.map(Capability::scope).collect();
    if !others.is_empty() {
        let message = format!(
            "expected a field that has an effect, found {} in `network.egress`: requests go to the host of `base_url`",
            others.join(", ")
        );
        report.add(&codes::DRIVER_FIELD_WITHOUT_EFFECT, egress.at, message);
    }
}

/// Takes a field, and keeps what is written there.
fn kept<'n>(
    key: &'static str,
    fields: &mut Fields<'n>,
    written: &mut Map<String, Value>,
) -> Option<Field<'n>> {
    let field = fields.take(key)?;
    written.insert(key.to_owned(), field.to_value());
    Some(field)
}

fn base(field: &Field<'_>, report: &mut Report<'_>) -> Option<BaseUrl> {
    let found = report.read(field.text())?;
    match BaseUrl::parse(found) {
        Ok(base) => Some(base),
        Err(expected) => {
            let message = format!("expected `{}` {expected}, found {found:?}", field.name);
            report.add(&codes::HTTP_BASE_URL_INVALID, field.at, message);
            None
        }
    }
}
