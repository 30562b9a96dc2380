//! Converts a schema to one plain object by merging compositions at the root, for model APIs that
//! refuse them there. The plain object accepts every object that the real schema accepts, with one
//! exception: if only some branches describe a property, their restrictions apply to all objects.
//! The host validates by the real schema.

use serde_json::{Map, Value, json};

use super::inline::{can_add, is_mark};
use super::walk::{is_composition, targets};

type Keywords = Map<String, Value>;

/// How many bytes references at the root may add. Many branches may each refer to the same large
/// definition.
const MAX_ADDED_BYTES: usize = 32 * 1024;
/// How many references at the root are followed in a row.
const MAX_FOLLOWED: usize = 16;

/// The first keyword at the root that is not allowed in a plain object.
pub(super) fn composed(schema: &Value) -> Option<&str> {
    let mut keywords = schema.as_object()?.keys().map(String::as_str);
    keywords.find(|keyword| is_composition(keyword))
}

/// The plain object for a schema; `None` if the schema accepts no object.
pub(super) fn plain(root: &Value) -> Option<Keywords> {
    let mut flattening = Flattening {
        root,
        followed: 0,
        left: MAX_ADDED_BYTES,
    };
    let mut object = match composed(root) {
        None if accepts_objects(root) => root.as_object().cloned().unwrap_or_default(),
        _ => flattening.flatten(root)?,
    };
    object.insert("type".to_owned(), "object".into());
    if let Some(definitions) = root.get("$defs") {
        object.insert("$defs".to_owned(), definitions.clone());
    }
    Some(object)
}

fn accepts_objects(schema: &Value) -> bool {
    let Value::Object(keywords) = schema else {
        return *schema == Value::Bool(true);
    };
    let by_type = match keywords.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    let mut values = keywords
        .get("const")
        .into_iter()
        .chain(list(keywords, "enum"))
        .peekable();
    by_type && (values.peek().is_none() || values.any(Value::is_object))
}

struct Flattening<'r> {
    root: &'r Value,
    /// How many references were followed to this point.
    followed: usize,
    left: usize,
}

impl<'r> Flattening<'r> {
    fn flatten(&mut self, schema: &'r Value) -> Option<Keywords> {
        if !accepts_objects(schema) {
            return None;
        }
        let Value::Object(keywords) = schema else {
            return Some(Keywords::new());
        };
        let mut object: Keywords = keywords
            .iter()
            .filter(|(keyword, _)| !is_composition(keyword) && *keyword != "$defs")
            .map(|(keyword, value)| (keyword.clone(), value.clone()))
            .collect();
        let unevaluated = object.shift_remove("unevaluatedProperties");
        for target in targets(schema, self.root) {
            object = both(object, self.follow(target)?);
        }
        for part in list(keywords, "allOf") {
            object = both(object, self.flatten(part)?);
        }
        for choice in ["anyOf", "oneOf"] {
            if keywords.contains_key(choice) {
                let branches = list(keywords, choice).filter_map(|branch| self.flatten(branch));
                object = both(object, either(branches.collect())?);
            }
        }
        if let Some(condition) = keywords.get("if") {
            let branches = ["then", "else"].into_iter().filter_map(|branch| {
                let branch = keywords.get(branch);
                branch.map_or_else(|| Some(Keywords::new()), |branch| self.flatten(branch))
            });
            object = both(object, either(branches.collect())?);
            // The condition names properties, but it does not restrict their values.
            let names = condition.get("properties").and_then(Value::as_object);
            let names = names.into_iter().flat_map(Map::keys);
            let names: Keywords = names.map(|name| (name.clone(), json!({}))).collect();
            let properties = Map::from_iter([("properties".to_owned(), names.into())]);
            object = both(object, properties);
        }
        let dependent = keywords.get("dependentSchemas").and_then(Value::as_object);
        for (_, schema) in dependent.into_iter().flatten() {
            if let Some(branch) = self.flatten(schema) {
                object = both(object, either(vec![branch, Keywords::new()])?);
            }
        }
        if let Some(rest) = unevaluated {
            object.entry("additionalProperties").or_insert(rest);
        }
        Some(object)
    }

    fn follow(&mut self, target: &'r Value) -> Option<Keywords> {
        match self.left.checked_sub(target.to_string().len()) {
            Some(left) if self.followed < MAX_FOLLOWED => self.left = left,
            _ => return Some(Keywords::new()),
        }
        self.followed += 1;
        let object = self.flatten(target);
        self.followed -= 1;
        object
    }
}

fn list<'k>(keywords: &'k Keywords, keyword: &str) -> impl Iterator<Item = &'k Value> {
    let items = keywords.get(keyword).and_then(Value::as_array);
    items.into_iter().flatten()
}

fn is_closed(object: &Keywords) -> bool {
    object.get("additionalProperties") == Some(&Value::Bool(false))
        && !object.contains_key("patternProperties")
}

fn members(object: &mut Keywords, keyword: &str) -> Keywords {
    match object.shift_remove(keyword) {
        Some(Value::Object(members)) => members,
        _ => Keywords::new(),
    }
}

