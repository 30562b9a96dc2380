//! Generates documents from rules: usual documents, and the same with one wrong or unusual value.
//! Independent of any specification.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use super::rules::{Row, Rule};

/// Documents with usual values.
pub(crate) fn usual(rule: &'static Rule) -> BoxedStrategy<Value> {
    let texts = |samples: &'static [&'static str]| select(samples).prop_map(Value::from).boxed();
    let list = |item: &'static Rule, least: usize| {
        proptest::collection::vec(usual(item), least..3).prop_map(Value::Array)
    };
    match rule {
        Rule::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Rule::Whole(least, most) => {
            let least = (*least).max(0);
            let most = most.unwrap_or(20_000);
            (least..=most).prop_map(Value::from).boxed()
        }
        Rule::Amount => select(vec![json!(0), json!(4), json!(0.25)]).boxed(),
        Rule::Text(samples)
        | Rule::Sized(_, _, samples)
        | Rule::Shaped(_, samples)
        | Rule::SizedShape(_, _, _, samples)
        | Rule::ShapedOrNull(_, samples) => texts(samples),
        Rule::Word(words) => texts(words),
        Rule::Either(rules) => proptest::strategy::Union::new(rules.iter().map(usual)).boxed(),
        Rule::List(item) => list(item, 0).boxed(),
        Rule::NonEmpty(item) => list(item, 1).boxed(),
        Rule::Set(item) => list(item, 0).prop_map(without_repetitions).boxed(),
        Rule::Each(member) => (select(vec!["accept", "x-trace"]), usual(member))
            .prop_map(|(key, value)| json!({ key: value }))
            .boxed(),
        Rule::Anything(samples) | Rule::Mapping(samples) => select(*samples)
            .prop_map(|text| serde_json::from_str(text).expect("a sample is JSON"))
            .boxed(),
        Rule::Closed(rows) | Rule::Open(rows) => {
            let fields: Vec<_> = rows.iter().map(field).collect();
            fields
                .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()))
                .boxed()
        }
    }
}

fn field(row: &'static Row) -> BoxedStrategy<Option<(String, Value)>> {
    let value = usual(&row.rule).prop_map(|value| (row.name.to_owned(), value));
    if row.is_required {
        value.prop_map(Some).boxed()
    } else {
        proptest::option::weighted(0.35, value).boxed()
    }
}

fn without_repetitions(list: Value) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in list.as_array().cloned().unwrap_or_default() {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    Value::Array(kept)
}

/// One change of a document.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// A JSON pointer. `-` at its end means after the last item of a list.
    pointer: String,
    /// The new value; `None` removes the old one.
    value: Option<Value>,
}

/// A document with one of its [`changes`].
pub(crate) fn changed(document: &Value, rules: &[&'static Rule], which: Index) -> Value {
    let mut changes = Vec::new();
    for rule in rules {
        collect(rule, document, "", &mut changes);
    }
    let mut document = document.clone();
    apply(&mut document, which.get(&changes));
    document
}

fn apply(document: &mut Value, change: &Change) {
    match &change.value {
        Some(value) => set(document, &change.pointer, value.clone()),
        None => {
            let (parent, key) = change.pointer.rsplit_once('/').expect("a member");
            let parent = document.pointer_mut(parent).expect("its parent is there");
            parent
                .as_object_mut()
                .expect("of a mapping")
                .shift_remove(key);
        }
    }
}

/// Sets the value at the pointer, and creates missing mappings on the way.
pub(crate) fn set(document: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        *document = value;
        return;
    };
    if document.pointer(parent).is_none() {
        set(document, parent, json!({}));
    }
    let key = key.replace("~1", "/").replace("~0", "~");
    match document.pointer_mut(parent).expect("its parent is there") {
        Value::Object(members) => {
            members.insert(key, value);
        }
        Value::Array(items) => match key.parse::<usize>() {
            Ok(index) if index < items.len() => items[index] = value,
            _ => items.push(value),
        },
        other => panic!("{pointer}: {other} has no members"),
    }
}

