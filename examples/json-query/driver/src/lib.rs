//! `json.query`: a jq program over a JSON document, run by jaq.

mod program;

use jaq_json::Val;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolward_guest::{Call, Code, Error, driver};

#[derive(Deserialize)]
struct Input {
    query: String,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    variables: Map<String, Value>,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    1000
}

#[derive(Serialize)]
struct Output {
    results: Vec<Value>,
    count: usize,
    truncated: bool,
}

fn query(call: Call<Input>) -> Result<Output, Error> {
    let Input {
        query,
        data,
        text,
        variables,
        limit,
    } = call.input;
    let document = match (data, text) {
        (Some(data), None) => to_val(&data)?,
        (None, Some(text)) => {
            // Read by serde_json first: jaq's own reader takes more than JSON.
            let value: Value = serde_json::from_str(&text).code("json:invalid")?;
            to_val(&value)?
        }
        (None, None) => Val::Null,
        (Some(_), Some(_)) => {
            return Err(Error::new(
                "input_invalid",
                "give `data` or `text`, not both",
            ));
        }
    };
    let names: Vec<String> = variables.keys().map(|name| format!("${name}")).collect();
    let values = variables
        .values()
        .map(to_val)
        .collect::<Result<Vec<_>, _>>()?;

    let mut results = Vec::new();
    let truncated = program::run(&query, &names, values, document, |result| {
        if results.len() < limit {
            results.push(from_val(&result)?);
            Ok(true)
        } else {
            Ok(false)
        }
    })?;
    Ok(Output {
        count: results.len(),
        truncated,
        results,
    })
}

fn to_val(value: &Value) -> Result<Val, Error> {
    jaq_json::read::parse_single(value.to_string().as_bytes()).code("json:invalid")
}

/// A jq value as JSON. jq's own values may be more: `nan`, bytes, keys that are
/// no strings.
fn from_val(value: &Val) -> Result<Value, Error> {
    let text = value.to_string();
    let value = serde_json::from_str(&text).map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        Error::new(
            "json:no_json",
            format!("a result has no form in JSON: {shown}"),
        )
    })?;
    Ok(without_points(value))
}

/// Whole numbers without `.0`, as jq itself writes them.
fn without_points(value: Value) -> Value {
    const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_WHOLE => {
                Value::from(float as i64)
            }
            _ => Value::Number(number),
        },
        Value::Array(values) => values.into_iter().map(without_points).collect(),
        Value::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| (key, without_points(value)))
            .collect(),
        other => other,
    }
}

driver! { "json.query" => query }
