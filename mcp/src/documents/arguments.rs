//! The arguments of a prompt. If the client leaves out required arguments, the person behind it is
//! asked for them. An answer only sets arguments, which the client could also set itself, so a
//! question needs no sealed state. The module also lists the values that a client can offer while a
//! person fills an argument in.

use std::collections::BTreeMap;

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, InputRequest, InputRequiredResult,
    InputResponses, JsonObject, Reference,
};
use serde_json::{Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::argument::Argument;
use toolward_contract::prompt::Part;
use toolward_host::Answer;

use super::resource::{ArgumentValues, shown};
use super::{Provenance, ServedDocuments, ServedPrompt};
use crate::client::{Client, Era};
use crate::elicitation::{self, ANSWER_TIMEOUT};

/// How long a value may be, in bytes.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// The key of the question in a result that asks.
const QUESTION_KEY: &str = "arguments";

/// Returns the arguments that the client gives.
pub(super) fn given(
    prompt: &ServedPrompt,
    arguments: Option<JsonObject>,
) -> Result<ArgumentValues, ErrorData> {
    let mut values = ArgumentValues::new();
    for (name, value) in arguments.unwrap_or_default() {
        let known = prompt.prompt.arguments.iter().any(|one| one.name == name);
        let text = value.as_str().filter(|text| text.len() <= MAX_VALUE_BYTES);
        match text.filter(|_| known) {
            Some(text) => {
                values.insert(name, text.to_owned());
            }
            None => return Err(refused(prompt, &name, known)),
        }
    }
    Ok(values)
}

fn refused(prompt: &ServedPrompt, name: &str, known: bool) -> ErrorData {
    let name = shown(name);
    let message = if known {
        format!("expected text of at most {MAX_VALUE_BYTES} bytes in the argument `{name}`")
    } else {
        format!("expected an argument of the prompt, found `{name}`")
    };
    let takes = prompt.prompt.arguments.iter().map(|one| one.name.as_str());
    let takes: Vec<&str> = takes.collect();
    ErrorData::invalid_params(message, Some(json!({ "argument": name, "takes": takes })))
}

/// Fills in the required arguments that are missing, from answers or by asking. A client of the
/// stateless era is asked by the returned result, and calls again.
pub(super) async fn complete(
    prompt: &ServedPrompt,
    values: &mut ArgumentValues,
    answers: &InputResponses,
    client: &Client,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let mut lacks = missing(prompt, values);
    if !lacks.is_empty()
        && client.era == Era::Stateless
        && let Some(answer) = answers.get(QUESTION_KEY)
    {
        lacks = answered(prompt, &lacks, answer, values)?;
    }
    if lacks.is_empty() {
        return Ok(None);
    }
    if !client.answerable.form {
        return Err(lacking(&lacks, "this client can't ask for them"));
    }
    let question = question(prompt, &lacks)?;
    if client.era == Era::Stateless {
        let requests = BTreeMap::from([(QUESTION_KEY.to_owned(), question)]);
        return Ok(Some(InputRequiredResult::from_input_requests(requests)));
    }
    let answer = match &client.person {
        Some(person) => person.ask(question, ANSWER_TIMEOUT).await.ok(),
        None => None,
    };
    let answer = answer.ok_or_else(|| lacking(&lacks, "nobody answered in time"))?;
    lacks = answered(prompt, &lacks, &answer, values)?;
    match lacks.is_empty() {
        true => Ok(None),
        false => Err(lacking(&lacks, "the answer left them out")),
    }
}

/// The required arguments that are missing, or empty, as from a form that was not filled in.
fn missing<'p>(prompt: &'p ServedPrompt, values: &ArgumentValues) -> Vec<&'p Argument> {
    let required = prompt.prompt.arguments.iter().filter(|one| one.required);
    required
        .filter(|one| values.get(&one.name).is_none_or(String::is_empty))
        .collect()
}

fn lacking(lacks: &[&Argument], why: &str) -> ErrorData {
    let names: Vec<&str> = lacks.iter().map(|one| one.name.as_str()).collect();
    ErrorData::invalid_params(
        format!("expected the arguments {}; {why}", names.join(", ")),
        Some(json!({ "missing": names })),
    )
}

