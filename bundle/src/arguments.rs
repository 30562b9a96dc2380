//! Builds the input of a tool from `KEY=VALUE` settings that people type. This module validates
//! nothing; the host validates the input against the contract.

use serde_json::Value;
use toolward_contract::json::{self, Limits};
use toolward_support::report::codes;

/// One property to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    key: String,
    value: String,
    literal: bool,
}

impl Setting {
    /// A value as a person entered it. The schema decides its type.
    pub fn literal(key: &str, value: &str) -> Self {
        Self {
            literal: true,
            ..Self::text(key, value.to_owned())
        }
    }

    /// A text value that is used unchanged, such as the text of a file.
    pub fn text(key: &str, value: String) -> Self {
        Self {
            key: key.to_owned(),
            value,
            literal: false,
        }
    }
}

codes! {
    /// Why settings can't be applied.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum ArgumentError: Error {
        NotAnObject = "input-not-object" ["2"], "`--set` was used on an input that is not an object",
            ("settings change the properties of an object, and the input is none")
            => "leave out `--set`, or give an object as `--input`";
        /// `expected` are the types that the schema allows for the property `key`.
        Value { key: String, expected: String, value: String } = "setting-invalid" ["2"],
            ("{key}: expected {expected}, found {value:?}")
            => format!("write --set {key}=VALUE with a value of type {expected}");
    }
}

/// Sets properties of `input`. The schema decides how a [literal](Setting::literal) value is read:
/// as text if the property may be a string, otherwise as JSON. If the property has no type, a value
/// that is not valid JSON is read as text.
///
/// # Errors
///
/// When `input` is not an object, or when a value is not JSON and its property can't be a string.
pub fn apply(
    mut input: Value,
    settings: &[Setting],
    schema: Option<&Value>,
) -> Result<Value, ArgumentError> {
    let Value::Object(properties) = &mut input else {
        return Err(ArgumentError::NotAnObject);
    };
    for setting in settings {
        let value = setting.value(types_of(schema, &setting.key))?;
        properties.insert(setting.key.clone(), value);
    }
    Ok(input)
}

impl Setting {
    fn value(&self, types: Vec<&str>) -> Result<Value, ArgumentError> {
        let text = || Value::String(self.value.clone());
        if !self.literal || types.contains(&"string") {
            return Ok(text());
        }
        match json::parse(self.value.as_bytes(), &Limits::default()) {
            Ok(value) => Ok(value),
            Err(_) if types.is_empty() => Ok(text()),
            Err(_) => Err(ArgumentError::Value {
                key: self.key.clone(),
                expected: types.join(" or "),
                value: self.value.clone(),
            }),
        }
    }
}

/// The types that a schema gives a property; empty if it gives none.
fn types_of<'a>(schema: Option<&'a Value>, key: &str) -> Vec<&'a str> {
    let property = schema
        .and_then(|schema| schema.get("properties"))
        .and_then(|properties| properties.get(key));
    match property.and_then(|property| property.get("type")) {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn applied(settings: &[Setting]) -> Result<Value, ArgumentError> {
        let schema = json!({ "properties": {
            "name": { "type": "string" },
            "top": { "type": "integer" },
            "rows": { "type": ["array", "null"] },
        }});
        apply(json!({ "kept": 1 }), settings, Some(&schema))
    }

    #[test]
    fn the_schema_says_what_a_value_means() {
        let input = applied(&[
            Setting::literal("name", "5"),
            Setting::literal("top", "5"),
            Setting::literal("rows", "[1]"),
            Setting::literal("free", "true"),
            Setting::literal("loose", "a b"),
        ]);
        assert_eq!(
            input.unwrap(),
            json!({ "kept": 1, "name": "5", "top": 5, "rows": [1], "free": true, "loose": "a b" })
        );
    }

    #[test]
    fn a_files_text_stays_text() {
        let input = applied(&[Setting::text("free", "{\"a\": 1}".to_owned())]).unwrap();
        assert_eq!(input["free"], json!("{\"a\": 1}"));
    }

    #[test]
    fn a_number_that_is_none_is_said_to_be_none() {
        let error = applied(&[Setting::literal("top", "many")]).unwrap_err();
        assert_eq!(error.to_string(), "top: expected integer, found \"many\"");
    }

    #[test]
    fn only_objects_have_properties_to_set() {
        let error = apply(json!([]), &[], None).unwrap_err();
        assert_eq!(error, ArgumentError::NotAnObject);
    }
}
