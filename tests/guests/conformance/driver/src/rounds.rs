//! Tools that keep a state, ask several things at once, or ask again.

use serde_json::{Value, json};
use toolward_guest::{Answer, Call, Error, Outcome, Questions};

use crate::Nothing;
use crate::asking::{form, message, told};
use crate::content::said;

type Asked = Result<Outcome<Value>, Error>;

pub(crate) fn state(call: Call<Nothing>) -> Asked {
    let Some(resume) = call.resume() else {
        let schema = form(json!({ "ok": { "type": "boolean" } }));
        let questions = Questions::new().form("confirm", "Please confirm", schema);
        return Ok(questions.state(&"the state")?.into());
    };
    if resume.state::<String>()? != "the state" {
        return Err(Error::new("internal", "the state is another one"));
    }
    Ok(said(format!("state-ok: {}", told(resume, "confirm")?)).into())
}

pub(crate) fn several(call: Call<Nothing>) -> Asked {
    let Some(resume) = call.resume() else {
        let schema = form(json!({ "name": { "type": "string" } }));
        let questions = Questions::new()
            .form("user_name", "What is your name?", schema)
            .sample("greeting", message("Generate a greeting", 50))
            .roots("client_roots");
        return Ok(questions.state(&"several")?.into());
    };
    let mut words = Vec::new();
    for key in ["user_name", "greeting", "client_roots"] {
        words.push(told(resume, key)?);
    }
    Ok(said(words.join("\n")).into())
}

/// Two questions, one after the other, with the first answer kept in the state.
pub(crate) fn three(call: Call<Nothing>) -> Asked {
    let ask = |key: &str, message: &str, property: &str, state: Vec<String>| {
        let mut properties = serde_json::Map::new();
        properties.insert(property.to_owned(), json!({ "type": "string" }));
        Questions::new()
            .form(key, message, form(Value::Object(properties)))
            .state(&state)
            .map(Outcome::from)
    };
    let Some(resume) = call.resume() else {
        return ask("step1", "Step 1: What is your name?", "name", Vec::new());
    };
    let mut answers: Vec<String> = resume.state()?;
    let key = if answers.is_empty() { "step1" } else { "step2" };
    let Answer::Accepted(answer) = resume.answer::<Value>(key)? else {
        return Ok(said("Then not").into());
    };
    answers.push(answer.to_string());
    if answers.len() == 1 {
        return ask(
            "step2",
            "Step 2: What is your favorite color?",
            "color",
            answers,
        );
    }
    Ok(said(answers.join(", ")).into())
}
