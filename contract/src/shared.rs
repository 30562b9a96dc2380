//! Fields that contracts, actions and drivers share: capabilities, approval, risk, retry. Not whole documents.

use std::time::Duration;

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::id::ToolId;
use crate::source::{Fields, Node, integer, suggestion, text, texts};
use crate::terms::{Approval, Backoff, CostClass, Requires, Retry};

/// A value as the author gave it, with its place.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

pub(crate) fn id(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<ToolId> {
    let label = fields.name("id");
    let node = fields.required("id", report)?;
    let found = text(node, &label, report)?;
    match ToolId::parse(found) {
        Ok(id) => Some(id),
        Err(error) => {
            let lower = found.to_lowercase().replace(['_', ' ', '/'], "-");
            match ToolId::parse(&lower) {
                Ok(near) => report.add_with_hint(
                    &codes::ID_INVALID,
                    node.at,
                    error.to_string(),
                    format!("write {near}"),
                ),
                Err(_) => report.add(&codes::ID_INVALID, node.at, error.to_string()),
            }
            None
        }
    }
}

/// One word out of a closed set.
pub(crate) fn word<T>(
    node: &Node,
    name: &str,
    known: &[&str],
    read: impl Fn(&str) -> Option<T>,
    report: &mut Report<'_>,
) -> Option<T> {
    let found = text(node, name, report)?;
    let value = read(found);
    if value.is_none() {
        let message = format!(
            "expected `{name}` to be one of {}, found {found:?}",
            known.join(", ")
        );
        match suggestion(found, known.iter().copied()) {
            Some(near) => report.add_with_hint(
                &codes::WRONG_VALUE,
                node.at,
                message,
                format!("did you mean {near}?"),
            ),
            None => report.add(&codes::WRONG_VALUE, node.at, message),
        }
    }
    value
}

/// `mutates`: a list of `class:scope`.
pub(crate) fn mutates(
    fields: &mut Fields<'_>,
    report: &mut Report<'_>,
) -> Option<Given<CapabilitySet>> {
    let label = fields.name("mutates");
    let node = fields.take("mutates")?;
    let mut value = CapabilitySet::new();
    for (found, at) in texts(node, &label, report) {
        match Capability::parse(found) {
            Ok(capability) => {
                warn_about(&capability, at, report);
                value.insert(capability);
            }
            Err(error) => report.add(
                &codes::CAPABILITY_INVALID,
                at,
                format!("in `{label}`: {error}"),
            ),
        }
    }
    Some(Given { value, at: node.at })
}

fn warn_about(capability: &Capability, at: Position, report: &mut Report<'_>) {
    let class = capability.class();
    if let Class::Other(name) = class {
        let message = format!(
            "expected a known class, found `{name}`: it counts as a mutation and grants nothing"
        );
        match suggestion(name, Class::KNOWN.iter().map(Class::as_str)) {
            Some(near) => report.add_with_hint(
                &codes::CAPABILITY_CLASS_UNKNOWN,
                at,
                message,
                format!("did you mean `{near}`?"),
            ),
            None => report.add(&codes::CAPABILITY_CLASS_UNKNOWN, at, message),
        }
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
        if let Some(node) = fields.take(key) {
            let label = fields.name(key);
            let value = scopes(node, &label, class, report);
            parts.push((key, class.clone(), Given { value, at: node.at }));
        }
    }
    GivenRequires { parts }
}

/// A list of scopes of one class.
pub(crate) fn scopes(
    node: &Node,
    label: &str,
    class: &Class,
    report: &mut Report<'_>,
) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, at) in texts(node, label, report) {
        match Capability::of(class.clone(), found) {
            Ok(capability) => {
                warn_about(&capability, at, report);
                value.insert(capability);
            }
            Err(error) => {
                let message = format!("in `{label}`: {error}");
                // A frequent slip: the whole capability where only its scope belongs.
                match found.strip_prefix(&format!("{class}:")) {
                    Some(rest) => report.add_with_hint(
                        &codes::CAPABILITY_INVALID,
                        at,
                        message,
                        format!("write {rest}"),
                    ),
                    None => report.add(&codes::CAPABILITY_INVALID, at, message),
                }
            }
        }
    }
    value
}

/// `requires` of contracts and actions.
pub(crate) fn requires(fields: &mut Fields<'_>, report: &mut Report<'_>) -> GivenRequires {
    let label = fields.name("requires");
    let Some(node) = fields.take("requires") else {
        return GivenRequires::default();
    };
    let Some(mut inner) = Fields::spelled(node, &label, fields.spelling(), report) else {
        return GivenRequires::default();
    };
    let parts = requires_parts(&mut inner, Class::required(), report);
    inner.finish(report);
    parts
}

pub(crate) fn approval(
    fields: &mut Fields<'_>,
    report: &mut Report<'_>,
) -> Option<Given<Approval>> {
    let label = fields.name("approval");
    let node = fields.take("approval")?;
    let value = word(
        node,
        &label,
        &["auto", "on-mutate", "always", "policy:<ref>"],
        Approval::parse,
        report,
    )?;
    Some(Given { value, at: node.at })
}

pub(crate) fn risk_level(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<Given<u8>> {
    let label = fields.name("risk_level");
    let node = fields.take("risk_level")?;
    let value = u8::try_from(integer(node, &label, 0..=3, report)?).ok()?;
    Some(Given { value, at: node.at })
}

pub(crate) fn cost_class(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<CostClass> {
    let label = fields.name("cost_class");
    let node = fields.take("cost_class")?;
    word(node, &label, CostClass::NAMES, CostClass::parse, report)
}

/// A whole number of milliseconds, from 1 to a day.
pub(crate) fn milliseconds(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Given<Duration>> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let label = fields.name(key);
    let node = fields.take(key)?;
    let value = Duration::from_millis(integer(node, &label, 1..=DAY, report)?);
    Some(Given { value, at: node.at })
}

/// `retry`, `retry_override`: all three parts are needed.
pub(crate) fn retry(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Option<Retry> {
    let label = fields.name(key);
    let node = fields.take(key)?;
    let mut inner = Fields::spelled(node, &label, fields.spelling(), report)?;
    let attempts = inner.required("max_attempts", report);
    let attempts =
        attempts.and_then(|node| integer(node, &inner.name("max_attempts"), 1..=100, report));
    let backoff = inner.required("backoff", report);
    let read = |word: &str| match word {
        "fixed" => Some(Backoff::Fixed),
        "exponential" => Some(Backoff::Exponential),
        _ => None,
    };
    let backoff = backoff.and_then(|node| {
        word(
            node,
            &inner.name("backoff"),
            &["fixed", "exponential"],
            read,
            report,
        )
    });
    let initial = inner.required("initial_ms", report);
    let initial =
        initial.and_then(|node| integer(node, &inner.name("initial_ms"), 0..=3_600_000, report));
    inner.finish(report);
    Some(Retry {
        max_attempts: u32::try_from(attempts?).ok()?,
        backoff: backoff?,
        initial: Duration::from_millis(initial?),
    })
}
