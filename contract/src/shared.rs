//! Fields that contracts, actions and drivers share: capabilities, approval, risk, retry. Not whole documents.

use std::time::Duration;

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Code, Position, Report};
use crate::id::ToolId;
use crate::source::{Field, Fields, nearest};
use crate::terms::{Approval, Backoff, CostClass, Requires, Retry};

/// A value as the author gave it, with its place.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

pub(crate) fn id(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<ToolId> {
    let field = report.read(fields.required("id"))?;
    let found = report.read(field.text())?;
    match ToolId::parse(found) {
        Ok(id) => Some(id),
        Err(error) => {
            let lower = found.to_lowercase().replace(['_', ' ', '/'], "-");
            let hint = ToolId::parse(&lower).map(|near| format!("write {near}"));
            report.add_hinted(&codes::ID_INVALID, field.at, error.to_string(), hint.ok());
            None
        }
    }
}

/// Why events do nothing.
pub(crate) const NO_EVENTS: &str = "this host fires no events";

/// Warns of a field that is kept and decides nothing. `instead`: what holds.
pub(crate) fn without_effect(name: &str, at: Position, instead: &str, report: &mut Report<'_>) {
    let message = format!("expected a field that has an effect, found `{name}`: {instead}");
    report.add(&codes::FIELD_WITHOUT_EFFECT, at, message);
}

/// One word out of a closed set.
pub(crate) fn word<T>(
    field: &Field<'_>,
    known: &[&str],
    read: impl Fn(&str) -> Option<T>,
    code: &Code,
    report: &mut Report<'_>,
) -> Option<T> {
    let found = report.read(field.text())?;
    let value = read(found);
    if value.is_none() {
        let message = format!(
            "expected `{}` to be one of {}, found {found:?}",
            field.name,
            known.join(", ")
        );
        let near = nearest(found, known.iter().copied());
        let hint = near.map(|near| format!("did you mean {near}?"));
        report.add_hinted(code, field.at, message, hint);
    }
    value
}

/// `schema`, which the public implementation of the AIPs writes into every document.
pub(crate) fn schema(field: &Field<'_>, known: &[&str], report: &mut Report<'_>) {
    let read = |found: &str| known.contains(&found).then_some(());
    word(field, known, read, &codes::WRONG_VALUE, report);
}

/// `mutates`: a list of `class:scope`; `None` if it isn't there, or an entry is invalid.
pub(crate) fn mutates(
    fields: &mut Fields<'_>,
    report: &mut Report<'_>,
) -> Option<Given<CapabilitySet>> {
    let field = fields.take("mutates")?;
    let at = field.at;
    let value = report.unbroken(|report| changes(&field, report))?;
    Some(Given { value, at })
}

fn changes(field: &Field<'_>, report: &mut Report<'_>) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, at) in report.texts(field) {
        match Capability::parse(found) {
            Ok(capability) => {
                warn_about(&capability, at, report);
                value.insert(capability);
            }
            Err(error) => match Capability::of_no_scope(found) {
                Some(capability) => {
                    let message = format!(
                        "expected a scope of its class, found `{capability}`: it counts as a mutation and grants nothing"
                    );
                    let hint = "where a file is meant, write its absolute path";
                    report.add_with_hint(&codes::CAPABILITY_SCOPE_UNKNOWN, at, message, hint);
                    value.insert(capability);
                }
                None => report.add(
                    &codes::CAPABILITY_INVALID,
                    at,
                    format!("in `{}`: {error}", field.name),
                ),
            },
        }
    }
    value
}

fn warn_about(capability: &Capability, at: Position, report: &mut Report<'_>) {
    let class = capability.class();
    if let Class::Other(name) = class {
        let message = format!(
            "expected a known class, found `{name}`: it counts as a mutation and grants nothing"
        );
        let near = nearest(name, Class::KNOWN.iter().map(Class::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        report.add_hinted(&codes::CAPABILITY_CLASS_UNKNOWN, at, message, hint);
    }
    if capability.is_wildcard() && !class.allows_wildcard() {
        let message = format!(
            "expected names, found `{capability}`: a wildcard is never granted for tools and secrets"
        );
        report.add(&codes::WILDCARD_NEVER_GRANTED, at, message);
    }
}

/// `requires`, subfield by subfield: a missing one says nothing, an empty one says none.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenRequires {
    pub(crate) parts: Vec<(&'static str, Class, Given<CapabilitySet>)>,
}

impl GivenRequires {
    pub(crate) fn all(&self) -> Requires {
        let capabilities = self
            .parts
            .iter()
            .flat_map(|(_, _, given)| given.value.iter().cloned())
            .collect();
        Requires { capabilities }
    }
}

/// Takes the subfields out of a mapping: [`Class::required`] or [`Class::required_ours`].
pub(crate) fn requires_parts(
    fields: &mut Fields<'_>,
    known: impl Iterator<Item = (&'static str, &'static Class)>,
    report: &mut Report<'_>,
) -> GivenRequires {
    let mut parts = Vec::new();
    for (key, class) in known {
        if let Some(field) = fields.take(key)
            && let Some(value) = report.unbroken(|report| scopes(&field, class, report))
        {
            let at = field.at;
            parts.push((key, class.clone(), Given { value, at }));
        }
    }
    GivenRequires { parts }
}

/// A list of scopes of one class.
pub(crate) fn scopes(field: &Field<'_>, class: &Class, report: &mut Report<'_>) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, at) in report.texts(field) {
        match Capability::of(class.clone(), found) {
            Ok(capability) => {
                warn_about(&capability, at, report);
                value.insert(capability);
            }
            Err(error) => {
                let message = format!("in `{}`: {error}", field.name);
                // A frequent slip: the whole capability where only its scope belongs.
                let rest = found.strip_prefix(&format!("{class}:"));
                let hint = rest.map(|rest| format!("write {rest}"));
                report.add_hinted(&codes::CAPABILITY_INVALID, at, message, hint);
            }
        }
    }
    value
}

