//! Forms that a person fills in: the flat subset of JSON Schema that MCP's elicitation allows.
//! Reading is strict, so that an answer is checked against exactly the form that the person saw.

use serde_json::{Map, Value, json};
use toolward_support::text::is_hidden;

use crate::NoScope;
use crate::schema::Schema;

/// How many fields a form may have, and how many choices a field may have. A person reads all of
/// them.
const FIELDS: usize = 32;
const CHOICES: usize = 100;
/// How long a field's name or a choice may be, in bytes.
const NAME: usize = 200;
/// How many bytes an error shows of a place in an answer.
const MAX_PLACE_BYTES: usize = 1024;
/// How long a title or description may be, in bytes.
const WORDS: usize = 1000;

/// The keywords that a form's schema may have at the top level.
const KEYWORDS: &[&str] = &[
    "$schema",
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
];

/// Words that mark a field as asking for a credential.
const CREDENTIALS: &str = "password passwords passwd passphrase passcode pwd secret secrets token credential credentials pin otp \
     cvv cvc apikey";
const CREDENTIAL_PAIRS: &[[&str; 2]] = &[
    ["api", "key"],
    ["access", "key"],
    ["private", "key"],
    ["pass", "word"],
    ["security", "code"],
    ["card", "number"],
    ["recovery", "code"],
    ["seed", "phrase"],
];

/// A form, ready to check answers.
#[derive(Debug)]
pub struct Form {
    schema: Schema,
}

impl Form {
    /// Reads the schema of a form.
    ///
    /// # Errors
    /// The problem with the schema, for people.
    pub fn read(schema: &Value) -> Result<Self, String> {
        let root = object(schema, "the form")?;
        only(root, KEYWORDS, "the form")?;
        if root.get("type") != Some(&json!("object")) {
            return Err("the form is not of the type `object`".to_owned());
        }
        let more = root.get("additionalProperties");
        if more.is_some_and(|more| *more != json!(false)) {
            return Err("the form takes fields that it does not show".to_owned());
        }
        words(root, "the form")?;
        let Some(Value::Object(fields)) = root.get("properties") else {
            return Err("the form has no `properties`".to_owned());
        };
        if fields.len() > FIELDS {
            return Err(format!("the form has more than {FIELDS} fields"));
        }
        let mut read = Map::new();
        let mut defaults = Map::new();
        for (name, field) in fields {
            if !is_plain(name) {
                return Err(format!(
                    "the name of a field is not 1 to {NAME} bytes of visible characters"
                ));
            }
            let field = object(field, &format!("the field `{name}`"))?;
            let kept = kept(name, field).map_err(|text| format!("the field `{name}`: {text}"))?;
            if let Some(default) = field.get("default") {
                defaults.insert(name.clone(), default.clone());
            }
            read.insert(name.clone(), kept);
        }
        let required = required(root, fields)?;
        let shape = |required: &[Value]| {
            let schema = json!({
                "type": "object",
                "properties": read,
                "required": required,
                "additionalProperties": false,
            });
            Schema::compile(&schema, &NoScope).map_err(|error| error.to_string())
        };
        if !defaults.is_empty() {
            let defaults = Value::Object(defaults);
            (shape(&[])?.validate(&defaults))
                .map_err(|violation| format!("a default does not match its field: {violation}"))?;
        }
        Ok(Self {
            schema: shape(&required)?,
        })
    }

    /// Checks that an answer has every required field, no other fields than the form's, and valid
    /// values.
    ///
    /// # Errors
    /// The first problem and its place, for people.
    pub fn check(&self, answer: &Value) -> Result<(), String> {
        self.schema.validate(answer).map_err(|violation| {
            let mut place = violation.instance_path;
            place.truncate(place.floor_char_boundary(MAX_PLACE_BYTES));
            format!("at {place:?}: {}", violation.message)
        })
    }
}

fn object<'a>(value: &'a Value, what: &str) -> Result<&'a Map<String, Value>, String> {
    let not = || format!("{what} is not an object");
    value.as_object().ok_or_else(not)
}

fn only(object: &Map<String, Value>, names: &[&str], what: &str) -> Result<(), String> {
    match object.keys().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(format!("{what} has {name:?}, which forms do not know")),
        None => Ok(()),
    }
}

