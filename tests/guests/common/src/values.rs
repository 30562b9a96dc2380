//! Values that only the guest can know, filled into any string of its input:
//! `${placeholder:SLUG}`, `${reveal:SLUG}`, `${fill:N}` (N times `x`), `${id}` (of
//! the invocation) and `${read:PATH}` (a file). One that is refused becomes
//! `<refused: CODE>`.

use serde_json::Value;
use toolward_guest::bindings::toolward::driver::secrets;
use toolward_guest::bindings::toolward::driver::types::Invocation;

pub(crate) fn fill_in(value: &mut Value, call: &Invocation) {
    match value {
        Value::String(text) if text.contains("${") => *text = filled(text, call),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, call)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill_in(field, call)),
        _ => {}
    }
}

fn filled(text: &str, call: &Invocation) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        let Some((name, next)) = after.split_once('}') else {
            result.push_str("${");
            rest = after;
            break;
        };
        result.push_str(&value_of(name, call));
        rest = next;
    }
    result.push_str(rest);
    result
}

fn value_of(name: &str, call: &Invocation) -> String {
    let (kind, of) = name.split_once(':').unwrap_or((name, ""));
    let refused = |error: &dyn std::fmt::Display| format!("<refused: {error}>");
    match kind {
        "placeholder" => {
            secrets::placeholder(of).unwrap_or_else(|error| refused(&crate::secrets::code(error)))
        }
        "reveal" => secrets::reveal(of)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_else(|error| refused(&crate::secrets::code(error))),
        "fill" => "x".repeat(of.parse().unwrap_or(0)),
        "id" => call.id.clone(),
        "read" => std::fs::read_to_string(of).unwrap_or_else(|error| refused(&error)),
        _ => format!("${{{name}}}"),
    }
}
