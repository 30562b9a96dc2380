//! Finds the parts of a JSON Schema 2020-12 document that are schemas, and the part of a value to
//! which each applies.

use serde_json::{Map, Value};

/// The part of a value to which a subschema applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies<'s> {
    /// The same value as for the enclosing schema.
    InPlace,
    /// The property with this name.
    Property(&'s str),
    /// Some items or properties.
    Inside,
    /// No part, unless a reference points to the subschema.
    Nowhere,
}

/// A subschema and its place.
#[derive(Clone, Debug)]
pub(super) struct Child<'s> {
    pub(super) keyword: &'static str,
    /// The key or index below the keyword, if the keyword holds several schemas.
    pub(super) key: Option<String>,
    pub(super) applies: Applies<'s>,
    pub(super) schema: &'s Value,
}

impl Child<'_> {
    /// The JSON pointer of the subschema. `parent` is the pointer of its parent.
    pub(super) fn pointer(&self, parent: &str) -> String {
        match &self.key {
            Some(key) => format!("{parent}/{}/{}", self.keyword, escape(key)),
            None => format!("{parent}/{}", self.keyword),
        }
    }
}

/// Escapes a key for use in a JSON pointer (RFC 6901).
///
/// ```
/// assert_eq!(toolward_schema::schema::escape("a/b~c"), "a~1b~0c");
/// ```
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The text of one step of a JSON pointer.
pub(super) fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The form of a keyword's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Schema,
    List,
    Members,
}

/// The keywords with schemas. For `properties`, [`children`] replaces `Inside` by the property's
/// name.
const APPLICATORS: &[(&str, Holds, Applies<'static>)] = &[
    ("additionalProperties", Holds::Schema, Applies::Inside),
    ("unevaluatedProperties", Holds::Schema, Applies::Inside),
    ("propertyNames", Holds::Schema, Applies::Inside),
    ("items", Holds::Schema, Applies::Inside),
    ("unevaluatedItems", Holds::Schema, Applies::Inside),
    ("contains", Holds::Schema, Applies::Inside),
    ("contentSchema", Holds::Schema, Applies::Nowhere),
    ("not", Holds::Schema, Applies::InPlace),
    ("if", Holds::Schema, Applies::InPlace),
    ("then", Holds::Schema, Applies::InPlace),
    ("else", Holds::Schema, Applies::InPlace),
    ("allOf", Holds::List, Applies::InPlace),
    ("anyOf", Holds::List, Applies::InPlace),
    ("oneOf", Holds::List, Applies::InPlace),
    ("prefixItems", Holds::List, Applies::Inside),
    ("patternProperties", Holds::Members, Applies::Inside),
    ("dependentSchemas", Holds::Members, Applies::InPlace),
    ("$defs", Holds::Members, Applies::Nowhere),
    ("definitions", Holds::Members, Applies::Nowhere),
    ("properties", Holds::Members, Applies::Inside),
];

/// The keywords of JSON Schema 2020-12 without schemas.
const OTHER_KEYWORDS: &str = "$anchor $comment $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary const contentEncoding \
     contentMediaType default dependentRequired deprecated description enum examples \
     exclusiveMaximum exclusiveMinimum format maxContains maxItems maxLength maxProperties maximum \
     minContains minItems minLength minProperties minimum multipleOf pattern readOnly required title \
     type uniqueItems";

/// The keywords of JSON Schema 2020-12, and `definitions`, which its meta-schema keeps from earlier
/// drafts.
pub(super) fn keywords() -> impl Iterator<Item = &'static str> {
    let applicators = APPLICATORS.iter().map(|(keyword, ..)| *keyword);
    applicators.chain(OTHER_KEYWORDS.split(' '))
}

/// Whether a keyword is not allowed at the root of a plain object.
pub(super) fn is_composition(keyword: &str) -> bool {
    let mut in_place = APPLICATORS.iter();
    in_place.any(|(name, _, applies)| *name == keyword && *applies == Applies::InPlace)
        || REFERENCES.contains(&keyword)
        || matches!(keyword, "enum" | "const")
}

/// Whether the effect of a keyword depends on others in the same schema.
pub(super) fn is_adjacent(keyword: &str) -> bool {
    let applicator = APPLICATORS.iter().find(|(name, ..)| *name == keyword);
    match applicator {
        Some((name, _, applies)) => *applies != Applies::Nowhere && *name != "propertyNames",
        None => REFERENCES.contains(&keyword) || matches!(keyword, "minContains" | "maxContains"),
    }
}

/// The subschemas directly below a schema; none for `true`, `false` and other values.
pub(super) fn children(schema: &Value) -> Vec<Child<'_>> {
    let Value::Object(keywords) = schema else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for &(keyword, holds, applies) in APPLICATORS {
        let mut add = |key: Option<String>, applies, schema| {
            found.push(Child {
                keyword,
                key,
                applies,
                schema,
            });
        };
        match (holds, keywords.get(keyword)) {
            (Holds::Schema, Some(schema)) => add(None, applies, schema),
            (Holds::List, Some(Value::Array(items))) => {
                for (index, schema) in items.iter().enumerate() {
                    add(Some(index.to_string()), applies, schema);
                }
            }
            (Holds::Members, Some(Value::Object(members))) => {
                for (key, schema) in members {
                    let applies = match keyword {
                        "properties" => Applies::Property(key),
                        _ => applies,
                    };
                    add(Some(key.clone()), applies, schema);
                }
            }
            _ => {}
        }
    }
    found
}