/// Whether a text has an allowed length, and no hidden characters, so that clients show and return
/// it unchanged.
fn is_plain(text: &str) -> bool {
    (1..=NAME).contains(&text.len()) && !text.chars().any(is_hidden)
}

fn words(object: &Map<String, Value>, what: &str) -> Result<(), String> {
    let good = |name: &str| match object.get(name) {
        None => true,
        Some(Value::String(text)) => text.len() <= WORDS,
        Some(_) => false,
    };
    match good("title") && good("description") {
        true => Ok(()),
        false => Err(format!(
            "title or description of {what} is not a text of at most {WORDS} bytes"
        )),
    }
}

fn required(root: &Map<String, Value>, fields: &Map<String, Value>) -> Result<Vec<Value>, String> {
    let is_field = |name: &Value| name.as_str().is_some_and(|name| fields.contains_key(name));
    match root.get("required") {
        None => Ok(Vec::new()),
        Some(Value::Array(names)) if names.len() <= FIELDS && names.iter().all(is_field) => {
            Ok(names.clone())
        }
        Some(_) => Err("`required` does not name fields of the form".to_owned()),
    }
}

/// The part of a field's schema that answers are checked against.
fn kept(name: &str, field: &Map<String, Value>) -> Result<Value, String> {
    words(field, "it")?;
    let kind = field.get("type").and_then(Value::as_str);
    let known: &[&str] = match kind.unwrap_or_default() {
        "string" => &[
            "minLength",
            "maxLength",
            "format",
            "enum",
            "enumNames",
            "oneOf",
        ],
        "integer" | "number" => &["minimum", "maximum"],
        "boolean" => &[],
        "array" => &["minItems", "maxItems", "items"],
        _ => {
            let kinds = "string, number, integer, boolean, or array of choices";
            return Err(format!("its type is none of {kinds}"));
        }
    };
    let common = ["type", "title", "description", "default"];
    only(field, &[&common, known].concat(), "it")?;
    let kept = match kind.unwrap_or_default() {
        "string" => text(name, field)?,
        "integer" => number(field, Value::is_i64, "of the type `integer`")?,
        "number" => number(field, Value::is_number, "of the type `number`")?,
        "array" => several(field)?,
        _ => keep(field, &["type"]),
    };
    Ok(Value::Object(kept))
}

/// Copies these keywords of a field.
fn keep(field: &Map<String, Value>, keywords: &[&str]) -> Map<String, Value> {
    let mut kept = field.clone();
    kept.retain(|keyword, _| keywords.contains(&keyword.as_str()));
    kept
}

/// The choices of a field: under `enum`, or under the keyword in `titled` (`oneOf` or `anyOf`),
/// which also gives each choice a title. `None` without choices. With both keywords, the result is
/// `error`.
fn choices(
    object: &Map<String, Value>,
    titled: &str,
    error: &str,
) -> Result<Option<Vec<Value>>, String> {
    match (object.get("enum"), object.get(titled)) {
        (None, None) => Ok(None),
        (Some(values), None) => values_of(values).map(Some),
        (None, Some(titled)) => titled_of(titled).map(Some),
        (Some(_), Some(_)) => Err(error.to_owned()),
    }
}

fn text(name: &str, field: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let choices = choices(field, "oneOf", "it has both `enum` and `oneOf`")?;
    if let Some(names) = field.get("enumNames") {
        let names = names.as_array().filter(|names| {
            let short = |name: &Value| name.as_str().is_some_and(|name| name.len() <= NAME);
            choices.as_ref().is_some_and(|all| all.len() == names.len()) && names.iter().all(short)
        });
        names.ok_or("its `enumNames` do not name each value of `enum`")?;
    }
    // Clients must be able to show and return a default unchanged.
    let default = field.get("default").and_then(Value::as_str);
    if default.is_some_and(|text| text.len() > NAME || text.chars().any(is_hidden)) {
        return Err(format!(
            "its `default` is not at most {NAME} bytes of visible characters"
        ));
    }
    let rules = ["minLength", "maxLength", "format"];
    if let Some(choices) = choices {
        if rules.iter().any(|rule| field.contains_key(*rule)) {
            return Err("choices have no length and no format".to_owned());
        }
        let mut kept = keep(field, &["type"]);
        kept.insert("enum".to_owned(), Value::Array(choices));
        return Ok(kept);
    }
    if wants_credential(name, field) {
        return Err(
            "it asks for a credential; those come from the operator's secrets, never from a form"
                .to_owned(),
        );
    }
    check(field, &["minLength", "maxLength"], is_count, "a count")?;
    let is_format = |format: &Value| {
        let format = format.as_str();
        format.is_some_and(|format| ["email", "uri", "date", "date-time"].contains(&format))
    };
    if field.get("format").is_some_and(|format| !is_format(format)) {
        return Err("its format is none of email, uri, date and date-time".to_owned());
    }
    Ok(keep(field, &["type", "minLength", "maxLength", "format"]))
}

