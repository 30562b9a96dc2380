//! A served prompt and its messages.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, EmbeddedResource, GetPromptResult, Prompt, PromptArgument, PromptMessage,
    ResourceContents, Role,
};
use serde_json::json;
use toolward_bundle::documents::Located;
use toolward_bundle::shown::MAX_RESOURCE;
use toolward_bundle::text::{is_hidden, visible};
use toolward_contract::prompt::{self, Part};

use super::resource::{ArgumentValues, shown};
use super::{Provenance, ServedDocuments, ServedPrompt, ServedResource};

/// How much text a prompt may contain after it is filled in, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The key of `_meta` for prompts.
const META_KEY: &str = "toolward/prompt";

/// A prompt that is served under a name.
#[derive(Debug)]
pub(super) struct PromptContent {
    pub(super) prompt: Arc<prompt::Prompt>,
    /// The embedded files, by their paths.
    embedded: BTreeMap<String, Arc<ServedResource>>,
}

impl ServedPrompt {
    /// `files` are the served files of the prompt's bundle.
    pub(super) fn new(
        name: &str,
        entry: &Located<prompt::Prompt>,
        files: &BTreeMap<String, Arc<ServedResource>>,
        provenance: &Arc<Provenance>,
    ) -> Self {
        let prompt = Arc::clone(&entry.value);
        let embedded = prompt.messages.iter().filter_map(|message| {
            let (Part::Media { path, .. } | Part::File { path, .. }) = &message.part else {
                return None;
            };
            Some((path.clone(), Arc::clone(files.get(path)?)))
        });
        let embedded = embedded.collect();
        let arguments = prompt.arguments.iter().map(|argument| {
            let mut listed =
                PromptArgument::new(argument.name.clone()).with_required(argument.required);
            listed.title = argument.title.as_deref().map(Provenance::title);
            let description = argument.description.as_deref();
            listed.description = description.map(|text| visible(text, 4000));
            listed
        });
        let arguments: Vec<PromptArgument> = arguments.collect();
        let description = provenance.description(&prompt.description);
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let listed = Prompt::new(name, Some(description), arguments)
            .with_title(Provenance::title(&prompt.name))
            .with_meta(provenance.meta(META_KEY, "id", prompt.id.as_str()));
        Self {
            listed,
            path: entry.path.clone(),
            provenance: Arc::clone(provenance),
            content: PromptContent { prompt, embedded },
        }
    }

    /// Fills in values and returns the messages. `documents` are the documents that the caller may
    /// see.
    pub(super) fn get(
        &self,
        values: &ArgumentValues,
        documents: &ServedDocuments,
    ) -> Result<GetPromptResult, ErrorData> {
        let mut room = Room {
            text: MAX_TEXT_BYTES,
            files: MAX_RESOURCE,
        };
        let mut messages = Vec::with_capacity(self.prompt.messages.len());
        for message in &self.prompt.messages {
            let Some(content) = self.content(&message.part, values, documents, &mut room)? else {
                continue;
            };
            let role = match message.role {
                prompt::PromptRole::User => Role::User,
                prompt::PromptRole::Assistant => Role::Assistant,
            };
            messages.push(PromptMessage::new(role, content));
        }
        let mut result = GetPromptResult::new(messages);
        result.description.clone_from(&self.listed.description);
        result.meta.clone_from(&self.listed.meta);
        Ok(result)
    }

    /// Returns `None` for a resource that the caller has not chosen.
    fn content(
        &self,
        part: &Part,
        values: &ArgumentValues,
        documents: &ServedDocuments,
        room: &mut Room,
    ) -> Result<Option<ContentBlock>, ErrorData> {
        let value = |name: &str| values.get(name).map(String::as_str).unwrap_or_default();
        Ok(Some(match part {
            Part::Text(text) => {
                let filled = text.fill(room.text, sanitised, |name| {
                    Cow::Owned(value(name).to_owned())
                });
                let text = filled.ok_or_else(|| too_large("text", MAX_TEXT_BYTES))?;
                room.text = room.text.saturating_sub(text.len());
                ContentBlock::text(text)
            }
            Part::Media { path, .. } | Part::File { path, .. } => {
                // A prompt is served only if all its files are served.
                let file = self.embedded.get(path);
                let missing = || ErrorData::internal_error("a file of the prompt is missing", None);
                let file = file.ok_or_else(missing)?;
                room.take(file.entry.bytes.len())?;
                let media_type = file.entry.media_type.clone();
                if matches!(part, Part::File { .. }) {
                    ContentBlock::Resource(EmbeddedResource::new(file.contents()))
                } else if media_type.starts_with("audio/") {
                    ContentBlock::audio(file.base64(), media_type)
                } else {
                    ContentBlock::image(file.base64(), media_type)
                }
            }
            Part::Chosen { argument, .. } => match value(argument) {
                "" => return Ok(None),
                uri => {
                    let contents = self.chosen(argument, uri, documents)?;
                    room.take(match &contents {
                        ResourceContents::TextResourceContents { text, .. } => text.len(),
                        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
                        _ => 0,
                    })?;
                    ContentBlock::Resource(EmbeddedResource::new(contents))
                }
            },
            _ => return Ok(None),
        }))
    }

    /// Returns the resource that the caller chose. It must belong to the prompt's own bundle, and
    /// the caller must be allowed to read it.
    fn chosen(
        &self,
        argument: &str,
        uri: &str,
        documents: &ServedDocuments,
    ) -> Result<ResourceContents, ErrorData> {
        let own = |provenance: &Provenance| *provenance == *self.provenance;
        let resource = documents.found(&documents.all.resources, uri);
        if let Some(resource) = resource.filter(|resource| own(&resource.provenance)) {
            return Ok(resource.contents());
        }
        let template = documents.template(uri);
        match template.filter(|(template, _)| own(&template.provenance)) {
            Some((template, values)) => template.contents(uri, &values),
            None => Err(ErrorData::invalid_params(
                format!("expected the URI of a resource of the prompt's bundle in `{argument}`"),
                Some(json!({ "argument": argument, "uri": shown(uri) })),
            )),
        }
    }
}

/// The room that a prompt has left, in bytes.
struct Room {
    text: usize,
    files: usize,
}

impl Room {
    fn take(&mut self, bytes: usize) -> Result<(), ErrorData> {
        let left = self.files.checked_sub(bytes);
        self.files = left.ok_or_else(|| too_large("files", MAX_RESOURCE))?;
        Ok(())
    }
}

fn too_large(what: &str, limit: usize) -> ErrorData {
    ErrorData::invalid_params(
        format!("expected at most {limit} bytes of {what} in the prompt, found more"),
        None,
    )
}

/// Sanitises the author's text. The caller's values are not changed.
fn sanitised(text: &str) -> Cow<'_, str> {
    if text
        .chars()
        .any(|c| is_hidden(c) && !matches!(c, '\n' | '\t'))
    {
        Cow::Owned(visible(text, text.len()))
    } else {
        Cow::Borrowed(text)
    }
}
