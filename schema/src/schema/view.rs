//! Views of a schema for models and clients: without internal parts, with the author's text made
//! safe, and, if needed, inside another schema.

use serde_json::{Map, Value};

use super::inline::inline;
use super::marks::SchemaMark;
use super::walk::{ANNOTATIONS, REFERENCES, for_each_child_mut, resolve, without_document};
use super::{Schema, plain};

/// Keywords for people and models, without meaning for validation.
const PROSE: [&str; 3] = ["title", "description", "$comment"];

/// The keyword by which clients also send an argument as an HTTP header, for intermediate servers
/// (MCP 2026-07-28, "x-mcp-header").
const HEADER: &str = "x-mcp-header";

impl Schema {
    /// The view for a model: [`Schema::closed`] without the properties marked `x-internal`.
    pub fn model_view(&self) -> Value {
        let mut shown = self.inner.closed.clone();
        remove_internal(&mut shown, &self.inner.closed);
        shown
    }

    /// [`Schema::model_view`] for a protocol that shows it to a model. `show` converts titles, descriptions
    /// and comments. `at` is the JSON pointer of the place in another schema at which the view will
    /// be; it is empty if there is no other schema. References get this pointer as a prefix.
    pub fn outward_view(&self, at: &str, show: &dyn Fn(&str) -> String) -> Value {
        placed(self.model_view(), at, show)
    }

    /// [`Schema::outward_view`] with each reference replaced by its target, since many clients follow no
    /// references. Recursive references stay. If the view would become much larger, all references
    /// stay.
    pub fn inlined_view(&self, at: &str, show: &dyn Fn(&str) -> String) -> Value {
        placed(inline(&self.model_view()), at, show)
    }

    /// [`Schema::inlined_view`] as one plain object: a composition at the root (`oneOf`, `if`, …), which
    /// model APIs refuse, is merged. The object has the properties of all branches, and requires
    /// the properties that all branches require. `None` if the schema accepts no object.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolward_schema::NoScope;
    /// use toolward_schema::schema::Schema;
    ///
    /// let schema = json!({ "oneOf": [
    ///     { "properties": { "id": { "type": "integer" }, "all": { "const": false } }, "required": ["all", "id"] },
    ///     { "properties": { "all": { "const": true } }, "required": ["all"] },
    /// ] });
    /// let schema = Schema::compile(&schema, &NoScope)?;
    /// let plain = schema.plain_view(&str::to_owned);
    /// assert_eq!(plain.map(serde_json::Value::Object), Some(json!({
    ///     "type": "object",
    ///     "properties": { "id": { "type": "integer" }, "all": { "enum": [false, true] } },
    ///     "required": ["all"],
    /// })));
    /// # Ok::<(), toolward_schema::schema::SchemaError>(())
    /// ```
    pub fn plain_view(&self, show: &dyn Fn(&str) -> String) -> Option<Map<String, Value>> {
        let plain = plain::plain(&inline(&self.model_view()))?;
        match placed(plain.into(), "", show) {
            Value::Object(keywords) => Some(keywords),
            _ => None,
        }
    }
}

fn placed(mut copy: Value, at: &str, show: &dyn Fn(&str) -> String) -> Value {
    if !at.is_empty() {
        without_document(&mut copy);
    }
    change(&mut copy, at, show);
    copy
}

fn change(schema: &mut Value, at: &str, show: &dyn Fn(&str) -> String) {
    if SchemaMark::Sensitive.is_on(schema)
        && let Value::Object(keywords) = schema
    {
        // Intermediate servers may log the header, so it must not have a sensitive value.
        keywords.shift_remove(HEADER);
    }
    for keyword in PROSE {
        if let Some(Value::String(text)) = schema.get_mut(keyword) {
            *text = show(text);
        }
    }
    for keyword in REFERENCES {
        if let Some(Value::String(target)) = schema.get_mut(keyword)
            && let Some(pointer) = target.strip_prefix('#')
            && (pointer.is_empty() || pointer.starts_with('/'))
        {
            *target = format!("#{at}{pointer}");
        }
    }
    for_each_child_mut(schema, |child| change(child, at, show));
}

/// A copy without the keywords that don't affect which values are valid.
///
/// ```
/// use serde_json::json;
/// use toolward_schema::schema::without_annotations;
///
/// let schema = json!({ "items": { "type": "string", "title": "Name" }, "x-note": 1 });
/// assert_eq!(without_annotations(&schema), json!({ "items": { "type": "string" } }));
/// ```
pub fn without_annotations(schema: &Value) -> Value {
    let mut copy = schema.clone();
    remove_annotations(&mut copy);
    copy
}

fn remove_annotations(schema: &mut Value) {
    if let Value::Object(keywords) = schema {
        keywords.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()) && !key.starts_with("x-"));
    }
    for_each_child_mut(schema, remove_annotations);
}

/// Removes the properties marked internal, also from `required`, `examples`, `default` and the
/// `dependent…` keywords.
fn remove_internal(schema: &mut Value, root: &Value) {
    if let Value::Object(keywords) = schema {
        let mut hidden: Vec<String> = Vec::new();
        if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
            properties.retain(|name, property| {
                let internal = is_internal(property, root, 0);
                if internal {
                    hidden.push(name.clone());
                }
                !internal
            });
        }
        let is_hidden = |name: &Value| {
            let name = name.as_str();
            name.is_some_and(|name| hidden.iter().any(|other| other == name))
        };
        for keyword in ["required", "examples", "default"] {
            match keywords.get_mut(keyword) {
                Some(Value::Array(items)) => {
                    items.retain(|item| !is_hidden(item));
                    items.iter_mut().for_each(|item| forget(item, &hidden));
                }
                Some(other) => forget(other, &hidden),
                None => {}
            }
        }
        for keyword in ["dependentRequired", "dependentSchemas"] {
            if let Some(Value::Object(members)) = keywords.get_mut(keyword) {
                members.retain(|name, _| !hidden.contains(name));
                for names in members.values_mut().filter_map(Value::as_array_mut) {
                    names.retain(|name| !is_hidden(name));
                }
            }
        }
    }
    for_each_child_mut(schema, |child| remove_internal(child, root));
}

fn forget(value: &mut Value, hidden: &[String]) {
    if let Value::Object(members) = value {
        members.retain(|name, _| !hidden.contains(name));
    }
}

fn is_internal(property: &Value, root: &Value, hops: usize) -> bool {
    let target = || resolve(root, property.get("$ref")?.as_str()?);
    SchemaMark::Internal.is_on(property)
        || (hops < 16 && target().is_some_and(|target| is_internal(target, root, hops + 1)))
}