fn number(
    field: &Map<String, Value>,
    is: fn(&Value) -> bool,
    expected: &str,
) -> Result<Map<String, Value>, String> {
    check(field, &["minimum", "maximum"], is, expected)?;
    Ok(keep(field, &["type", "minimum", "maximum"]))
}

fn several(field: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let items = field.get("items").ok_or("it has no `items`")?;
    let items = object(items, "`items`")?;
    only(items, &["type", "enum", "anyOf"], "`items`")?;
    if items.get("type").is_some_and(|kind| kind != "string") {
        return Err("its choices are not texts".to_owned());
    }
    let error = "`items` has neither `enum` nor `anyOf`, or both";
    let choices = choices(items, "anyOf", error)?.ok_or(error)?;
    check(field, &["minItems", "maxItems"], is_count, "a count")?;
    let mut kept = keep(field, &["type", "minItems", "maxItems"]);
    kept.entry("maxItems").or_insert_with(|| json!(CHOICES));
    kept.insert(
        "items".to_owned(),
        json!({ "type": "string", "enum": choices }),
    );
    Ok(kept)
}

fn check(
    field: &Map<String, Value>,
    rules: &[&str],
    is: fn(&Value) -> bool,
    expected: &str,
) -> Result<(), String> {
    let is_wrong = |rule: &&&str| field.get(**rule).is_some_and(|bound| !is(bound));
    match rules.iter().find(is_wrong) {
        Some(rule) => Err(format!("its `{rule}` is not {expected}")),
        None => Ok(()),
    }
}

fn is_count(value: &Value) -> bool {
    value
        .as_u64()
        .is_some_and(|count| count <= u64::from(u32::MAX))
}

fn values_of(values: &Value) -> Result<Vec<Value>, String> {
    let values = values.as_array().filter(|values| {
        let plain = |value: &Value| value.as_str().is_some_and(is_plain);
        (1..=CHOICES).contains(&values.len()) && values.iter().all(plain)
    });
    let Some(mut values) = values.cloned() else {
        return Err(format!(
            "its choices are not 1 to {CHOICES} texts of visible characters"
        ));
    };
    values.dedup();
    Ok(values)
}

fn titled_of(titled: &Value) -> Result<Vec<Value>, String> {
    let choices = titled.as_array().ok_or("its choices are not a list")?;
    let mut values = Vec::with_capacity(choices.len().min(CHOICES));
    for choice in choices.iter().take(CHOICES.saturating_add(1)) {
        let choice = object(choice, "a choice")?;
        only(choice, &["const", "title"], "a choice")?;
        let title = choice.get("title").and_then(Value::as_str);
        if !title.is_some_and(|title| (1..=NAME).contains(&title.len())) {
            return Err("a choice has no title".to_owned());
        }
        values.push(choice.get("const").cloned().unwrap_or_default());
    }
    values_of(&Value::Array(values))
}

/// Whether a field's name, title or description asks for a credential.
fn wants_credential(name: &str, field: &Map<String, Value>) -> bool {
    let said = ["title", "description"].map(|key| field.get(key).and_then(Value::as_str));
    let said = said.into_iter().flatten().chain([name]);
    said.into_iter().any(|text| {
        let words = words_of(text);
        let pairs = words.iter().zip(words.iter().skip(1));
        words
            .iter()
            .any(|word| CREDENTIALS.split(' ').any(|one| one == word))
            || pairs.into_iter().any(|(first, second)| {
                let is = |pair: &[&str; 2]| *pair == [first.as_str(), second.as_str()];
                CREDENTIAL_PAIRS.iter().any(is)
            })
    })
}

/// The words of a text in lower case; `apiKey` and `api_key` have two words each.
fn words_of(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in text.chars() {
        let starts = character.is_uppercase() && after_lower;
        if starts || !character.is_alphanumeric() {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests;
