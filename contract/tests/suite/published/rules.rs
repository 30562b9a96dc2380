//! What a specification says of a field, as data: the JSON Schema of a document and documents for it are both made
//! from this. Says nothing of any one specification.

use serde_json::{Map, Value, json};

/// One field of a mapping.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
    pub(crate) rule: Rule,
}

/// A field that has to be there.
pub(crate) const fn must(name: &'static str, rule: Rule) -> Row {
    Row {
        name,
        is_required: true,
        rule,
    }
}

/// A field that may be there.
pub(crate) const fn may(name: &'static str, rule: Rule) -> Row {
    Row {
        name,
        is_required: false,
        rule,
    }
}

/// What a value has to be. The texts that some rules hold are usual values, for documents: they limit nothing.
pub(crate) enum Rule {
    /// Any value; one of these, written as JSON.
    Anything(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// An integer of this range.
    Whole(i64, Option<i64>),
    /// A number from zero.
    Amount,
    /// Any text.
    Text(&'static [&'static str]),
    /// A text of so many characters.
    Sized(usize, usize, &'static [&'static str]),
    /// A text that this expression matches.
    Shaped(&'static str, &'static [&'static str]),
    /// A text that this expression matches, of so many characters.
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
    /// A mapping with keys of one's own to such values.
    Each(&'static Rule),
    /// Any mapping; one of these, written as JSON.
    Mapping(&'static [&'static str]),
    /// A mapping with these fields only.
    Closed(&'static [Row]),
    /// A mapping with these fields and any others.
    Open(&'static [Row]),
}

impl Rule {
    /// The JSON Schema (2020-12) that says the same.
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
