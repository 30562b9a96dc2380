//! A schema with the pointer to it, and the facts that follow from this schema alone. Also compares
//! bounds of numbers, lengths and counts.

use serde_json::{Map, Value};

use toolward_contract::schema::escape;

use super::{Comparison, What};

/// The types of values. `number` includes `integer`.
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];

/// Whether a schema accepts every value.
pub(super) fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(keywords) => keywords.is_empty(),
        _ => false,
    }
}

/// Whether a value contains a reference that does not lead to a member of one of these root
/// keywords.
pub(super) fn refers_elsewhere(value: &Value, roots: &[&str]) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| refers_elsewhere(item, roots)),
        Value::Object(object) => object.iter().any(|(key, member)| {
            let reference = matches!(key.as_str(), "$ref" | "$dynamicRef");
            let known = |text: &str| {
                let path = text.strip_prefix("#/").unwrap_or_default();
                path.split_once('/')
                    .is_some_and(|(root, name)| roots.contains(&root) && !name.contains('/'))
            };
            reference && !member.as_str().is_some_and(known) || refers_elsewhere(member, roots)
        }),
        _ => false,
    }
}

/// A schema and the pointer to it.
pub(super) struct SchemaPlace<'s> {
    pub(super) schema: &'s Value,
    pub(super) pointer: String,
    pub(super) depth: usize,
}

impl<'s> SchemaPlace<'s> {
    pub(super) fn root(schema: &'s Value) -> Self {
        Self {
            schema,
            pointer: String::new(),
            depth: 0,
        }
    }

    pub(super) fn below(&self, keyword: &str, schema: &'s Value) -> Self {
        Self {
            schema,
            pointer: format!("{}/{keyword}", self.pointer),
            depth: self.depth + 1,
        }
    }

    pub(super) fn property(&self, name: &str, schema: &'s Value) -> Self {
        self.below(&format!("properties/{}", escape(name)), schema)
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.schema.get(keyword)
    }

    pub(super) fn properties(&self) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
        let properties = self.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(Map::iter)
    }

    /// The schema of a property that `properties` names.
    pub(super) fn named(&self, name: &str) -> Option<&'s Value> {
        self.get("properties")?.get(name)
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        let required = self.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|one| one == name))
    }

    /// Returns the values that the schema lists, except values of a type that it does not allow.
    pub(super) fn values(&self) -> Option<Vec<&'s Value>> {
        let mut listed: Vec<&Value> = match (self.get("const"), self.get("enum")) {
            (Some(one), _) => vec![one],
            (None, Some(Value::Array(values))) => values.iter().collect(),
            _ => return None,
        };
        if let Some(types) = self.named_types() {
            listed.retain(|value| {
                let own = type_of(value);
                types.contains(&own) || own == "integer" && types.contains(&"number")
            });
        }
        Some(listed)
    }

    /// The types of its values.
    pub(super) fn types(&self) -> Vec<&'s str> {
        match self.values() {
            Some(values) => values.into_iter().map(type_of).collect(),
            None => self.named_types().unwrap_or_else(|| TYPES.to_vec()),
        }
    }

    /// Whether a value of it may have one of these types.
    pub(super) fn may_be(&self, types: &[&str]) -> bool {
        self.types().iter().any(|own| types.contains(own))
    }

    /// Whether types, listed values and required properties show that the two schemas have no value
    /// in common.
    pub(super) fn is_apart_from(&self, other: &SchemaPlace<'_>) -> bool {
        if self.get("$ref").is_some() || other.get("$ref").is_some() {
            return false;
        }
        if let (Some(own), Some(others)) = (self.values(), other.values()) {
            return !own.iter().any(|value| others.contains(value));
        }
        let number = |name: &str| matches!(name, "number" | "integer");
        let others = other.types();
        let meets = |own: &&str| {
            let mut others = others.iter();
            others.any(|other| other == own || number(other) && number(own))
        };
        !self.types().iter().any(meets) || self.is_other_variant_than(other)
    }

    /// Whether both schemas accept only objects, and both require a property for which they have no
    /// value in common.
    fn is_other_variant_than(&self, other: &SchemaPlace<'_>) -> bool {
        let only_objects = self.types() == ["object"] && other.types() == ["object"];
        only_objects
            && self.properties().any(|(name, schema)| {
                let both = self.requires(name) && other.requires(name);
                both && other.named(name).is_some_and(|theirs| {
                    SchemaPlace::root(schema).is_apart_from(&SchemaPlace::root(theirs))
                })
            })
    }

    fn named_types(&self) -> Option<Vec<&'s str>> {
        match self.get("type")? {
            Value::String(name) => Some(vec![name]),
            Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
            _ => None,
        }
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        // JSON Schema counts 1.0 as an integer.
        Value::Number(number) if number.as_f64().is_some_and(|one| one.fract() != 0.0) => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the schema to which a schema's reference leads, or the schema itself if it has no
