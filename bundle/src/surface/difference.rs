//! The fields that differ between two surfaces, as values and as lines for people.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::canonical_text;
use crate::text::visible_line;

/// How many characters of a value a person is shown.
const MAX_TEXT_CHARS: usize = 2000;
/// How many changes a person is shown; the JSON form has all.
const MAX_LINES: usize = 200;
/// How deep objects are compared field by field. Deeper objects are compared as a whole.
const MAX_DEPTH: usize = 32;

/// The difference between two surfaces, in the order of kind, id and field.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct SurfaceDifference {
    /// Empty if the surfaces are equal.
    pub changes: Vec<SurfaceChange>,
}

/// One change. All values are untrusted text; [`Display`](fmt::Display) makes them safe to show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SurfaceChange {
    /// `bundle`, `tool`, `driver`, `action`, `prompt` or `resource`.
    pub kind: &'static str,
    /// The owner of the field: the tool's id and major version, the driver's id, the path of a
    /// file; empty for the bundle.
    pub id: String,
    /// The keys from the outside in, such as `inputs`, `properties`, `name`; empty if the whole
    /// owner is new or gone.
    pub field: Vec<String>,
    /// The earlier value, if any.
    pub from: Option<Value>,
    /// The new value, if any.
    pub to: Option<Value>,
}

impl SurfaceDifference {
    /// Whether the surfaces are equal.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for SurfaceDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for change in self.changes.iter().take(MAX_LINES) {
            writeln!(f, "{change}")?;
        }
        match self.changes.len().saturating_sub(MAX_LINES) {
            0 => Ok(()),
            more => writeln!(f, "… and {more} more changes"),
        }
    }
}

impl fmt::Display for SurfaceChange {
    /// `tool demo.greet@1: description: "Greets." → "Greets everybody."`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        if !self.id.is_empty() {
            write!(f, " {}", visible_line(&self.id, MAX_TEXT_CHARS))?;
        }
        if !self.field.is_empty() {
            write!(
                f,
                ": {}",
                visible_line(&self.field.join("."), MAX_TEXT_CHARS)
            )?;
        }
        let show = |value: &Value| visible_line(&canonical_text(value), MAX_TEXT_CHARS);
        match (&self.from, &self.to) {
            (None, Some(to)) => write!(f, ": new: {}", show(to)),
            (Some(_), None) if self.field.is_empty() => f.write_str(": gone"),
            (Some(from), None) => write!(f, ": gone: {}", show(from)),
            (Some(from), Some(to)) => write!(f, ": {} → {}", show(from), show(to)),
            (None, None) => Ok(()),
        }
    }
}

/// The parts of a surface whose entries have ids, each with the name for one entry.
const PARTS: &[(&str, &str)] = &[
    ("tools", "tool"),
    ("drivers", "driver"),
    ("actions", "action"),
    ("prompts", "prompt"),
    ("resources", "resource"),
];

/// Compares two surfaces.
pub(super) fn between(old: &Value, new: &Value) -> SurfaceDifference {
    let mut changes = Vec::new();
    for key in keys(old, new) {
        let (from, to) = (old.get(key), new.get(key));
        if !PARTS.iter().any(|(part, _)| part == key) {
            compare(
                "bundle",
                "",
                &mut vec![key.clone()],
                (from, to),
                &mut changes,
            );
        }
    }
    for (part, kind) in PARTS {
        let (old, new) = (part_of(old, part), part_of(new, part));
        for id in keys(old, new) {
            let both = (old.get(id), new.get(id));
            compare(kind, id, &mut Vec::new(), both, &mut changes);
        }
    }
    SurfaceDifference { changes }
}

fn part_of<'a>(surface: &'a Value, part: &str) -> &'a Value {
    surface.get(part).unwrap_or(&Value::Null)
}

/// The keys of both objects, each once, sorted.
fn keys<'a>(old: &'a Value, new: &'a Value) -> BTreeSet<&'a String> {
    let objects = [old.as_object(), new.as_object()];
    objects
        .into_iter()
        .flatten()
        .flat_map(|map| map.keys())
        .collect()
}

fn compare(
    kind: &'static str,
    id: &str,
    field: &mut Vec<String>,
    (from, to): (Option<&Value>, Option<&Value>),
    changes: &mut Vec<SurfaceChange>,
) {
    if let (Some(from), Some(to)) = (from, to) {
        if canonical_text(from) == canonical_text(to) {
            return;
        }
        if from.is_object() && to.is_object() && field.len() < MAX_DEPTH {
            for key in keys(from, to) {
                field.push(key.clone());
                compare(kind, id, field, (from.get(key), to.get(key)), changes);
                field.pop();
            }
            return;
        }
    }
    changes.push(SurfaceChange {
        kind,
        id: id.to_owned(),
        field: field.clone(),
        from: from.cloned(),
        to: to.cloned(),
    });
}
