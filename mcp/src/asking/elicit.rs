//! From a driver's question to a request of the protocol, and from what comes back
//! to an answer. Text of a driver's is shown behind who asks, and made visible.
#![expect(
    deprecated,
    reason = "samples and roots are on their way out of MCP, and in both eras still"
)]

use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ElicitRequestParams,
    ElicitationSchema, InputRequest, ListRootsRequest, RequestMetaObject,
};
use serde_json::{Map, Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_host::{Answer, Ask, Asked, Question};

/// Characters of a name, of a title, and of longer texts.
const NAME: usize = 200;
const WORDS: usize = 1000;
const TEXT: usize = 64 << 10;

/// The request that puts a question to the client; `None` where the protocol has
/// no such question.
pub(crate) fn request(asked: &Asked, question: &Question) -> Option<InputRequest> {
    match &question.ask {
        Ask::Form { message, schema } => {
            let message = format!("{} asks:\n\n{}", who(asked), visible(message, TEXT));
            form(message, shown(schema))
        }
        Ask::Sample(parameters) => {
            let mut parameters = parameters.clone();
            show_messages(&mut parameters);
            let parameters: CreateMessageRequestParams = serde_json::from_value(parameters).ok()?;
            let parameters = attributed(parameters, asked);
            parameters.validate().ok()?;
            Some(InputRequest::CreateMessage(CreateMessageRequest::new(
                parameters,
            )))
        }
        Ask::Roots => {
            let mut request = ListRootsRequest {
                method: Default::default(),
                extensions: Default::default(),
            };
            request.extensions.insert(meta(asked));
            Some(InputRequest::ListRoots(request))
        }
        _ => None,
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

/// Who asks, in words of the server's own.
fn who(asked: &Asked) -> String {
    let name = |text: &str| visible_line(text, NAME);
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

/// A sample that says who wants it: first thing in the prompt that clients show
/// whoever has to allow it, and in `_meta`. Its short texts are made visible.
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
        *sequence = visible(sequence, WORDS);
    }
    let preferences = parameters.model_preferences.as_mut();
    let hints = preferences.and_then(|preferences| preferences.hints.as_mut());
    for hint in hints.into_iter().flatten() {
        hint.name = hint.name.as_deref().map(|name| visible_line(name, NAME));
    }
    let mut known = parameters.meta.take().unwrap_or_default();
    known.0.0.extend(meta(asked).0.0);
    parameters.meta = Some(known);
    parameters
}

/// `_meta` of a question that has no words of its own for a person.
const META: &str = "toolward/asks";

fn meta(asked: &Asked) -> RequestMetaObject {
    let name = |text: &str| visible_line(text, NAME);
    let mut asks = Map::new();
    let by = json!({
        "tool": name(&asked.tool_id),
        "publisher": name(&asked.publisher),
        "driver": name(&asked.driver),
        "driver_publisher": name(&asked.driver_publisher),
    });
    asks.insert(META.to_owned(), by);
    RequestMetaObject::from(asks)
}

/// The schema of a form, with its titles and descriptions made visible. Names and
/// choices are visible as they are: the host takes no others.
fn shown(schema: &Value) -> Value {
    let Value::Object(schema) = schema else {
        return schema.clone();
    };
    let shown = schema.iter().map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("title" | "description", Value::String(text)) => {
                Value::String(visible_line(text, WORDS))
            }
            ("enumNames", Value::Array(names)) => names.iter().map(line).collect(),
            ("oneOf" | "anyOf", Value::Array(choices)) => choices.iter().map(shown).collect(),
            ("items", items) => shown(items),
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter();
                Value::Object(
                    fields
                        .map(|(name, field)| (name.clone(), shown(field)))
                        .collect(),
                )
            }
            _ => value.clone(),
        };
        (keyword.clone(), value)
    });
    // What the protocol's own type does not know.
    let known = shown.filter(|(keyword, _)| keyword != "additionalProperties");
    Value::Object(known.collect())
}

fn line(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible_line(text, NAME)),
        other => other.clone(),
    }
}

/// Makes the texts of a sample visible: a model and a person read them.
fn show_messages(parameters: &mut Value) {
    match parameters {
        Value::Array(items) => items.iter_mut().for_each(show_messages),
        Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &mut *member) {
                    ("text" | "systemPrompt", Value::String(text)) => *text = visible(text, TEXT),
                    ("mimeType", Value::String(name)) => *name = visible_line(name, NAME),
                    _ => show_messages(member),
                }
            }
        }
        _ => {}
    }
}

/// What a client gave for a question; `None` where it is no result of such a
/// request.
pub(crate) fn answer(ask: &Ask, value: Value) -> Option<Answer> {
    let Value::Object(mut result) = value else {
        return None;
    };
    for name in ["_meta", "resultType"] {
        result.remove(name);
    }
    match ask {
        Ask::Form { .. } => Some(match choice(&mut result)? {
            Choice::Accepted(content) => Answer::Accepted(content),
            Choice::Declined => Answer::Declined,
            Choice::Cancelled => Answer::Cancelled,
        }),
        _ => Some(Answer::Accepted(Value::Object(result))),
    }
}

/// What a person did with a form.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    Accepted(Value),
    Declined,
    Cancelled,
}

/// The result of an elicitation.
pub(crate) fn choice(result: &mut Map<String, Value>) -> Option<Choice> {
    match result.get("action")?.as_str()? {
        "accept" => {
            let content = result.remove("content");
            Some(Choice::Accepted(
                content.unwrap_or_else(|| Map::new().into()),
            ))
        }
        "decline" => Some(Choice::Declined),
        "cancel" => Some(Choice::Cancelled),
        _ => None,
    }
}

#[cfg(test)]
#[path = "elicit_tests.rs"]
mod tests;