/// reference. `None` if the reference does not lead to a schema in the document, or if the schema
/// has other keywords that constrain values.
pub(super) fn target<'s>(place: &SchemaPlace<'s>, root: &'s Value) -> Option<SchemaPlace<'s>> {
    const BESIDE: [&str; 5] = ["$defs", "$id", "$ref", "$schema", "definitions"];
    let Some(reference) = place.get("$ref") else {
        return Some(SchemaPlace {
            pointer: place.pointer.clone(),
            ..*place
        });
    };
    let mut keys = place.schema.as_object()?.keys();
    keys.all(|key| BESIDE.contains(&key.as_str()))
        .then_some(())?;
    let pointer = reference.as_str()?.strip_prefix('#')?;
    Some(SchemaPlace {
        schema: root.pointer(pointer)?,
        pointer: pointer.to_owned(),
        depth: place.depth + 1,
    })
}

/// The keyword of a bound, and the keyword that excludes the bound itself, if it exists.
type Keyword = (&'static str, Option<&'static str>);

/// The lower and the upper keyword, the types of values that they limit, and a function that
/// measures a value.
type Bounds = (
    Keyword,
    Keyword,
    &'static [&'static str],
    fn(&Value) -> Option<f64>,
);

#[expect(
    clippy::cast_precision_loss,
    reason = "no text of a contract is as long"
)]
const BOUNDS: [Bounds; 4] = [
    (
        ("minimum", Some("exclusiveMinimum")),
        ("maximum", Some("exclusiveMaximum")),
        &["number", "integer"],
        Value::as_f64,
    ),
    (
        ("minLength", None),
        ("maxLength", None),
        &["string"],
        |value| Some(value.as_str()?.chars().count() as f64),
    ),
    (
        ("minItems", None),
        ("maxItems", None),
        &["array"],
        |value| Some(value.as_array()?.len() as f64),
    ),
    (
        ("minProperties", None),
        ("maxProperties", None),
        &["object"],
        |value| Some(value.as_object()?.len() as f64),
    ),
];

/// A bound: its value, and whether the value itself is excluded.
type Bound = (f64, bool);

/// Returns the bound that `keyword` sets, or the bound that the keyword `strict` sets if it is
/// stricter. `strict` excludes the bound itself. `sign` is 1 for lower bounds and -1 for upper
/// bounds.
fn bound(place: &SchemaPlace<'_>, keyword: &str, strict: Option<&str>, sign: f64) -> Option<Bound> {
    let number = |keyword: &str| place.get(keyword).and_then(Value::as_f64);
    let own = number(keyword).map(|value| (value, false));
    let strict = strict.and_then(number).map(|value| (value, true));
    let tighter = |own, strict| match is_tighter(strict, own, sign) {
        true => strict,
        false => own,
    };
    own.into_iter().chain(strict).reduce(tighter)
}

fn is_tighter(one: Bound, other: Bound, sign: f64) -> bool {
    let (a, b) = (one.0 * sign, other.0 * sign);
    a > b || a == b && one.1 && !other.1
}

fn is_within(value: f64, bound: Bound, sign: f64) -> bool {
    let (value, least) = (value * sign, bound.0 * sign);
    value > least || value == least && !bound.1
}

impl<'s> Comparison<'s> {
    pub(super) fn bounds(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        for (lower, upper, types, measure) in BOUNDS {
            if !inner.may_be(types) {
                continue;
            }
            for ((keyword, strict), sign) in [(lower, 1.0), (upper, -1.0)] {
                let Some(limit) = bound(outer, keyword, strict, sign) else {
                    continue;
                };
                let fits = match inner.values() {
                    Some(values) => {
                        let mut measured = values.into_iter().filter_map(measure);
                        measured.all(|value| is_within(value, limit, sign))
                    }
                    // No length or count is less than zero.
                    None if strict.is_none() && sign > 0.0 && limit.0 <= 0.0 => true,
                    None => bound(inner, keyword, strict, sign)
                        .is_some_and(|own| !is_tighter(limit, own, sign)),
                };
                if !fits {
                    self.add(inner, outer, What::Bound(keyword));
                }
            }
        }
        let unique = |place: &SchemaPlace<'_>| place.get("uniqueItems") == Some(&Value::Bool(true));
        if inner.may_be(&["array"]) && unique(outer) && !unique(inner) {
            self.add(inner, outer, What::Bound("uniqueItems"));
        }
    }
}
