//! Samples: parameters and results of MCP's `sampling/createMessage`, restricted so
//! that a driver gets only the model's answer.

use serde_json::{Map, Value};

/// The parameters that a driver may give. `includeContext` is missing because it would reveal other
/// servers' data to the driver, and `tools` because they would run without approval.
const PARAMETERS: &[&str] = &[
    "messages",
    "maxTokens",
    "systemPrompt",
    "temperature",
    "stopSequences",
    "modelPreferences",
];
const MAX_MESSAGES: usize = 64;

/// Checks that these parameters may be sent.
pub(super) fn check(parameters: &Value) -> Result<(), String> {
    let Value::Object(parameters) = parameters else {
        return Err("its parameters are not an object".to_owned());
    };
    let mut names = parameters.keys();
    if let Some(name) = names.find(|name| !PARAMETERS.contains(&name.as_str())) {
        return Err(format!("its parameter {name:?} is not allowed"));
    }
    let tokens = parameters.get("maxTokens").and_then(Value::as_u64);
    if !tokens.is_some_and(|tokens| (1..=u64::from(u32::MAX)).contains(&tokens)) {
        return Err("its `maxTokens` is not a positive number".to_owned());
    }
    let Some(Value::Array(messages)) = parameters.get("messages") else {
        return Err("its `messages` are not a list".to_owned());
    };
    if messages.len() > MAX_MESSAGES || !messages.iter().all(is_message) {
        return Err(format!(
            "its `messages` are not at most {MAX_MESSAGES} of `user` or `assistant`, with text, \
             images or audio"
        ));
    }
    let has_type = |name: &str, is: fn(&Value) -> bool| parameters.get(name).is_none_or(is);
    let texts = |value: &Value| {
        let items = value.as_array();
        items.is_some_and(|items| items.iter().all(Value::is_string))
    };
    let good = has_type("systemPrompt", Value::is_string)
        && has_type("temperature", Value::is_number)
        && has_type("modelPreferences", Value::is_object)
        && has_type("stopSequences", texts);
    match good {
        true => Ok(()),
        false => Err("a parameter has another type than MCP's".to_owned()),
    }
}

fn is_message(message: &Value) -> bool {
    let Value::Object(message) = message else {
        return false;
    };
    has_only(message, &["role", "content"])
        && is_role(message.get("role"))
        && match message.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().all(is_block),
            Some(block) => is_block(block),
            None => false,
        }
}

fn is_block(block: &Value) -> bool {
    let Value::Object(block) = block else {
        return false;
    };
    let text = |name: &str| block.get(name).is_some_and(Value::is_string);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text("text") && has_only(block, &["type", "text"]),
        Some("image" | "audio") => {
            text("data") && text("mimeType") && has_only(block, &["type", "data", "mimeType"])
        }
        _ => false,
    }
}

fn is_role(role: Option<&Value>) -> bool {
    matches!(role.and_then(Value::as_str), Some("user" | "assistant"))
}

fn has_only(object: &Map<String, Value>, names: &[&str]) -> bool {
    object.keys().all(|name| names.contains(&name.as_str()))
}

/// Checks that a value is an answer: MCP's `CreateMessageResult`.
pub(super) fn check_answer(answer: &Value) -> Result<(), String> {
    let text = |name: &str| answer.get(name).is_some_and(Value::is_string);
    let content = answer.get("content");
    let has_content = content.is_some_and(|content| content.is_object() || content.is_array());
    match is_role(answer.get("role")) && text("model") && has_content {
        true => Ok(()),
        false => Err("expected `role`, `model` and `content` of a message".to_owned()),
    }
}

/// The most roots that a driver gets.
const MAX_ROOTS: usize = 256;

/// Checks that a value names roots: MCP's `ListRootsResult`.
pub(super) fn check_roots(answer: &Value) -> Result<(), String> {
    let is_root = |root: &Value| root.get("uri").is_some_and(Value::is_string);
    match answer.get("roots") {
        Some(Value::Array(roots)) if roots.len() <= MAX_ROOTS && roots.iter().all(is_root) => {
            Ok(())
        }
        _ => Err(format!(
            "expected `roots`, at most {MAX_ROOTS}, each with a `uri`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(name: &str, value: Value) -> Value {
        let mut parameters = json!({
            "messages": [{"role": "user", "content": {"type": "text", "text": "Hello?"}}],
            "maxTokens": 100,
        });
        parameters[name] = value;
        parameters
    }

    #[test]
    fn a_plain_question_to_the_model_may_be_sent() {
        assert_eq!(check(&with("temperature", json!(0.5))), Ok(()));
        assert_eq!(check(&with("systemPrompt", json!("Be brief."))), Ok(()));
        assert_eq!(check(&with("messages", json!([]))), Ok(()));
    }

    #[test]
    fn what_would_show_a_driver_more_than_the_answer_may_not() {
        for (name, value) in [
            ("includeContext", json!("allServers")),
            ("tools", json!([])),
            ("toolChoice", json!({"mode": "required"})),
            ("metadata", json!({})),
            ("_meta", json!({})),
            ("maxTokens", json!(0)),
            ("maxTokens", json!("many")),
            ("messages", json!("Hello")),
            (
                "messages",
                json!([{"role": "system", "content": {"type": "text", "text": ""}}]),
            ),
            (
                "messages",
                json!([{"role": "user", "content": {"type": "tool_use"}}]),
            ),
            ("stopSequences", json!([1])),
            ("systemPrompt", json!(7)),
        ] {
            assert!(
                check(&with(name, value.clone())).is_err(),
                "{name}: {value}"
            );
        }
        assert!(check(&json!([])).is_err());
    }

    #[test]
    fn answers_have_the_form_of_the_protocol() {
        let message = json!({"role": "assistant", "model": "m", "content": {"type": "text"}});
        assert_eq!(check_answer(&message), Ok(()));
        assert!(check_answer(&json!({"role": "assistant", "model": "m"})).is_err());
        assert!(check_answer(&json!("yes")).is_err());
        assert_eq!(
            check_roots(&json!({"roots": [{"uri": "file:///a"}]})),
            Ok(())
        );
        assert!(check_roots(&json!({"roots": [{"name": "a"}]})).is_err());
        assert!(check_roots(&json!({})).is_err());
    }
}