/// Visits a schema and all subschemas, each with its JSON pointer, until `see` returns a value.
pub(super) fn find<'s, T>(
    schema: &'s Value,
    mut see: impl FnMut(&str, &'s Value) -> Option<T>,
) -> Option<T> {
    let below = |schema: &'s Value| {
        let children = children(schema).into_iter();
        children.map(|child| (child.pointer(""), child.schema))
    };
    find_below(schema, &mut String::new(), below, &mut see)
}

/// As [`find`], for all parts of any value.
pub(super) fn find_part<'v, T>(
    value: &'v Value,
    mut see: impl FnMut(&str, &'v Value) -> Option<T>,
) -> Option<T> {
    let below = |value: &'v Value| {
        let items = value.as_array().into_iter().flatten().enumerate();
        let items = items.map(|(index, item)| (format!("/{index}"), item));
        let members = value.as_object().into_iter().flatten();
        items.chain(members.map(|(name, member)| (format!("/{}", escape(name)), member)))
    };
    find_below(value, &mut String::new(), below, &mut see)
}

/// The recursion of [`find`]. It has only one pointer at a time, since the pointers of all parts
/// could take far more memory than the value.
fn find_below<'v, T, I: Iterator<Item = (String, &'v Value)>>(
    value: &'v Value,
    at: &mut String,
    below: impl Fn(&'v Value) -> I + Copy,
    see: &mut dyn FnMut(&str, &'v Value) -> Option<T>,
) -> Option<T> {
    let mut found = see(at, value);
    let length = at.len();
    let mut parts = below(value);
    while found.is_none()
        && let Some((step, part)) = parts.next()
    {
        at.push_str(&step);
        found = find_below(part, at, below, see);
        at.truncate(length);
    }
    found
}

/// Calls `change` for each subschema directly below a schema.
pub(super) fn for_each_child_mut(schema: &mut Value, mut change: impl FnMut(&mut Value)) {
    let Value::Object(keywords) = schema else {
        return;
    };
    for (keyword, value) in keywords.iter_mut() {
        let known = APPLICATORS.iter().find(|(name, ..)| *name == keyword);
        match (known.map(|(_, holds, _)| holds), value) {
            (Some(Holds::Schema), schema) => change(schema),
            (Some(Holds::List), Value::Array(items)) => items.iter_mut().for_each(&mut change),
            (Some(Holds::Members), Value::Object(members)) => {
                members.values_mut().for_each(&mut change);
            }
            _ => {}
        }
    }
}

/// The keywords that refer to another schema.
pub(super) const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];

/// The references of a schema: keyword and target as written.
pub(super) fn references(schema: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    let target = |keyword| Some((keyword, schema.get(keyword)?.as_str()?));
    REFERENCES.into_iter().filter_map(target)
}

/// The targets of the references of a schema in a closed document.
pub(super) fn targets<'r>(schema: &Value, root: &'r Value) -> impl Iterator<Item = &'r Value> {
    references(schema).filter_map(|(_, target)| resolve(root, target))
}

/// The target of a reference within a closed document.
pub(super) fn resolve<'r>(root: &'r Value, reference: &str) -> Option<&'r Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() || fragment.starts_with('/') {
        let pointer = percent_encoding::percent_decode_str(fragment);
        return root.pointer(&pointer.decode_utf8_lossy());
    }
    find(root, |_, schema| {
        let named = |keyword| schema.get(keyword).and_then(Value::as_str) == Some(fragment);
        (named("$anchor") || named("$dynamicAnchor")).then_some(schema)
    })
}

/// The address of a schema, which distinguishes it from other schemas with equal content.
pub(super) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// The patterns of a schema, each with its JSON pointer. `path` is the pointer of the schema.
pub(super) fn patterns<'s>(
    schema: &'s Value,
    path: &str,
) -> impl Iterator<Item = (&'s str, String)> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let own = own.map(|pattern| (pattern, format!("{path}/pattern")));
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(Map::keys).map(move |pattern| {
        let place = format!("{path}/patternProperties/{}", escape(pattern));
        (pattern.as_str(), place)
    });
    own.into_iter().chain(named)
}

/// Keywords that don't affect which values are valid. The same applies to all keywords that start
/// with `x-`.
pub(super) const ANNOTATIONS: [&str; 8] = [
    "$comment",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// Keywords about the whole document, which must not be inside another document: a nested `$id`
/// would change the meaning of `#`.
const DOCUMENT: [&str; 2] = ["$id", "$schema"];

/// Removes the keywords about the document.
pub(super) fn without_document(schema: &mut Value) {
    if let Value::Object(keywords) = schema {
        keywords.retain(|keyword, _| !DOCUMENT.contains(&keyword.as_str()));
    }
}
