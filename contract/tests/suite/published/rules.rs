//! The rules of a specification for a field, as data. Both the JSON Schema of a document and
//! example documents are generated from them. Independent of any specification.

use serde_json::{Map, Value, json};

/// One field of a mapping.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
    pub(crate) rule: Rule,
}

/// A required field.
pub(crate) const fn must(name: &'static str, rule: Rule) -> Row {
    Row {
        name,
        is_required: true,
        rule,
    }
}

/// An optional field.
pub(crate) const fn may(name: &'static str, rule: Rule) -> Row {
    Row {
        name,
        is_required: false,
        rule,
    }
}

/// The rule for a value. The texts in some rules are usual values for generated documents; they do
/// not restrict the value.
pub(crate) enum Rule {
    /// Any value. The texts are example values, as JSON.
    Anything(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// An integer in this range.
    Whole(i64, Option<i64>),
    /// A number that is not negative.
    Amount,
    /// Any text.
    Text(&'static [&'static str]),
    /// A text with a length in this range, in characters.
    Sized(usize, usize, &'static [&'static str]),
    /// A text that this expression matches.
    Shaped(&'static str, &'static [&'static str]),
    /// A text that this expression matches, with a length in this range, in characters.
    SizedShape(usize, usize, &'static str, &'static [&'static str]),
    /// [`Rule::Shaped`], or null.
    ShapedOrNull(&'static str, &'static [&'static str]),
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these.
    Either(&'static [Rule]),
    /// A list of such values.
    List(&'static Rule),
    /// A list of such values, each once.
    Set(&'static Rule),
    /// A list of such values that is not empty.
    NonEmpty(&'static Rule),
    /// A mapping of any keys to such values.
    Each(&'static Rule),
    /// Any mapping. The texts are example values, as JSON.
    Mapping(&'static [&'static str]),
    /// A mapping with these fields only.
    Closed(&'static [Row]),
    /// A mapping with these fields and any others.
    Open(&'static [Row]),
}

impl Rule {
    /// The JSON Schema (2020-12) of the rule.
    pub(crate) fn schema(&self) -> Value {
        let sized = |least: &usize, most: &usize| json!({ "type": "string", "minLength": least, "maxLength": most });
        match self {
            Rule::Anything(_) => json!({}),
            Rule::Flag => json!({ "type": "boolean" }),
            Rule::Whole(least, None) => json!({ "type": "integer", "minimum": least }),
            Rule::Whole(least, Some(most)) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Rule::Amount => json!({ "type": "number", "minimum": 0 }),
            Rule::Text(_) => json!({ "type": "string" }),
            Rule::Sized(least, most, _) => sized(least, most),
            Rule::Shaped(pattern, _) => json!({ "type": "string", "pattern": pattern }),
            Rule::SizedShape(least, most, pattern, _) => {
                let mut schema = sized(least, most);
                schema["pattern"] = json!(pattern);
                schema
            }
            Rule::ShapedOrNull(pattern, _) => {
                json!({ "type": ["null", "string"], "pattern": pattern })
            }
            Rule::Word(words) => json!({ "enum": words }),
            Rule::Either(rules) => {
                let schemas: Vec<Value> = rules.iter().map(Rule::schema).collect();
                json!({ "anyOf": schemas })
            }
            Rule::List(item) => json!({ "type": "array", "items": item.schema() }),
            Rule::Set(item) => {
                json!({ "type": "array", "items": item.schema(), "uniqueItems": true })
            }
            Rule::NonEmpty(item) => {
                json!({ "type": "array", "items": item.schema(), "minItems": 1 })
            }
            Rule::Each(member) => {
                json!({ "type": "object", "additionalProperties": member.schema() })
            }
            Rule::Mapping(_) => json!({ "type": "object" }),
            Rule::Closed(rows) => {
                let mut schema = fields(rows);
                schema["additionalProperties"] = json!(false);
                schema
            }
            Rule::Open(rows) => fields(rows),
        }
    }
}

fn fields(rows: &[Row]) -> Value {
    let properties = rows
        .iter()
        .map(|row| (row.name.to_owned(), row.rule.schema()));
    let properties: Map<String, Value> = properties.collect();
    let required = rows.iter().filter(|row| row.is_required);
    let required: Vec<&str> = required.map(|row| row.name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}
