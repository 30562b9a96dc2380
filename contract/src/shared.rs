//! Readers of the fields that several kinds of documents have: name, description, version,
//! capabilities, approval, risk, retry.

use std::time::Duration;

use crate::capability::{Capability, CapabilitySet, Class};
use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::id::ToolId;
use crate::source::{Content, FieldReader, MappingReader, PlacedValue, nearest};
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

/// The reason why events have no effect.
pub(crate) const NO_EVENTS: &str = "this host fires no events";

/// Warns of a field that is stored but has no effect. `instead` describes what happens instead.
pub(crate) fn without_effect(name: &str, at: Position, instead: &str, report: &FileReport<'_>) {
    let message = format!("expected a field that has an effect, found `{name}`: {instead}");
    report.add(&codes::FIELD_WITHOUT_EFFECT, at, message);
}

/// Checks `schema`, which the public implementation of the AIPs writes into every document.
pub(crate) fn schema(field: &FieldReader<'_>, known: &[&str]) {
    let words: Vec<(&str, ())> = known.iter().map(|word| (*word, ())).collect();
    field.word(&words, &codes::WRONG_VALUE);
}

/// Reads `mutates`: a list of `class:scope`; `None` if it is missing or an entry is invalid.
pub(crate) fn mutates(fields: &mut MappingReader<'_>) -> Option<PlacedValue<CapabilitySet>> {
    let field = fields.take("mutates")?;
    let value = fields.report.unbroken(|| changes(&field))?;
    Some(field.placed(value))
}

fn changes(field: &FieldReader<'_>) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, item) in field.texts() {
        match Capability::parse(found) {
            Ok(capability) => {
                warn_about(&capability, &item);
                value.insert(capability);
            }
            Err(error) => match Capability::of_no_scope(found) {
                Some(capability) => {
                    let message = format!(
                        "expected a scope of its class, found `{capability}`: it counts as a mutation and grants nothing"
                    );
                    let hint = "where a file is meant, write its absolute path".to_owned();
                    item.note_with_hint(&codes::CAPABILITY_SCOPE_UNKNOWN, message, hint);
                    value.insert(capability);
                }
                None => {
                    let message = format!("in `{}`: {error}", field.name);
                    item.note(&codes::CAPABILITY_INVALID, message);
                }
            },
        }
    }
    value
}

fn warn_about(capability: &Capability, field: &FieldReader<'_>) {
    let class = capability.class();
    if let Class::Other(name) = class {
        let message = format!(
            "expected a known class, found `{name}`: it counts as a mutation and grants nothing"
        );
        let near = nearest(name, Class::KNOWN.iter().map(Class::as_str));
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        field.note_with_hint(&codes::CAPABILITY_CLASS_UNKNOWN, message, hint);
    }
    if capability.is_wildcard() && !class.allows_wildcard() {
        let message = format!(
            "expected names, found `{capability}`: a wildcard is never granted for tools and secrets"
        );
        field.note(&codes::WILDCARD_NEVER_GRANTED, message);
    }
}

/// The subfields of `requires`. A subfield that the document omits is not in `parts`. An empty
/// subfield means no capabilities.
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

/// Takes the subfields in `known` out of a mapping. `known` is [`Class::required`] or
/// [`Class::required_ours`].
pub(crate) fn requires_parts(
    fields: &mut MappingReader<'_>,
    known: impl Iterator<Item = (&'static str, &'static Class)>,
) -> RequiresParts {
    let mut parts = Vec::new();
    for (key, class) in known {
        if let Some(field) = fields.take(key)
            && let Some(value) = fields.report.unbroken(|| scopes(&field, class))
        {
            parts.push((key, class.clone(), field.placed(value)));
        }
    }
    RequiresParts { parts }
}