/// `requires` of contracts and actions.
pub(crate) fn requires(fields: &mut Fields<'_>, report: &mut Report<'_>) -> GivenRequires {
    let read = fields.take("requires").and_then(|field| {
        let mut inner = report.read(Fields::of(&field))?.spelled(fields.spelling());
        let parts = requires_parts(&mut inner, Class::required(), report);
        report.unknown(inner);
        Some(parts)
    });
    read.unwrap_or_default()
}

pub(crate) fn approval(
    fields: &mut Fields<'_>,
    report: &mut Report<'_>,
) -> Option<Given<Approval>> {
    let field = fields.take("approval")?;
    let known = ["auto", "on-mutate", "always", "policy:<ref>"];
    let value = word(&field, &known, Approval::parse, &codes::WRONG_VALUE, report)?;
    let at = field.at;
    Some(Given { value, at })
}

pub(crate) fn risk_level(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Given<u8>> {
    let field = fields.take("risk_level")?;
    let value = u8::try_from(report.read(field.integer(0..=3))?).ok()?;
    let at = field.at;
    Some(Given { value, at })
}

pub(crate) fn cost_class(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<CostClass> {
    let field = fields.take("cost_class")?;
    let code = &codes::WRONG_VALUE;
    let class = word(&field, CostClass::NAMES, CostClass::parse, code, report);
    if class == Some(CostClass::Metered) {
        let message = format!(
            "expected `{}` to be trivial or expensive, found metered: not yet counted",
            field.name
        );
        report.add(&codes::COST_UNCOUNTED, field.at, message);
    }
    class
}

/// A whole number of milliseconds, from 1 to a day.
pub(crate) fn milliseconds(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Given<Duration>> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let field = fields.take(key)?;
    let value = Duration::from_millis(report.read(field.integer(1..=DAY))?);
    let at = field.at;
    Some(Given { value, at })
}

/// The pause before the first retry where none is written: a service that just failed gets a moment.
const DEFAULT_INITIAL_MS: u64 = 100;

/// `retry` of a contract (AIP-14): `initial_ms` may be left out.
pub(crate) fn retry(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Retry> {
    let field = fields.take("retry")?;
    let mut inner = report.read(Fields::of(&field))?.spelled(fields.spelling());
    let backoff = report.read(inner.required("backoff"));
    let backoff = backoff.and_then(|field| self::backoff(&field, report));
    attempts(inner, backoff, report)
}

/// `retry_override` of a driver or of an entry (AIP-30): `backoff` may be left out, too.
pub(crate) fn retry_override(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Retry> {
    let mut inner = report.fields(fields.take("retry_override"))?;
    let backoff = match inner.take("backoff") {
        Some(field) => self::backoff(&field, report),
        None => Some(Backoff::Fixed),
    };
    attempts(inner, backoff, report)
}

fn backoff(field: &Field<'_>, report: &mut Report<'_>) -> Option<Backoff> {
    let read = |word: &str| match word {
        "fixed" => Some(Backoff::Fixed),
        "exponential" => Some(Backoff::Exponential),
        _ => None,
    };
    let known = ["fixed", "exponential"];
    word(field, &known, read, &codes::WRONG_VALUE, report)
}

fn attempts(
    mut fields: Fields<'_>,
    backoff: Option<Backoff>,
    report: &mut Report<'_>,
) -> Option<Retry> {
    let attempts = fields.required("max_attempts");
    let attempts = report.read(attempts.and_then(|field| field.integer(1..=100)));
    let initial = match fields.take("initial_ms") {
        Some(field) => report.read(field.integer(0..=3_600_000)),
        None => Some(DEFAULT_INITIAL_MS),
    };
    report.unknown(fields);
    Some(Retry {
        max_attempts: u32::try_from(attempts?).ok()?,
        backoff: backoff?,
        initial: Duration::from_millis(initial?),
    })
}
