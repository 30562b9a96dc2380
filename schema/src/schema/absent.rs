//! Removes nulls that models send for absent properties.

use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::Schema;
use super::walk::{find_part, unescape};

/// How many violations are examined. If a value has more, some nulls stay.
const MAX_VIOLATIONS: usize = 1024;
/// How many nulls are tried one by one if an `anyOf` or `oneOf` does not show the violation's
/// place.
const MAX_TRIED: usize = 16;

impl Schema {
    /// `instance` without each property, at any depth, that is null and that the schema neither
    /// requires nor accepts as null. `None` if there is no such property, as in every valid value,
    /// or if finding the properties could take exponential time. The returned value may still be
    /// invalid.
    pub fn without_absent(&self, instance: &Value) -> Option<Value> {
        let validator = &self.inner.validator;
        if validator.is_valid(instance) || self.unexplained(instance).is_some() {
            return None;
        }
        let mut rest = instance.clone();
        let mut removed: Vec<(String, String)> = Vec::new();
        for error in validator.iter_errors(instance).take(MAX_VIOLATIONS) {
            if error.instance().is_null()
                && let Some((parent, name)) = member(error.instance_path().as_str())
                && take(&mut rest, &parent, &name)
            {
                removed.push((parent, name));
            }
        }
        let mut required: Vec<(String, String)> = Vec::new();
        let mut composed = true;
        for error in validator.iter_errors(&rest).take(MAX_VIOLATIONS) {
            composed &= matches!(
                error.kind(),
                Kind::AnyOf { .. } | Kind::OneOfNotValid { .. }
            );
            if let Kind::Required { property } = error.kind()
                && let Some(name) = property.as_str()
            {
                required.push((error.instance_path().to_string(), name.to_owned()));
            }
        }
        for (parent, name) in removed.extract_if(.., |place| required.contains(place)) {
            put(&mut rest, &parent, name);
        }
        if composed && !validator.is_valid(&rest) {
            self.without_composed(&mut rest, &mut removed);
        }
        (!removed.is_empty()).then_some(rest)
    }

    /// Removes further nulls if the value only violates a composition (`anyOf`, `oneOf`), which
    /// gives no place. Removes only as many nulls as are needed to make the value valid.
    fn without_composed(&self, rest: &mut Value, removed: &mut Vec<(String, String)>) {
        let validator = &self.inner.validator;
        let mut nulls = Vec::new();
        let whole = &*rest;
        let is_in_object = |parent: &str| whole.pointer(parent).is_some_and(Value::is_object);
        let too_many = find_part(whole, |at, value| {
            let null = value.is_null().then(|| member(at)).flatten();
            nulls.extend(null.filter(|(parent, _)| is_in_object(parent)));
            (nulls.len() > MAX_TRIED).then_some(())
        });
        if too_many.is_some() {
            return;
        }
        let mut without = rest.clone();
        for (parent, name) in &nulls {
            take(&mut without, parent, name);
        }
        if !validator.is_valid(&without) {
            return;
        }
        for (parent, name) in nulls {
            put(&mut without, &parent, name.clone());
            if !validator.is_valid(&without) {
                take(&mut without, &parent, &name);
                removed.push((parent, name));
            }
        }
        *rest = without;
    }
}

/// Splits a JSON pointer into the pointer of the parent and the name of the member.
fn member(path: &str) -> Option<(String, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    Some((parent.to_owned(), unescape(name)))
}

fn take(value: &mut Value, parent: &str, name: &str) -> bool {
    let members = value.pointer_mut(parent).and_then(Value::as_object_mut);
    members.is_some_and(|members| members.shift_remove(name).is_some())
}

fn put(value: &mut Value, parent: &str, name: String) {
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.insert(name, Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::NoScope;

    fn without(schema: Value, instance: &Value) -> Option<Value> {
        let schema = Schema::compile(&schema, &NoScope).unwrap();
        schema.without_absent(instance)
    }

    fn row() -> Value {
        json!({
            "type": "object",
            "required": ["name", "either"],
            "properties": {
                "name": { "type": "string" },
                "either": { "type": ["string", "null"] },
                "count": { "type": "integer" },
                "choice": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "a/b~c": { "type": "string" },
                "any": {},
                "below": { "type": "object", "properties": { "x": { "type": "string" } } },
                "rows": { "type": "array", "items": {
                    "type": "object", "properties": { "y": { "type": "number" } } } },
            },
            "additionalProperties": false,
        })
    }

    #[test]
    fn a_null_that_the_schema_does_not_accept_is_absent_at_every_depth() {
        let sent = json!({
            "name": "n", "either": null, "count": null, "choice": null, "a/b~c": null, "any": null,
            "below": { "x": null }, "rows": [{ "y": null }, { "y": 1 }],
        });
        let taken = json!({
            "name": "n", "either": null, "any": null, "below": {}, "rows": [{}, { "y": 1 }],
        });
        assert_eq!(without(row(), &sent), Some(taken));
    }

    #[test]
    fn a_null_stays_for_a_required_or_unknown_property_or_an_item() {
        for sent in [
            json!({ "name": null, "either": "e" }),
            json!({ "name": "n", "either": null, "unknown": null }),
            json!({ "name": "n", "either": null, "rows": [null] }),
            json!({ "name": "n", "either": null, "any": null }),
        ] {
            assert_eq!(without(row(), &sent), None, "{sent}");
        }
        // Other problems stay, too.
        let sent = json!({ "name": null, "either": 5, "count": null });
        let rest = json!({ "either": 5, "name": null });
        assert_eq!(without(row(), &sent), Some(rest));
    }

    #[test]
    fn a_composition_loses_as_few_nulls_as_make_it_valid() {
        let schema = json!({
            "oneOf": [
                { "type": "object", "required": ["a"], "additionalProperties": false, "properties": {
                    "a": { "type": "string" }, "b": { "type": "integer" }, "c": { "type": "null" } } },
                { "type": "object", "required": ["z"] },
            ],
        });
        let sent = json!({ "a": "x", "b": null, "c": null });
        assert_eq!(
            without(schema.clone(), &sent),
            Some(json!({ "a": "x", "c": null }))
        );
        assert_eq!(without(schema, &json!({ "a": 1, "b": null })), None);
    }
}
