//! Fields that contracts, actions and drivers share: capabilities, approval, risk, retry. Not whole documents.

use std::time::Duration;

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::id::ToolId;
use crate::source::{FieldReader, MappingReader, PlacedValue, nearest};
use crate::terms::{Approval, Backoff, CostClass, Requires, Retry};

pub(crate) fn id(fields: &mut MappingReader<'_>) -> Option<ToolId> {
    let field = fields.required("id")?;
    let found = field.text()?;
    match ToolId::parse(found) {
        Ok(id) => Some(id),
        Err(error) => {
            let lower = found.to_lowercase().replace(['_', ' ', '/'], "-");
            let hint = ToolId::parse(&lower).map(|near| format!("write {near}"));
            field.note_with_hint(&codes::ID_INVALID, error.to_string(), hint.ok());
            None
        }
    }
}

/// Why events do nothing.
pub(crate) const NO_EVENTS: &str = "this host fires no events";

/// Warns of a field that is kept and decides nothing. `instead`: what holds.
pub(crate) fn without_effect(name: &str, at: Position, instead: &str, report: &FileReport<'_>) {
    let message = format!("expected a field that has an effect, found `{name}`: {instead}");
    report.add(&codes::FIELD_WITHOUT_EFFECT, at, message);
}

/// `schema`, which the public implementation of the AIPs writes into every document.
pub(crate) fn schema(field: &FieldReader<'_>, known: &[&str]) {
    let words: Vec<(&str, ())> = known.iter().map(|word| (*word, ())).collect();
    field.word(&words, &codes::WRONG_VALUE);
}

/// `mutates`: a list of `class:scope`; `None` if it isn't there, or an entry is invalid.
pub(crate) fn mutates(fields: &mut MappingReader<'_>) -> Option<PlacedValue<CapabilitySet>> {
    let field = fields.take("mutates")?;
    let at = field.at;
    let value = fields.report.unbroken(|| changes(&field))?;
    Some(PlacedValue { value, at })
}

fn changes(field: &FieldReader<'_>) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, at) in field.texts() {
        match Capability::parse(found) {
            Ok(capability) => {
                warn_about(&capability, at, field.report);
                value.insert(capability);
            }
            Err(error) => match Capability::of_no_scope(found) {
                Some(capability) => {
                    let message = format!(
                        "expected a scope of its class, found `{capability}`: it counts as a mutation and grants nothing"
                    );
                    let hint = "where a file is meant, write its absolute path".to_owned();
                    field
                        .report
                        .add_with_hint(&codes::CAPABILITY_SCOPE_UNKNOWN, at, message, hint);
                    value.insert(capability);
                }
                None => field.report.add(
                    &codes::CAPABILITY_INVALID,
                    at,
                    format!("in `{}`: {error}", field.name),
                ),
            },
        }
    }
    value
}

