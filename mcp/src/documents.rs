//! Prompts and resources of bundles: serves what policy allows, under the names and URIs that
//! clients know. Nothing here runs, fetches or opens anything.

mod arguments;
mod decide;
mod prompt;
mod resource;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, MetaObject, Prompt, ReadResourceResult, Resource,
    ResourceTemplate,
};
use serde_json::json;
use toolward_bundle::content::Content;
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::url_path::percent_encoded;
use toolward_policy::Policy;
use toolward_support::report::codes;

use crate::client::Client;
use crate::principal::{Principal, Tools};
use crate::result::meta;

pub use decide::{DocumentVerdict, Hidden, Kind, suggest, verdicts};

use decide::Entry;
use prompt::PromptContent;
use resource::{FileContent, TemplateContent};

/// Characters of a title. Escapes can make it longer than its author wrote it.
const MAX_TITLE_CHARS: usize = 120;
/// Characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Characters of a publisher's name.
const MAX_PUBLISHER_CHARS: usize = 120;

/// The served prompts and resources that one principal sees. Cheap to clone, since clones share the
/// documents.
#[derive(Debug, Clone)]
pub(crate) struct ServedDocuments {
    all: Arc<All>,
    /// The tools of the principal. A document is visible if they include a tool of its bundle, or
    /// the bundle's id.
    tools: Tools,
}

/// All served documents.
#[derive(Debug, Default)]
struct All {
    prompts: ServedByName<Prompt, PromptContent>,
    resources: ServedByName<Resource, FileContent>,
    templates: ServedByName<ResourceTemplate, TemplateContent>,
}