/// A schema of the objects that both accept.
fn both(mut one: Keywords, mut other: Keywords) -> Keywords {
    let closed = (is_closed(&one), is_closed(&other));
    for keyword in ["properties", "patternProperties"] {
        let (mut ours, mut theirs) = (members(&mut one, keyword), members(&mut other, keyword));
        if keyword == "properties" && closed.1 {
            ours.retain(|name, _| theirs.contains_key(name));
        }
        if keyword == "properties" && closed.0 {
            theirs.retain(|name, _| ours.contains_key(name));
        }
        for (name, schema) in theirs {
            let schema = match ours.get_mut(&name) {
                Some(ours) => all_of(std::mem::take(ours), schema),
                None => schema,
            };
            ours.insert(name, schema);
        }
        if !ours.is_empty() {
            one.insert(keyword.to_owned(), ours.into());
        }
    }
    let mut required = match one.shift_remove("required") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    for name in list(&other, "required") {
        if !required.contains(name) {
            required.push(name.clone());
        }
    }
    if !required.is_empty() {
        one.insert("required".to_owned(), required.into());
    }
    if let Some(theirs) = other.shift_remove("additionalProperties") {
        let ours = one.shift_remove("additionalProperties");
        let rest = ours.map_or(theirs.clone(), |ours| all_of(ours, theirs));
        one.insert("additionalProperties".to_owned(), rest);
    }
    for (keyword, value) in other {
        one.entry(keyword).or_insert(value);
    }
    one
}

/// A schema of the objects that at least one branch accepts; `None` if there are no branches.
fn either(mut branches: Vec<Keywords>) -> Option<Keywords> {
    if branches.len() < 2 {
        return branches.pop();
    }
    let mut object = Keywords::new();
    for keyword in ["properties", "patternProperties"] {
        let mut named: Map<String, Value> = Map::new();
        for branch in &mut branches {
            for (name, schema) in members(branch, keyword) {
                let choices = named.entry(name).or_insert_with(|| json!([]));
                if let Value::Array(choices) = choices {
                    choices.push(schema);
                }
            }
        }
        for choices in named.values_mut() {
            if let Value::Array(schemas) = choices {
                *choices = any_of(std::mem::take(schemas));
            }
        }
        if !named.is_empty() {
            object.insert(keyword.to_owned(), named.into());
        }
    }
    let rest = branches.iter().map(|one| one.get("additionalProperties"));
    let rest: Vec<Option<&Value>> = rest.collect();
    let additional = match rest.first().copied().flatten() {
        Some(first) if rest.iter().all(|rest| *rest == Some(first)) => Some(first.clone()),
        // `true` is written, too, so that an `unevaluatedProperties` next to the branches does not
        // replace it.
        _ if rest.iter().flatten().any(|rest| **rest != json!(false)) => Some(json!(true)),
        _ => None,
    };
    if let Some(additional) = additional {
        object.insert("additionalProperties".to_owned(), additional);
    }
    let in_all = |name: &&Value| {
        let mut branches = branches.iter();
        branches.all(|branch| list(branch, "required").any(|other| other == *name))
    };
    let first = branches.first().into_iter();
    let required = first.flat_map(|first| list(first, "required"));
    let required: Vec<Value> = required.filter(in_all).cloned().collect();
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    Some(object)
}

/// Whether a schema matches every value.
fn no_limit(schema: &Value) -> bool {
    *schema == json!({}) || *schema == json!(true)
}

/// The schema of values that match both.
fn all_of(one: Value, other: Value) -> Value {
    if one == other || no_limit(&other) {
        return one;
    }
    if no_limit(&one) {
        return other;
    }
    if one == json!(false) || other == json!(false) {
        return json!(false);
    }
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) if can_add(&one, &other) => {
            for (keyword, value) in other {
                if is_mark(&keyword) || !one.contains_key(&keyword) {
                    one.insert(keyword, value);
                }
            }
            Value::Object(one)
        }
        (one, other) => json!({ "allOf": [one, other] }),
    }
}

/// The schema of values that match one of several.
fn any_of(schemas: Vec<Value>) -> Value {
    let mut choices: Vec<Value> = Vec::new();
    for schema in schemas {
        // `false` means that a branch forbids the property.
        if schema != json!(false) && !choices.contains(&schema) {
            choices.push(schema);
        }
    }
    if choices.len() < 2 {
        return choices.pop().unwrap_or(Value::Bool(false));
    }
    if choices.iter().any(no_limit) {
        return json!({});
    }
    enumerated(&choices).unwrap_or_else(|| json!({ "anyOf": choices }))
}

/// Merges choices of single values, such as the constants in which branches differ, to one `enum`.
fn enumerated(choices: &[Value]) -> Option<Value> {
    let mut values: Vec<&Value> = Vec::new();
    let mut kind = None;
    for choice in choices {
        let keywords = choice.as_object()?;
        let known = ["const", "enum", "type", "description", "title"];
        let own = match (keywords.get("const"), keywords.get("enum")) {
            (Some(value), None) => vec![value],
            (None, Some(Value::Array(values))) => values.iter().collect(),
            _ => return None,
        };
        let other_kind = *kind.get_or_insert(keywords.get("type")) != keywords.get("type");
        if other_kind
            || keywords
                .keys()
                .any(|keyword| !known.contains(&keyword.as_str()))
        {
            return None;
        }
        for value in own {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    Some(match kind.flatten() {
        Some(kind) => json!({ "type": kind, "enum": values }),
        None => json!({ "enum": values }),
    })
}