/// Collects all possible changes of this value in a document.
fn collect(rule: &'static Rule, value: &Value, pointer: &str, changes: &mut Vec<Change>) {
    let mut put = |place: String, value: Option<Value>| {
        changes.push(Change {
            pointer: place,
            value,
        });
    };
    if !pointer.is_empty() {
        for other in others(rule) {
            put(pointer.to_owned(), Some(other));
        }
    }
    match (rule, value) {
        (Rule::List(item) | Rule::Set(item) | Rule::NonEmpty(item), Value::Array(items)) => {
            if let Some(first) = items.first() {
                put(format!("{pointer}/-"), Some(first.clone()));
            }
            for (index, value) in items.iter().enumerate() {
                collect(item, value, &format!("{pointer}/{index}"), changes);
            }
        }
        (Rule::Each(member), Value::Object(members)) => {
            for key in ["", "Host", "a b", "é", "authorization"] {
                put(format!("{pointer}/{key}"), members.values().next().cloned());
            }
            for (key, value) in members {
                collect(member, value, &format!("{pointer}/{key}"), changes);
            }
        }
        (Rule::Closed(rows) | Rule::Open(rows), Value::Object(members)) => {
            put(format!("{pointer}/surplus"), Some(json!(1)));
            for row in *rows {
                let place = format!("{pointer}/{}", row.name);
                if let Some(value) = members.get(row.name) {
                    changes.push(Change {
                        pointer: place.clone(),
                        value: None,
                    });
                    collect(&row.rule, value, &place, changes);
                }
            }
        }
        (Rule::Either(rules), value) => {
            for rule in *rules {
                collect(rule, value, pointer, changes);
            }
        }
        _ => {}
    }
}

/// Unusual values: of every type, at the limits and beyond them.
fn others(rule: &Rule) -> Vec<Value> {
    let mut others = vec![
        json!(null),
        json!(true),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(1.0),
        json!("x"),
        json!(""),
        json!([]),
        json!(["x"]),
        json!({}),
        json!(Map::from_iter([("x".to_owned(), json!(1))])),
    ];
    match rule {
        Rule::Whole(least, most) => {
            others.extend([least.saturating_sub(1), *least].map(Value::from));
            let ends = most.map(|most| [most, most + 1]);
            others.extend(ends.into_iter().flatten().map(Value::from));
            others.extend([99, 101, 86_400_001, 5_000_000_000_i64].map(Value::from));
        }
        Rule::Amount => others.extend([json!(-0.5), json!(1e300)]),
        Rule::Text(_)
        | Rule::Sized(..)
        | Rule::Shaped(..)
        | Rule::SizedShape(..)
        | Rule::ShapedOrNull(..)
        | Rule::Word(_) => others.extend(texts().into_iter().map(Value::from)),
        _ => {}
    }
    others
}

fn texts() -> Vec<String> {
    let long = [64, 65, 80, 81, 2000, 2001].map(|count| "a".repeat(count));
    let odd = [
        " ",
        "a ",
        " a",
        "A",
        "a b",
        "a-",
        "-a",
        "a.",
        "a..b",
        "a_b",
        "..",
        "é",
        "*",
        "a\u{202e}b",
        "a\u{7}b",
        "a\nb",
        "a/b",
        "/a",
        "//a",
        "https://api.example/a?b=c",
        "http://api.example",
        "https://other.example",
        "${input.a",
        "${nothing}",
        "$",
        "$$",
        "${secrets.API_KEY}",
        "a ${secrets.API_KEY} b",
        "1",
        "1.0",
        "01.0.0",
        "1.0.0-a..b",
        "1.0.0-a+b",
        "v1.0.0",
        "^1.0.0",
        "policy:",
        "policy:é",
        "auto",
        "db:orders",
        "s3x:orders",
        "network:https://api.example",
        "workspace:relative",
        "network:*",
        "a:b:c",
        "a.:b",
        "GET",
        "get",
        "HEAD",
        "component",
        "price.read@1",
    ];
    long.into_iter().chain(odd.map(str::to_owned)).collect()
}
