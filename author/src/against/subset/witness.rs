//! Tries values, for keywords that can't be compared. A value that is valid in the inner schema,
//! but not under the keyword of the outer schema, proves a difference. If no such value is found,
//! nothing is proved.

use serde_json::{Map, Value, json};
use toolward_contract::NoScope;
use toolward_contract::schema::Schema;

use super::place::{SchemaPlace, refers_elsewhere};
use super::{Comparison, What};

/// Root keywords into which references may lead.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The most properties of a schema that get a value.
const MAX_PROPERTIES: usize = 64;

/// Texts of many forms. Longer texts are made if `minLength` requires them.
const TEXTS: [&str; 9] = ["", "a", "A", "0", " ", "-", "é", "a b", "abcdefghij"];

impl Comparison<'_> {
    /// Returns [`What::Added`] if a value proves that the keyword of the outer schema forbids what
    /// the inner schema allows; otherwise [`What::Unclear`].
    pub(super) fn judged(
        &mut self,
        keyword: &'static str,
        inner: &SchemaPlace<'_>,
        outer: &SchemaPlace<'_>,
    ) -> What {
        let Some(left) = self.judgements.checked_sub(1) else {
            return What::Unclear(keyword);
        };
        self.judgements = left;
        let (inner_root, outer_root) = self.roots;
        let compile = |schema: Option<Value>| Schema::compile(&schema?, &NoScope).ok();
        let own = compile(standalone(inner.schema, inner_root));
        let other = compile(part(keyword, outer).and_then(|part| standalone(&part, outer_root)));
        let (Some(own), Some(other)) = (own, other) else {
            return What::Unclear(keyword);
        };
        let shows = |value: &Value| own.validate(value).is_ok() && other.validate(value).is_err();
        match values(inner).iter().any(shows) {
            true => What::Added(keyword),
            false => What::Unclear(keyword),
        }
    }
}

/// Returns the keyword together with the keywords on which it depends.
fn part(keyword: &str, outer: &SchemaPlace<'_>) -> Option<Value> {
    let beside: &[&str] = match keyword {
        "additionalProperties" => &["properties", "patternProperties"],
        "items" => &["prefixItems"],
        "contains" | "minContains" | "maxContains" => &["contains", "minContains", "maxContains"],
        "if" | "then" | "else" => &["if", "then", "else"],
        "$dynamicRef" | "unevaluatedItems" | "unevaluatedProperties" => return None,
        _ => &[],
    };
    let members = outer.schema.as_object()?.iter();
    let taken = members.filter(|(key, _)| *key == keyword || beside.contains(&key.as_str()));
    Some(Value::Object(
        taken.map(|(key, one)| (key.clone(), one.clone())).collect(),
    ))
}

/// Returns the schema with the definitions of its root, if it refers to nothing else.
fn standalone(schema: &Value, root: &Value) -> Option<Value> {
    if refers_elsewhere(schema, &DEFINITIONS) {
        return None;
    }
    let mut whole = match schema {
        Value::Object(members) => members.clone(),
        other => return Some(other.clone()),
    };
    for key in DEFINITIONS {
        if let Some(definitions) = root.get(key) {
            whole.insert(key.to_owned(), definitions.clone());
        }
    }
    Some(Value::Object(whole))
}

/// Returns values of each type to try.
fn values(inner: &SchemaPlace<'_>) -> Vec<Value> {
    let mut values = scalars(inner);
    if let Some(listed) = inner.values() {
        values.extend(listed.into_iter().cloned());
    }
    let mut lists = vec![json!([])];
    for value in &values {
        let least = inner.get("minItems").and_then(Value::as_u64).unwrap_or(1);
        let count = usize::try_from(least.clamp(1, 16)).unwrap_or(1);
        lists.push(Value::from(vec![value.clone(); count]));
    }
    let objects = objects(inner, &values);
    values.extend(lists);
    values.extend(objects);
    values
}

fn scalars(inner: &SchemaPlace<'_>) -> Vec<Value> {
    let mut values: Vec<Value> = TEXTS.iter().copied().map(Value::from).collect();
    let least = inner.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let least = usize::try_from(least.min(4096)).unwrap_or(0);
    for text in ["a", "0", " "] {
        values.push(Value::from(text.repeat(least)));
    }
    values.extend([json!(null), json!(true), json!(false)]);
    for number in [-1, 0, 1, 2, 3, 5, 7, 11] {
        values.push(Value::from(number));
    }
    values.push(json!(0.5));
    for keyword in ["minimum", "maximum"] {
        if let Some(bound) = inner.get(keyword) {
            values.push(bound.clone());
            let near = bound.as_i64().into_iter();
            let near = near.flat_map(|bound| [bound.saturating_sub(1), bound.saturating_add(1)]);
            values.extend(near.map(Value::from));
        }
    }
    values
}

/// Returns objects: with the required properties, with each property, with all properties, and with
/// an unnamed property.
fn objects(inner: &SchemaPlace<'_>, values: &[Value]) -> Vec<Value> {
    let named = inner.properties().take(MAX_PROPERTIES);
    let samples: Map<String, Value> = named
        .map(|(name, schema)| (name.clone(), sample(schema)))
        .collect();
    let required = inner.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let least: Map<String, Value> = required
        .map(|name| {
            let value = samples.get(name).cloned();
            (name.to_owned(), value.unwrap_or(Value::Null))
        })
        .collect();
    let with = |name: &str, value: &Value| {
        let mut object = least.clone();
        object.insert(name.to_owned(), value.clone());
        Value::Object(object)
    };
    let mut objects = vec![Value::Object(least.clone()), Value::Object(samples.clone())];
    objects.extend(samples.iter().map(|(name, value)| with(name, value)));
    objects.extend(values.iter().map(|value| with("unnamed", value)));
    let names = TEXTS.iter().filter(|name| !samples.contains_key(**name));
    objects.extend(names.map(|name| with(name, &Value::Null)));
    objects
}

/// Returns a value of a simple schema.
fn sample(schema: &Value) -> Value {
    let place = SchemaPlace::root(schema);
    if let Some(first) = place.values().and_then(|values| values.first().copied()) {
        return first.clone();
    }
    match place.types().first().copied() {
        Some("string") => {
            let least = place.get("minLength").and_then(Value::as_u64).unwrap_or(1);
            Value::from("a".repeat(usize::try_from(least.min(4096)).unwrap_or(1)))
        }
        Some("number" | "integer") => place.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => Value::Null,
    }
}
