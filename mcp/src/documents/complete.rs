//! Completion: what a client can offer while a person fills in an argument.

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};
use serde_json::json;
use toolward_contract::argument::Argument;
use toolward_contract::prompt::Part;

use super::Documents;
use super::prompt::ServedPrompt;
use super::resource::shown;

impl Documents {
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
            Reference::Prompt(reference) => self.found_prompt(&reference.name).and_then(|prompt| {
                let argument = find(&prompt.prompt.arguments, name)?;
                Some(match argument.values.is_empty() && chooses(prompt, name) {
                    true => matching(self.uris(prompt), typed),
                    false => matching(argument.values.iter().map(String::as_str), typed),
                })
            }),
            Reference::Resource(reference) => {
                let template = self.found_template(&reference.uri);
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

    /// The URIs that an argument of a prompt can be: those of its own bundle.
    fn uris<'d>(&'d self, prompt: &'d ServedPrompt) -> impl Iterator<Item = &'d str> {
        let own = self
            .seen_resources()
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

/// The values that what was typed fits: first those that begin with it, then
/// those that hold it, in the author's order.
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