/// One form for all missing arguments. Its message names the prompt and the publisher.
fn question(prompt: &ServedPrompt, lacks: &[&Argument]) -> Result<InputRequest, ErrorData> {
    let publisher = visible_line(&prompt.provenance.publisher, 120);
    let title = Provenance::title(&prompt.prompt.name);
    let message = format!("The prompt {title} by {publisher} asks for what it is to be about.");
    let fields = lacks.iter().map(|argument| {
        let description = argument.description.as_deref();
        let field = json!({
            "type": "string",
            "title": argument.title.as_deref().map(Provenance::title),
            "description": description.map(|text| visible(text, 4000)),
            "minLength": 1,
            "maxLength": MAX_VALUE_BYTES,
        });
        (argument.name.clone(), field)
    });
    let fields: BTreeMap<String, Value> = fields.collect();
    let names: Vec<&str> = lacks.iter().map(|one| one.name.as_str()).collect();
    let schema = json!({ "type": "object", "properties": fields, "required": names });
    elicitation::form(message, schema)
        .ok_or_else(|| ErrorData::internal_error("the form for the arguments failed", None))
}

/// Takes the missing arguments from an answer, and leaves the arguments that the client gave.
/// Returns the arguments that are still missing.
fn answered<'p>(
    prompt: &'p ServedPrompt,
    lacks: &[&Argument],
    answer: &Value,
    values: &mut ArgumentValues,
) -> Result<Vec<&'p Argument>, ErrorData> {
    let content = match elicitation::choice(answer.clone()) {
        Some(Answer::Accepted(content)) => content,
        Some(_) => return Err(lacking(lacks, "the person did not give them")),
        None => return Err(lacking(lacks, "the answer is none")),
    };
    for Argument { name, .. } in lacks {
        match content.get(name) {
            Some(Value::String(text)) if text.len() <= MAX_VALUE_BYTES => {
                values.insert(name.clone(), text.clone());
            }
            Some(_) => return Err(refused(prompt, name, true)),
            None => {}
        }
    }
    Ok(missing(prompt, values))
}

impl ServedDocuments {
    /// `completion/complete`.
    ///
    /// # Errors
    /// If no such prompt, template or argument exists.
    pub(crate) fn complete(
        &self,
        params: &CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let name = &params.argument.name;
        let typed = &params.argument.value;
        let found = match &params.r#ref {
            Reference::Prompt(reference) => self
                .found(&self.all.prompts, &reference.name)
                .and_then(|prompt| {
                    let argument = find(&prompt.prompt.arguments, name)?;
                    Some(match argument.values.is_empty() && chooses(prompt, name) {
                        true => matching(self.uris(prompt), typed),
                        false => matching(argument.values.iter().map(String::as_str), typed),
                    })
                }),
            Reference::Resource(reference) => {
                let template = self.found(&self.all.templates, &reference.uri);
                template.and_then(|template| {
                    let argument = find(&template.arguments, name)?;
                    Some(matching(argument.values.iter().map(String::as_str), typed))
                })
            }
            _ => None,
        };
        let Some(mut values) = found else {
            return Err(ErrorData::invalid_params(
                "there is no such argument to complete",
                Some(json!({ "argument": shown(name) })),
            ));
        };
        let total = u32::try_from(values.len()).ok();
        let more = values.len() > CompletionInfo::MAX_VALUES;
        values.truncate(CompletionInfo::MAX_VALUES);
        let info = CompletionInfo::with_pagination(values, total, more);
        let info = info.map_err(|message| ErrorData::internal_error(message, None))?;
        Ok(CompleteResult::new(info))
    }

    /// The URIs that an argument of a prompt can choose from: the resources of the prompt's bundle.
    fn uris<'d>(&'d self, prompt: &'d ServedPrompt) -> impl Iterator<Item = &'d str> {
        let own = self
            .seen(&self.all.resources)
            .filter(|resource| *resource.provenance == *prompt.provenance);
        own.map(|resource| resource.uri.as_str())
    }
}

fn find<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a Argument> {
    arguments.iter().find(|argument| argument.name == name)
}

/// Whether an argument is the URI of a resource that the prompt embeds.
fn chooses(prompt: &ServedPrompt, name: &str) -> bool {
    let mut messages = prompt.prompt.messages.iter();
    messages
        .any(|message| matches!(&message.part, Part::Chosen { argument, .. } if argument == name))
}

/// Returns the values that contain the typed text. Values that start with it come first. Otherwise
/// the author's order stays.
fn matching<'v>(values: impl Iterator<Item = &'v str>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let mut found: Vec<(bool, &str)> = values
        .filter_map(|value| {
            let at = value.to_lowercase().find(&typed)?;
            Some((at != 0, value))
        })
        .collect();
    found.sort_by_key(|(inside, _)| *inside);
    found
        .into_iter()
        .map(|(_, value)| value.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::matching;

    #[test]
    fn values_that_begin_with_what_is_typed_come_first() {
        let values = ["a park", "Paris", "rome", "parma"];
        assert_eq!(
            matching(values.into_iter(), "par"),
            ["Paris", "parma", "a park"]
        );
        assert_eq!(matching(values.into_iter(), "").len(), 4);
        assert!(matching(values.into_iter(), "x").is_empty());
    }
}