/// Reads a list of scopes of one class.
pub(crate) fn scopes(field: &FieldReader<'_>, class: &Class) -> CapabilitySet {
    let mut value = CapabilitySet::new();
    for (found, item) in field.texts() {
        match Capability::of(class.clone(), found) {
            Ok(capability) => {
                warn_about(&capability, &item);
                value.insert(capability);
            }
            Err(error) => {
                let message = format!("in `{}`: {error}", field.name);
                // A frequent mistake is to write the whole capability instead of its scope.
                let rest = found.strip_prefix(&format!("{class}:"));
                let hint = rest.map(|rest| format!("write {rest}"));
                item.note_with_hint(&codes::CAPABILITY_INVALID, message, hint);
            }
        }
    }
    value
}

/// Reads `requires` of contracts and actions.
pub(crate) fn requires(fields: &mut MappingReader<'_>) -> RequiresParts {
    fields.within("requires", |inner| requires_parts(inner, Class::required()))
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
pub(crate) fn milliseconds(fields: &mut MappingReader<'_>, key: &'static str) -> Option<Duration> {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    fields.integer(key, 1..=DAY).map(Duration::from_millis)
}

/// The default wait before the first retry, which gives a failed service a moment.
const DEFAULT_INITIAL_MS: u64 = 100;

/// `retry` of a contract (AIP-14): `initial_ms` may be left out.
pub(crate) fn retry(fields: &mut MappingReader<'_>) -> Option<Retry> {
    fields.within("retry", |inner| {
        let backoff = inner.require("backoff", self::backoff);
        attempts(inner, backoff)
    })
}

/// `retry_override` of a driver or of an entry (AIP-30): `backoff` may be left out, too.
pub(crate) fn retry_override(fields: &mut MappingReader<'_>) -> Option<Retry> {
    fields.within("retry_override", |inner| {
        let backoff = match inner.take("backoff") {
            Some(field) => self::backoff(&field),
            None => Some(Backoff::Fixed),
        };
        attempts(inner, backoff)
    })
}

fn backoff(field: &FieldReader<'_>) -> Option<Backoff> {
    let words = [
        ("fixed", Backoff::Fixed),
        ("exponential", Backoff::Exponential),
    ];
    field.word(&words, &codes::WRONG_VALUE)
}

fn attempts(fields: &mut MappingReader<'_>, backoff: Option<Backoff>) -> Option<Retry> {
    let attempts = fields.require("max_attempts", |field| field.integer(1..=100));
    let initial = match fields.take("initial_ms") {
        Some(field) => field.integer(0..=3_600_000),
        None => Some(DEFAULT_INITIAL_MS),
    };
    Some(Retry {
        max_attempts: u32::try_from(attempts?).ok()?,
        backoff: backoff?,
        initial: Duration::from_millis(initial?),
    })
}

/// Whether a character changes the look of a text: a control, a bidirectional control, a line or
/// paragraph separator, a byte order mark or a tag character.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Reads text for people: of limited length, without deceptive characters. `lines` allows line
/// feeds and tabs.
pub(crate) fn prose(
    field: &FieldReader<'_>,
    length: std::ops::RangeInclusive<usize>,
    lines: bool,
) -> Option<String> {
    let found = field.text()?;
    let count = found.trim().chars().count();
    if !length.contains(&count) {
        let message = format!(
            "expected `{}` to have {} to {} characters, found {count}",
            field.name,
            length.start(),
            length.end()
        );
        return field.refuse(&codes::TEXT_LENGTH, message);
    }
    check_characters(found, field, lines).then(|| found.trim().to_owned())
}

/// Reads text that is not empty and has no deceptive characters.
pub(crate) fn filled(field: &FieldReader<'_>, lines: bool) -> Option<String> {
    let found = field.text()?;
    if found.trim().is_empty() {
        let message = format!("expected `{}` to say something, found nothing", field.name);
        return field.refuse(&codes::TEXT_LENGTH, message);
    }
    shown_text(field, lines)
}

/// Reads text without deceptive characters.
pub(crate) fn shown_text(field: &FieldReader<'_>, lines: bool) -> Option<String> {
    let found = field.text()?;
    check_characters(found, field, lines).then(|| found.to_owned())
}

pub(crate) fn check_characters(found: &str, field: &FieldReader<'_>, lines: bool) -> bool {
    let bad = found
        .trim()
        .chars()
        .find(|&c| is_deceptive(c) && !(lines && matches!(c, '\n' | '\t')));
    if let Some(bad) = bad {
        let message = format!(
            "expected `{}` without control or bidirectional characters, found U+{:04X}",
            field.name,
            u32::from(bad)
        );
        field.note(&codes::TEXT_CONTROL_CHARACTER, message);
    }
    bad.is_none()
}

/// Reads the required `name`: one line of 1 to 80 characters.
pub(crate) fn name(fields: &mut MappingReader<'_>) -> Option<String> {
    fields.require("name", |field| prose(field, 1..=80, false))
}

pub(crate) fn description(fields: &mut MappingReader<'_>) -> Option<String> {
    fields.require("description", |field| prose(field, 1..=2000, true))
}

pub(crate) fn version(field: &FieldReader<'_>) -> Option<semver::Version> {
    // An unquoted `1.0` is a number. Quoting it would not make it a version, so the hint shows
    // three numbers.
    let number;
    let found = match &field.content {
        Content::Number(found) => {
            number = found.to_string();
            number.as_str()
        }
        _ => field.text()?,
    };
    let name = &field.name;
    match semver::Version::parse(found) {
        Ok(version) => Some(version),
        Err(error) => {
            let message = format!(
                "expected `{name}` to be a semantic version such as 1.0.0, found {found:?} ({error})"
            );
            // A number loses the zeros at its end: `1.10` is read as 1.1. So only a whole number
            // gets a hint.
            let is_exact = !matches!(field.content, Content::Number(_))
                || found
                    .strip_suffix(".0")
                    .unwrap_or(found)
                    .parse::<u64>()
                    .is_ok();
            let whole = completed(found).filter(|_| is_exact);
            let hint = whole.map(|whole| format!("write `{name}: {whole}`"));
            field.note_with_hint(&codes::VERSION_INVALID, message, hint);
            None
        }
    }
}

/// Completes `1` or `1.0` to a version of three numbers.
fn completed(found: &str) -> Option<semver::Version> {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = found.split('.').collect();
    let missing = 3_usize
        .checked_sub(parts.len())
        .filter(|missing| *missing > 0)?;
    if !parts.iter().all(|part| plain(part)) {
        return None;
    }
    semver::Version::parse(&format!("{found}{}", ".0".repeat(missing))).ok()
}

/// A list of short labels, such as tags.
pub(crate) fn labels(fields: &mut MappingReader<'_>, key: &'static str) -> Vec<String> {
    fields.or_default(key, shown_texts)
}

/// The texts of a list that have no deceptive characters.
pub(crate) fn shown_texts(field: &FieldReader<'_>) -> Vec<String> {
    let mut texts = field.texts();
    texts.retain(|(text, item)| check_characters(text, item, false));
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// Reads a name below `metadata`: 1 to 64 letters, digits, `_`, `-` and `.`.
pub(crate) fn plain_name(field: &FieldReader<'_>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let expected = "to have 1 to 64 letters, digits, `_`, `-` and `.`";
    metadata(field, expected, |name| {
        ((1..=64).contains(&name.len()) && name.chars().all(plain)).then(|| name.to_owned())
    })
}

/// Reads a text below `metadata` with `read`, and reports a text that it refuses.
pub(crate) fn metadata<T>(
    field: &FieldReader<'_>,
    expected: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let text = match &field.content {
        Content::Text(text) => Some(text),
        _ => None,
    };
    text.and_then(|text| read(text)).or_else(|| {
        let short = text.filter(|text| text.chars().count() <= 80);
        let found = short.map_or_else(|| field.kind().to_string(), |text| format!("{text:?}"));
        let message = format!("expected `{}` {expected}, found {found}", field.name);
        field.refuse(&codes::METADATA_INVALID, message)
    })
}