fn warn_about(capability: &Capability, at: Position, report: &FileReport<'_>) {
    let class = capability.class();
    if let Class::Other(name) = class {
        let message = format!(
            "expected a known class, found `{name}`: it counts as a mutation and grants nothing"
        );
        let near = nearest(name, Class::KNOWN.iter().map(Class::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        report.add_with_hint(&codes::CAPABILITY_CLASS_UNKNOWN, at, message, hint);
    }
    if capability.is_wildcard() && !class.allows_wildcard() {
        let message = format!(
            "expected names, found `{capability}`: a wildcard is never granted for tools and secrets"
        );
        report.add(&codes::WILDCARD_NEVER_GRANTED, at, message);
    }
}

/// `requires`, subfield by subfield: a missing one is not stated, an empty one has no capabilities.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequiresParts {
    pub(crate) parts: Vec<(&'static str, Class, PlacedValue<CapabilitySet>)>,
}

impl RequiresParts {
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
    fields: &mut MappingReader<'_>,
    known: impl Iterator<Item = (&'static str, &'static Class)>,
) -> RequiresParts {
    let mut parts = Vec::new();
    for (key, class) in known {
        if let Some(field) = fields.take(key)
            && let Some(value) = fields.report.unbroken(|| scopes(&field, class))
        {
            let at = field.at;
            parts.push((key, class.clone(), PlacedValue { value, at }));
        }
    }
    RequiresParts { parts }
}

/// A list of scopes of one class.
pub(crate) fn scopes(field: &FieldReader<'_>, class: &Class) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, at) in field.texts() {
        match Capability::of(class.clone(), found) {
            Ok(capability) => {
                warn_about(&capability, at, field.report);
                value.insert(capability);
            }
            Err(error) => {
                let message = format!("in `{}`: {error}", field.name);
                // A frequent slip: the whole capability where only its scope belongs.
                let rest = found.strip_prefix(&format!("{class}:"));
                let hint = rest.map(|rest| format!("write {rest}"));
                field
                    .report
                    .add_with_hint(&codes::CAPABILITY_INVALID, at, message, hint);
            }
        }
    }
    value
}

/// `requires` of contracts and actions.
pub(crate) fn requires(fields: &mut MappingReader<'_>) -> RequiresParts {
    let Some(inner) = fields.take_fields("requires") else {
        return RequiresParts::default();
    };
    let mut inner = inner.spelled(fields.spelling());
    let parts = requires_parts(&mut inner, Class::required());
    inner.unknown();
    parts
}

pub(crate) fn approval(fields: &mut MappingReader<'_>) -> Option<PlacedValue<Approval>> {
    let field = fields.take("approval")?;
    let known = ["auto", "on-mutate", "always", "policy:<ref>"];
    let found = field.text()?;
    let value =
        Approval::parse(found).or_else(|| field.refuse_word(found, &known, &codes::WRONG_VALUE))?;
    Some(field.placed(value))
}

pub(crate) fn risk_level(fields: &mut MappingReader<'_>) -> Option<PlacedValue<u8>> {
    let field = fields.take("risk_level")?;
    let value = u8::try_from(field.integer(0..=3)?).ok()?;
    Some(field.placed(value))
}

pub(crate) fn cost_class(fields: &mut MappingReader<'_>) -> Option<CostClass> {
    let field = fields.take("cost_class")?;
    let class = field.word(CostClass::WORDS, &codes::WRONG_VALUE);
    if class == Some(CostClass::Metered) {
        let message = format!(
            "expected `{}` to be trivial or expensive, found metered: not yet counted",
            field.name
        );
        field.note(&codes::COST_UNCOUNTED, message);
    }
    class
}

/// A whole number of milliseconds, from 1 to a day.
pub(crate) fn milliseconds(
    fields: &mut MappingReader<'_>,
    key: &'static str,
) -> Option<PlacedValue<Duration>> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let field = fields.take(key)?;
    let value = Duration::from_millis(field.integer(1..=DAY)?);
    Some(field.placed(value))
}

/// The pause before the first retry where none is written: a service that just failed gets a moment.
const DEFAULT_INITIAL_MS: u64 = 100;

/// `retry` of a contract (AIP-14): `initial_ms` may be left out.
pub(crate) fn retry(fields: &mut MappingReader<'_>) -> Option<Retry> {
    let field = fields.take("retry")?;
    let mut inner = field.fields()?.spelled(fields.spelling());
    let backoff = inner.require("backoff", self::backoff);
    attempts(inner, backoff)
}

/// `retry_override` of a driver or of an entry (AIP-30): `backoff` may be left out, too.
pub(crate) fn retry_override(fields: &mut MappingReader<'_>) -> Option<Retry> {
    let mut inner = fields.take_fields("retry_override")?;
    let backoff = match inner.take("backoff") {
        Some(field) => self::backoff(&field),
        None => Some(Backoff::Fixed),
    };
    attempts(inner, backoff)
}

fn backoff(field: &FieldReader<'_>) -> Option<Backoff> {
    let words = [
        ("fixed", Backoff::Fixed),
        ("exponential", Backoff::Exponential),
    ];
    field.word(&words, &codes::WRONG_VALUE)
}

fn attempts(mut fields: MappingReader<'_>, backoff: Option<Backoff>) -> Option<Retry> {
    let attempts = fields.require("max_attempts", |field| field.integer(1..=100));
    let initial = match fields.take("initial_ms") {
        Some(field) => field.integer(0..=3_600_000),
        None => Some(DEFAULT_INITIAL_MS),
    };
    fields.unknown();
    Some(Retry {
        max_attempts: u32::try_from(attempts?).ok()?,
        backoff: backoff?,
        initial: Duration::from_millis(initial?),
    })
}