impl All {
    /// Adds the documents that policy serves from a bundle.
    fn add(&mut self, content: &Content, policy: &Policy) -> Result<(), DocumentsError> {
        let provenance = Arc::new(Provenance::of(content));
        // Files come before the prompts that embed them.
        let mut files = BTreeMap::new();
        for verdict in decide::verdicts(content, policy) {
            if verdict.hidden.is_some() {
                continue;
            }
            match verdict.entry {
                Entry::Resource(entry) => {
                    let name = verdict.name.clone();
                    let new = ServedResource::new(verdict.name, entry.clone(), provenance.clone());
                    let new = insert(&mut self.resources, "resource", &name, new)?;
                    files.insert(entry.path.clone(), new);
                }
                Entry::Template(entry, template) => {
                    let new = template.and_then(|template| {
                        ServedTemplate::new(template, entry, provenance.clone())
                    });
                    if let Some(new) = new {
                        let name = new.template.as_str().to_owned();
                        insert(&mut self.templates, "template", &name, new)?;
                    }
                }
                Entry::Prompt(entry) => {
                    let new = ServedPrompt::new(&verdict.name, entry, &files, &provenance);
                    insert(&mut self.prompts, "prompt", &verdict.name, new)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a URI that is ambiguous.
    fn check_uris(&self) -> Result<(), DocumentsError> {
        let templates: Vec<_> = self.templates.values().collect();
        for (index, template) in templates.iter().enumerate() {
            let mut others = templates.iter().take(index);
            if let Some(first) = others.find(|other| other.template.overlaps(&template.template)) {
                return Err(clash(
                    "template",
                    template.template.as_str(),
                    first,
                    template,
                ));
            }
        }
        for resource in self.resources.values() {
            // A file of the template's own bundle may have a URI that fits the template.
            let mut others = templates.iter();
            let other = others.find(|template| {
                template.provenance != resource.provenance
                    && template.values(&resource.uri).is_some()
            });
            if let Some(template) = other {
                return Err(clash("resource", &resource.uri, template, resource));
            }
        }
        Ok(())
    }
}

/// Adds a document. No other document may have its name.
fn insert<L, C>(
    all: &mut ServedByName<L, C>,
    kind: &'static str,
    name: &str,
    new: Served<L, C>,
) -> Result<Arc<Served<L, C>>, DocumentsError> {
    let new = Arc::new(new);
    match all.insert(name.to_owned(), Arc::clone(&new)) {
        Some(first) => Err(clash(kind, name, &first, &new)),
        None => Ok(new),
    }
}

fn clash<L, C, M, D>(
    kind: &'static str,
    name: &str,
    first: &Served<L, C>,
    second: &Served<M, D>,
) -> DocumentsError {
    DocumentsError::Clash {
        kind,
        name: name.to_owned(),
        first: first.provenance.place(&first.path),
        second: second.provenance.place(&second.path),
    }
}

type ServedByName<L, C> = BTreeMap<String, Arc<Served<L, C>>>;

/// One document: a prompt, a file or a template.
#[derive(Debug)]
struct Served<L, C> {
    /// Its entry in the list of a client.
    listed: L,
    /// Its path in the bundle.
    path: String,
    provenance: Arc<Provenance>,
    content: C,
}

type ServedPrompt = Served<Prompt, PromptContent>;
type ServedResource = Served<Resource, FileContent>;
type ServedTemplate = Served<ResourceTemplate, TemplateContent>;

impl<L, C> Deref for Served<L, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.content
    }
}

impl ServedDocuments {
    /// Returns the documents that policy serves from these bundles.
    ///
    /// # Errors
    /// If two documents would have the same name, or if a URI would be ambiguous.
    pub(crate) fn of<'c>(
        contents: impl IntoIterator<Item = &'c Content>,
        policy: &Policy,
    ) -> Result<Self, DocumentsError> {
        let mut all = All::default();
        for content in contents {
            all.add(content, policy)?;
        }
        all.check_uris()?;
        Ok(Self {
            all: Arc::new(all),
            tools: Tools::All,
        })
    }

    /// Returns the documents that a principal may see. It sees the documents of a bundle if it may
    /// use a tool of the bundle, or if the bundle's id is among its tools.
    #[must_use]
    pub(crate) fn seen_by(&self, principal: &Principal) -> Self {
        Self {
            all: Arc::clone(&self.all),
            tools: principal.tools.clone(),
        }
    }

    fn seen<'d, L, C>(
        &'d self,
        all: &'d ServedByName<L, C>,
    ) -> impl Iterator<Item = &'d Arc<Served<L, C>>> {
        let documents = all.values();
        documents.filter(|document| document.provenance.is_for(&self.tools))
    }

    fn found<'d, L, C>(
        &self,
        all: &'d ServedByName<L, C>,
        name: &str,
    ) -> Option<&'d Arc<Served<L, C>>> {
        let found = all.get(name)?;
        found.provenance.is_for(&self.tools).then_some(found)
    }

    /// The documents as clients list them, in the order of their names or URIs.
    fn listed<'d, L, C>(&'d self, all: &'d ServedByName<L, C>) -> impl Iterator<Item = &'d L> {
        self.seen(all).map(|document| &document.listed)
    }

    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        self.listed(&self.all.prompts).cloned().collect()
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        self.listed(&self.all.resources).cloned().collect()
    }

    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        self.listed(&self.all.templates).cloned().collect()
    }

    /// Whether a URI can be read.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.digest(uri).is_some()
    }

    /// Returns a digest of the content behind a URI. Equal digests mean equal content.
    pub(crate) fn digest(&self, uri: &str) -> Option<[u8; 32]> {
        if let Some(resource) = self.found(&self.all.resources, uri) {
            return Some(resource.digest);
        }
        self.template(uri).map(|(template, _)| template.digest)
    }

    /// Returns the template that a URI fits, with the values in the URI. A URI fits at most one
    /// served template.
    fn template(&self, uri: &str) -> Option<(&Arc<ServedTemplate>, resource::ArgumentValues)> {
        if uri.len() > resource::MAX_URI_BYTES {
            return None;
        }
        let mut templates = self.all.templates.values();
        let (template, values) =
            templates.find_map(|template| Some((template, template.values(uri)?)))?;
        let sees = template.provenance.is_for(&self.tools);
        sees.then_some((template, values))
    }

    /// `resources/read`.
    ///
    /// # Errors
    /// If no such resource exists.
    pub(crate) fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        if let Some(resource) = self.found(&self.all.resources, uri) {
            return Ok(ReadResourceResult::new(vec![resource.contents()]));
        }
        if let Some((template, values)) = self.template(uri) {
            let contents = template.contents(uri, &values)?;
            return Ok(ReadResourceResult::new(vec![contents]));
        }
        Err(ErrorData::resource_not_found(
            "there is no such resource",
            Some(json!({ "uri": resource::shown(uri) })),
        ))
    }

    /// `prompts/get`, in both eras. If required arguments are missing, the person behind the client
    /// is asked for them.
    ///
    /// # Errors
    /// If no such prompt exists, if the client gives an unknown argument or a value that is too
    /// long or not a text, or if required arguments are missing and no person gives them.
    pub(crate) async fn prompt(
        &self,
        params: GetPromptRequestParams,
        client: &Client,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(prompt) = self.found(&self.all.prompts, &params.name) else {
            return Err(ErrorData::invalid_params(
                "there is no such prompt",
                Some(json!({ "name": resource::shown(&params.name) })),
            ));
        };
        let mut values = arguments::given(prompt, params.arguments)?;
        let answers = params.input_responses.unwrap_or_default();
        match arguments::complete(prompt, &mut values, &answers, client).await? {
            None => Ok(prompt.get(&values, self)?.into()),
            Some(question) => Ok(question.into()),
        }
    }
}

