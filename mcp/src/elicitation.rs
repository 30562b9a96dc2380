//! Converts a driver's question to a request of the protocol, and the client's result to an answer.
//! A driver's text is escaped, and follows a line that names the asking tool.
#![expect(
    deprecated,
    reason = "MCP deprecates sampling and roots; both eras still have them"
)]

use std::time::{Duration, Instant};

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    ElicitationSchema, InputRequest, ListRootsRequest, RequestMetaObject,
};
use serde_json::{Map, Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{Answer, Ask, Asked, Question};

/// How long a person has to answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How long an operation of the host's state may take.
const STATE_TIMEOUT: Duration = Duration::from_secs(10);

/// The most characters of a name, of a title, and of longer texts.
const MAX_NAME_CHARS: usize = 200;
const MAX_TITLE_CHARS: usize = 1000;
const MAX_TEXT_CHARS: usize = 64 << 10;

/// Returns the deadline of an operation of the host's state that starts now.
pub(crate) fn state_deadline() -> Instant {
    let now = Instant::now();
    now.checked_add(STATE_TIMEOUT).unwrap_or(now)
}

/// Returns the request that asks a question; `None` if the protocol has no request for it.
pub(crate) fn request(asked: &Asked, question: &Question) -> Option<InputRequest> {
    match &question.ask {
        Ask::Form { message, schema } => {
            let message = format!(
                "{} asks:\n\n{}",
                who(asked),
                visible(message, MAX_TEXT_CHARS)
            );
            let mut schema = schema.clone();
            sanitize_schema(&mut schema);
            form(message, schema)
        }
        Ask::Sample(parameters) => {
            let mut parameters = parameters.clone();
            sanitize_messages(&mut parameters);
            let parameters: CreateMessageRequestParams = serde_json::from_value(parameters).ok()?;
            let parameters = attributed(parameters, asked);
            parameters.validate().ok()?;
            Some(InputRequest::CreateMessage(CreateMessageRequest::new(
                parameters,
            )))
        }
        Ask::Roots => {
            let mut request = ListRootsRequest::default();
            request.extensions.insert(meta(asked));
            Some(InputRequest::ListRoots(request))
        }
    }
}

/// A form with this message.
pub(crate) fn form(message: String, schema: Value) -> Option<InputRequest> {
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    let parameters = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    };
    Some(InputRequest::Elicitation(ElicitRequest::new(parameters)))
}

/// Names the asking tool, in the server's words.
fn who(asked: &Asked) -> String {
    let name = |text: &str| visible_line(text, MAX_NAME_CHARS);
    let (tool, publisher) = (name(&asked.tool_id), name(&asked.publisher));
    match asked.driver_publisher == asked.publisher {
        true => format!("tool {tool} by publisher {publisher}"),
        false => format!(
            "tool {tool} by publisher {publisher}, through the driver {} by ANOTHER publisher, {},",
            name(&asked.driver),
            name(&asked.driver_publisher)
        ),
    }
}

/// Names the asking tool in a sampling request: in `_meta`, and at the start of the system prompt,
/// which clients show to the person who must allow the request. Escapes the request's short texts.
fn attributed(
    mut parameters: CreateMessageRequestParams,
    asked: &Asked,
) -> CreateMessageRequestParams {
    let who = format!("[{} asks for this.]", who(asked));
    parameters.system_prompt = Some(match parameters.system_prompt.take() {
        Some(prompt) => format!("{who}\n\n{prompt}"),
        None => who,
    });
    for sequence in parameters.stop_sequences.iter_mut().flatten() {
        *sequence = visible(sequence, MAX_TITLE_CHARS);
    }
    let preferences = parameters.model_preferences.as_mut();
    let hints = preferences.and_then(|preferences| preferences.hints.as_mut());
    for hint in hints.into_iter().flatten() {
        let name = hint.name.as_deref();
        hint.name = name.map(|name| visible_line(name, MAX_NAME_CHARS));
    }
    let known = parameters.meta.get_or_insert_default();
    known.0.0.extend(meta(asked).0.0);
    parameters
}

/// `_meta` of a sampling or roots request: the asking tool.
const META: &str = "toolward/asks";

fn meta(asked: &Asked) -> RequestMetaObject {
    let name = |text: &str| visible_line(text, MAX_NAME_CHARS);
    let by = json!({
        "tool": name(&asked.tool_id),
        "publisher": name(&asked.publisher),
        "driver": name(&asked.driver),
        "driver_publisher": name(&asked.driver_publisher),
    });
    RequestMetaObject::from(Map::from_iter([(META.to_owned(), by)]))
}

/// Escapes the titles and descriptions of a form's schema. Names and choices need no escapes, since
/// the host accepts only plain text in them.
fn sanitize_schema(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    // The protocol's type does not have this keyword.
    keywords.shift_remove("additionalProperties");
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("title" | "description", Value::String(text)) => {
                *text = visible_line(text, MAX_TITLE_CHARS);
            }
            ("enumNames", Value::Array(names)) => {
                for name in names {
                    if let Value::String(text) = name {
                        *text = visible_line(text, MAX_NAME_CHARS);
                    }
                }
            }
            ("oneOf" | "anyOf", Value::Array(choices)) => {
                choices.iter_mut().for_each(sanitize_schema);
            }
            ("items", items) => sanitize_schema(items),
            ("properties", Value::Object(fields)) => {
                fields.values_mut().for_each(sanitize_schema);
            }
            _ => {}
        }
    }
}

/// Escapes the texts of a sampling request, since a model and a person read them.
fn sanitize_messages(parameters: &mut Value) {
    match parameters {
        Value::Array(items) => items.iter_mut().for_each(sanitize_messages),
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &mut *member) {
                    ("text" | "systemPrompt", Value::String(text)) => {
                        *text = visible(text, MAX_TEXT_CHARS)
                    }
                    ("mimeType", Value::String(name)) => *name = visible_line(name, MAX_NAME_CHARS),
                    _ => sanitize_messages(member),
                }
            }
        }
        _ => {}
    }
}

/// Returns the answer in a client's result; `None` if the value does not answer the question.
pub(crate) fn answer(ask: &Ask, value: Value) -> Option<Answer> {
    if let Ask::Form { .. } = ask {
        return choice(value);
    }
    let Value::Object(mut result) = value else {
        return None;
    };
    for name in ["_meta", "resultType"] {
        result.remove(name);
    }
    Some(Answer::Accepted(Value::Object(result)))
}

/// Returns a person's response to a form.
pub(crate) fn choice(mut result: Value) -> Option<Answer> {
    match result.get("action")?.as_str()? {
        "accept" => {
            let content = result.get_mut("content").map(Value::take);
            Some(Answer::Accepted(content.unwrap_or_else(|| json!({}))))
        }
        "decline" => Some(Answer::Declined),
        "cancel" => Some(Answer::Cancelled),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
