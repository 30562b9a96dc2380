//! Tools that ask once, by a form, the caller's model or its roots.

use serde::Deserialize;
use serde_json::{Value, json};
use toolward_guest::{Answer, Call, Error, Outcome, Questions, Resume};

use crate::Nothing;
use crate::content::said;

type Asked = Result<Outcome<Value>, Error>;

/// Asks one question, and says what came back for it.
fn once(resume: Option<&Resume>, key: &str, ask: impl FnOnce(Questions) -> Questions) -> Asked {
    match resume {
        None => Ok(ask(Questions::new()).into()),
        Some(resume) => Ok(said(told(resume, key)?).into()),
    }
}

/// What came back for a question, in words.
pub(crate) fn told(resume: &Resume, key: &str) -> Result<String, Error> {
    let (action, content) = match resume.answer::<Value>(key)? {
        Answer::Accepted(value) => ("accept", value),
        Answer::Declined => ("decline", Value::Null),
        Answer::Cancelled => ("cancel", Value::Null),
    };
    Ok(format!(
        "Elicitation completed: action={action}, content={content}"
    ))
}

/// A form of required properties.
pub(crate) fn form(properties: Value) -> Value {
    let required: Vec<&String> = properties
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

/// What the caller's model is asked.
pub(crate) fn message(text: &str, tokens: u32) -> Value {
    let content = json!({ "type": "text", "text": text });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": tokens })
}

/// The text of what the caller's model said.
fn said_by_model(resume: &Resume, key: &str) -> Result<String, Error> {
    let answer = match resume.answer::<Value>(key)? {
        Answer::Accepted(value) => value,
        Answer::Declined | Answer::Cancelled => return told(resume, key),
    };
    let text = answer.pointer("/content/text").and_then(Value::as_str);
    Ok(format!("LLM response: {}", text.unwrap_or("no text")))
}

#[derive(Deserialize)]
pub(crate) struct Prompt {
    prompt: String,
}

pub(crate) fn sample_prompt(call: Call<Prompt>) -> Asked {
    match call.resume() {
        None => Ok(Questions::new()
            .sample("answer", message(&call.input.prompt, 100))
            .into()),
        Some(resume) => Ok(said(said_by_model(resume, "answer")?).into()),
    }
}

pub(crate) fn sample(call: Call<Nothing>) -> Asked {
    let question = message("What is the capital of France?", 100);
    match call.resume() {
        None => Ok(Questions::new().sample("capital_question", question).into()),
        Some(resume) => Ok(said(said_by_model(resume, "capital_question")?).into()),
    }
}

#[derive(Deserialize)]
pub(crate) struct Message {
    message: String,
}

pub(crate) fn person(call: Call<Message>) -> Asked {
    let schema = form(json!({
        "username": { "type": "string", "description": "User's response" },
        "email": { "type": "string", "description": "User's email address" },
    }));
    let message = call.input.message.clone();
    once(call.resume(), "person", |ask| {
        ask.form("person", message, schema)
    })
}

pub(crate) fn defaults(call: Call<Nothing>) -> Asked {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        },
    });
    once(call.resume(), "profile", |ask| {
        ask.form("profile", "Please look over your profile", schema)
    })
}

pub(crate) fn choices(call: Call<Nothing>) -> Asked {
    let titled = |kind: &str| {
        json!([
            { "const": "value1", "title": format!("First {kind}") },
            { "const": "value2", "title": format!("Second {kind}") },
            { "const": "value3", "title": format!("Third {kind}") },
        ])
    };
    let options = json!(["option1", "option2", "option3"]);
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    });
    once(call.resume(), "choices", |ask| {
        ask.form("choices", "Please choose", schema)
    })
}

pub(crate) fn confirm(call: Call<Nothing>) -> Asked {
    let schema = form(json!({ "ok": { "type": "boolean" } }));
    once(call.resume(), "confirm", |ask| {
        ask.form("confirm", "Please confirm", schema)
    })
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

pub(crate) fn name(call: Call<Nothing>) -> Asked {
    let Some(resume) = call.resume() else {
        let schema = form(json!({ "name": { "type": "string" } }));
        return Ok(Questions::new()
            .form("user_name", "What is your name?", schema)
            .into());
    };
    let greeting = match resume.answer::<Name>("user_name")? {
        Answer::Accepted(Name { name }) => format!("Hello, {name}!"),
        Answer::Declined | Answer::Cancelled => "Hello, whoever you are!".to_owned(),
    };
    Ok(said(greeting).into())
}

pub(crate) fn roots(call: Call<Nothing>) -> Asked {
    once(call.resume(), "client_roots", |ask| {
        ask.roots("client_roots")
    })
}