/// The facts about a bundle that its documents need.
#[derive(Debug, PartialEq, Eq)]
struct Provenance {
    publisher: String,
    /// The bundle's id.
    bundle: String,
    version: String,
    /// Its tools: ids and major versions.
    tools: Vec<(String, u64)>,
}

impl Provenance {
    fn of(content: &Content) -> Self {
        let tools = content.tools.iter().map(|entry| &entry.tool);
        Self {
            publisher: content.origin.publisher(),
            bundle: content.manifest.id.to_string(),
            version: content.manifest.version.to_string(),
            tools: tools
                .map(|tool| (tool.id.to_string(), tool.version.major))
                .collect(),
        }
    }

    /// Whether these tools include a tool of the bundle, or name the bundle itself.
    fn is_for(&self, tools: &Tools) -> bool {
        let mut own = self.tools.iter();
        tools.include(&self.bundle, u64::MAX) || own.any(|(id, major)| tools.include(id, *major))
    }

    /// The host's own URI of a file of the bundle. The publisher's name is encoded as one segment,
    /// so two bundles never share a URI.
    fn uri(&self, path: &str) -> String {
        let publisher = percent_encoded(self.publisher.as_bytes());
        format!("toolward://{publisher}/{}/{path}", self.bundle)
    }

    /// How an error names a file of the bundle.
    fn place(&self, path: &str) -> String {
        let publisher = visible_line(&self.publisher, MAX_PUBLISHER_CHARS);
        format!("{path} of {} by {publisher}", self.bundle)
    }

    /// Returns a text as a title, escaped and bounded.
    fn title(text: &str) -> String {
        visible_line(text, MAX_TITLE_CHARS)
    }

    /// Returns a description. The label comes first, since the publisher chooses the text after it.
    fn description(&self, text: &str) -> String {
        let publisher = visible_line(&self.publisher, MAX_PUBLISHER_CHARS);
        format!("[{publisher}] {}", visible(text, MAX_DESCRIPTION_CHARS))
    }

    /// `_meta` of a document: its name or path, and the bundle, version and publisher that it comes
    /// from.
    fn meta(&self, kind: &str, what: &str, name: &str) -> MetaObject {
        let about = json!({
            what: name,
            "bundle": self.bundle,
            "version": self.version,
            "publisher": visible_line(&self.publisher, MAX_PUBLISHER_CHARS),
        });
        meta(kind, about)
    }
}

codes! {
    /// Why documents, or the features of a host, can't be served together.
    ///
    /// ```
    /// use toolward_mcp::DocumentsError;
    ///
    /// fn explain(error: &DocumentsError) -> String {
    ///     match error {
    ///         DocumentsError::Clash { name, .. } => format!("two documents are called {name}"),
    ///         _ => format!("{error} ({}): {}", error.code(), error.hint().unwrap_or_default()),
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum DocumentsError: Error {
        /// `kind` is `prompt`, `resource` or `template`. The name or URI is untrusted, but
        /// printable ASCII. `first` and `second` are a file, its bundle and publisher.
        Clash { kind: &'static str, name: String, first: String, second: String } = "document-clash" ["2"],
            "two prompts or resources would have the same name or URI",
            ("the {kind} {name:?} is in {first} and in {second}")
            => "take it from the [[document]] of one of them, or serve one bundle less";
    }
}
