//! The arguments of a prompt: a client gives some, and the person behind it is asked
//! for the rest. An answer becomes an argument and nothing else, so a question carries no
//! state that would need sealing. Also what a client can offer while a person fills one in.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ElicitRequest, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult,
    InputResponses, JsonObject, PrimitiveSchemaDefinition, Reference, StringSchema,
};
use serde_json::{Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::argument::Argument;
use toolward_contract::prompt::Part;

use super::resource::{ArgumentValues, shown};
use super::{Provenance, ServedDocuments, ServedPrompt};
use crate::client::Era;

/// How long a value may be, in bytes.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// How long a person may take to answer. The prompt holds nothing meanwhile but
/// its request.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// The key of the question in a result that asks.
const QUESTION_KEY: &str = "arguments";

/// How a client can be asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    pub(super) era: Era,
    /// Whether it shows forms to a person.
    pub(super) form: bool,
}

/// What came of the arguments.
pub(super) enum Filled {
    /// Nothing is missing.
    All(ArgumentValues),
    /// The client is asked first.
    Ask(InputRequiredResult),
}

/// The arguments as the client gives them.
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

/// Fills in what is required and missing: from answers, or by asking.
pub(super) async fn complete(
    prompt: &ServedPrompt,
    mut values: ArgumentValues,
    answers: &InputResponses,
    means: Means,
    ask: impl AsyncFnOnce(InputRequest) -> Option<Value>,
) -> Result<Filled, ErrorData> {
    if missing(prompt, &values).is_empty() {
        return Ok(Filled::All(values));
    }
    if let (Era::Stateless, Some(answer)) = (means.era, answers.get(QUESTION_KEY)) {
        answered(prompt, answer, &mut values)?;
    }
    let lacks = missing(prompt, &values);
    if lacks.is_empty() {
        return Ok(Filled::All(values));
    }
    if !means.form {
        return Err(lacking(&lacks, "this client can't ask for them"));
    }
    let question = question(prompt, &lacks)?;
    match means.era {
        Era::Stateless => {
            let requests = BTreeMap::from([(QUESTION_KEY.to_owned(), question)]);
            let asking = InputRequiredResult::from_input_requests(requests);
            Ok(Filled::Ask(asking))
        }
        Era::Session => {
            let answer = ask(question).await;
            let answer = answer.ok_or_else(|| lacking(&lacks, "nobody answered in time"))?;
            answered(prompt, &answer, &mut values)?;
            let lacks = missing(prompt, &values);
            if lacks.is_empty() {
                Ok(Filled::All(values))
            } else {
                Err(lacking(&lacks, "the answer left them out"))
            }
        }
    }
}

/// The required arguments that are missing, or empty as a form leaves them.
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

/// One form for all that is missing, headed by whose prompt it is.
fn question(prompt: &ServedPrompt, lacks: &[&Argument]) -> Result<InputRequest, ErrorData> {
    let publisher = visible_line(&prompt.provenance.publisher, 120);
    let title = Provenance::title(&prompt.prompt.name);
    let message = format!("The prompt {title} by {publisher} asks for what it is to be about.");
    let longest = u32::try_from(MAX_VALUE_BYTES).unwrap_or(u32::MAX);
    let mut schema = ElicitationSchema::builder();
    for argument in lacks {
        let mut field = StringSchema::new().min_length(1).max_length(longest);
        if let Some(title) = &argument.title {
            field = field.title(Provenance::title(title));
        }
        if let Some(description) = &argument.description {
            field = field.description(visible(description, 4000));
        }
        let field = PrimitiveSchemaDefinition::String(field);
        schema = schema.required_property(argument.name.clone(), field);
    }
    let requested_schema = schema
        .build()
        .map_err(|_| ErrorData::internal_error("the form for the arguments failed", None))?;
    Ok(InputRequest::Elicitation(ElicitRequest::new(
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema,
        },
    )))
}

/// Takes an answer over, for what was missing only: what the client gave stays.
fn answered(
    prompt: &ServedPrompt,
    answer: &Value,
    values: &mut ArgumentValues,
) -> Result<(), ErrorData> {
    let lacks = missing(prompt, values);
    let Ok(result) = serde_json::from_value::<ElicitResult>(answer.clone()) else {
        return Err(lacking(&lacks, "the answer is none"));
    };
    match result.action {
        ElicitationAction::Accept => {}
        _ => return Err(lacking(&lacks, "the person did not give them")),
    }
    let content = result.content.as_ref().and_then(Value::as_object);
    let Some(content) = content else {
        return Ok(());
    };
    let names: Vec<String> = lacks.iter().map(|one| one.name.clone()).collect();
    for name in names {
        match content.get(&name) {
            Some(Value::String(text)) if text.len() <= MAX_VALUE_BYTES => {
                values.insert(name, text.clone());
            }
            Some(_) => return Err(refused(prompt, &name, true)),
            None => {}
        }
    }
    Ok(())
}

impl ServedDocuments {
    /// `completion/complete`.
    ///
    /// # Errors
    /// No such prompt, template or argument.
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

    /// The URIs that an argument of a prompt can be: only its bundle's.
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

/// Whether an argument is the URI of a resource to embed.
fn chooses(prompt: &ServedPrompt, name: &str) -> bool {
    let mut messages = prompt.prompt.messages.iter();
    messages
        .any(|message| matches!(&message.part, Part::Chosen { argument, .. } if argument == name))
}

/// The values that contain the typed text, in the author's order. Values that start with it
/// come first.
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
