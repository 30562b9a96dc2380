//! Which parts of a JSON Schema 2020-12 document are schemas, and to what they apply. Not what they mean.

use serde_json::Value;

/// To which part of a value a subschema applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies<'s> {
    /// To the same value as the schema it stands in.
    InPlace,
    /// To the property of this name.
    Property(&'s str),
    /// To some items or properties.
    Inside,
    /// Nowhere until something refers to it.
    Nowhere,
}

/// A subschema and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Child<'s> {
    pub(super) keyword: &'static str,
    /// The key or index below the keyword, if the keyword holds several schemas.
    pub(super) key: Option<String>,
    pub(super) applies: Applies<'s>,
    pub(super) schema: &'s Value,
}

impl Child<'_> {
    /// The JSON pointer of the subschema, given that of its parent.
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
/// assert_eq!(toolward_contract::schema::escape("a/b~c"), "a~1b~0c");
/// ```
#[must_use]
pub fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

const SINGLE: &[(&str, Applies<'static>)] = &[
    ("additionalProperties", Applies::Inside),
    ("unevaluatedProperties", Applies::Inside),
    ("propertyNames", Applies::Inside),
    ("items", Applies::Inside),
    ("unevaluatedItems", Applies::Inside),
    ("contains", Applies::Inside),
    ("contentSchema", Applies::Nowhere),
    ("not", Applies::InPlace),
    ("if", Applies::InPlace),
    ("then", Applies::InPlace),
    ("else", Applies::InPlace),
];

const LISTS: &[(&str, Applies<'static>)] = &[
    ("allOf", Applies::InPlace),
    ("anyOf", Applies::InPlace),
    ("oneOf", Applies::InPlace),
    ("prefixItems", Applies::Inside),
];

const MAPS: &[(&str, Applies<'static>)] = &[
    ("patternProperties", Applies::Inside),
    ("dependentSchemas", Applies::InPlace),
    ("$defs", Applies::Nowhere),
    ("definitions", Applies::Nowhere),
];

/// The subschemas directly below a schema; none for `true`, `false` and what is no schema.
pub(super) fn children(schema: &Value) -> Vec<Child<'_>> {
    let Value::Object(keywords) = schema else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for &(keyword, applies) in SINGLE {
        if let Some(schema) = keywords.get(keyword) {
            found.push(Child {
                keyword,
                key: None,
                applies,
                schema,
            });
        }
    }
    for &(keyword, applies) in LISTS {
        let items = keywords
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        for (index, schema) in items.enumerate() {
            found.push(Child {
                keyword,
                key: Some(index.to_string()),
                applies,
                schema,
            });
        }
    }
    for &(keyword, applies) in MAPS {
        let members = keywords
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        for (key, schema) in members {
            found.push(Child {
                keyword,
                key: Some(key.clone()),
                applies,
                schema,
            });
        }
    }
    let properties = keywords
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (key, schema) in properties {
        let applies = Applies::Property(key);
        found.push(Child {
            keyword: "properties",
            key: Some(key.clone()),
            applies,
            schema,
        });
    }
    found
}

/// The same subschemas for changing them in place.
pub(super) fn for_each_child_mut(schema: &mut Value, mut change: impl FnMut(&mut Value)) {
    let Value::Object(keywords) = schema else {
        return;
    };
    for (keyword, value) in keywords.iter_mut() {
        let keyword = keyword.as_str();
        if SINGLE.iter().any(|(name, _)| *name == keyword) {
            change(value);
        } else if LISTS.iter().any(|(name, _)| *name == keyword) {
            value
                .as_array_mut()
                .into_iter()
                .flatten()
                .for_each(&mut change);
        } else if keyword == "properties" || MAPS.iter().any(|(name, _)| *name == keyword) {
            for (_, value) in value.as_object_mut().into_iter().flatten() {
                change(value);
            }
        }
    }
}
