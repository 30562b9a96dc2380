//! Prompts and resources that bundles ship: what policy serves, by the names and
//! URIs that clients know. Nothing here runs, fetches or opens anything.

mod arguments;
mod decide;
mod gather;
mod prompt;
mod provenance;
mod resource;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, InputRequest, Prompt, ReadResourceResult, Resource,
    ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_policy::Policy;

use crate::client::Client;
use crate::principal::{Principal, Tools};

pub use decide::{DocumentVerdict, Hidden, Kind, suggest, verdicts};
pub use gather::DocumentsError;

use arguments::Means;
use gather::Gathered;
use prompt::ServedPrompt;
use provenance::Provenance;
use resource::{ServedResource, ServedTemplate};

/// The prompts and resources that are served, as far as a principal sees them. Cheap
/// to clone: what is served is shared.
#[derive(Debug, Clone)]
pub(crate) struct Documents {
    all: Arc<All>,
    /// Those are seen whose bundles have one of these tools.
    tools: Tools,
}

/// All that is served.
#[derive(Debug, Default)]
struct All {
    prompts: BTreeMap<String, Arc<ServedPrompt>>,
    resources: BTreeMap<String, Arc<ServedResource>>,
    templates: BTreeMap<String, Arc<ServedTemplate>>,
}

impl Documents {
    /// What policy serves of these bundles.
    ///
    /// # Errors
    /// Two documents that would go by one name or URI.
    pub(crate) fn of<'c>(
        contents: impl IntoIterator<Item = &'c Content>,
        policy: &Policy,
    ) -> Result<Self, DocumentsError> {
        let mut gathered = Gathered::default();
        for content in contents {
            gathered.add(content, policy)?;
        }
        gathered.finish()
    }

    /// Those that a principal may see: of bundles that it may use a tool of.
    #[must_use]
    pub(crate) fn seen_by(&self, principal: &Principal) -> Self {
        Self {
            all: Arc::clone(&self.all),
            tools: principal.tools.clone(),
        }
    }

    fn sees(&self, provenance: &Provenance) -> bool {
        provenance.is_for(&self.tools)
    }

    fn found_prompt(&self, name: &str) -> Option<&Arc<ServedPrompt>> {
        let found = self.all.prompts.get(name);
        found.filter(|prompt| self.sees(&prompt.provenance))
    }

    fn found_resource(&self, uri: &str) -> Option<&Arc<ServedResource>> {
        let found = self.all.resources.get(uri);
        found.filter(|resource| self.sees(&resource.provenance))
    }

    fn found_template(&self, template: &str) -> Option<&Arc<ServedTemplate>> {
        let found = self.all.templates.get(template);
        found.filter(|template| self.sees(&template.provenance))
    }

    fn seen_resources(&self) -> impl Iterator<Item = &Arc<ServedResource>> {
        let resources = self.all.resources.values();
        resources.filter(|resource| self.sees(&resource.provenance))
    }

    /// The prompts as clients list them, by name.
    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        self.listed_prompts().cloned().collect()
    }

    fn listed_prompts(&self) -> impl Iterator<Item = &Prompt> {
        let prompts = self.all.prompts.values();
        let seen = prompts.filter(|prompt| self.sees(&prompt.provenance));
        seen.map(|prompt| &prompt.listed)
    }

    /// The resources as clients list them, by URI.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        self.listed_resources().cloned().collect()
    }

    fn listed_resources(&self) -> impl Iterator<Item = &Resource> {
        self.seen_resources().map(|resource| &resource.listed)
    }

    /// The templates as clients list them, by URI.
    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        self.listed_templates().cloned().collect()
    }

    fn listed_templates(&self) -> impl Iterator<Item = &ResourceTemplate> {
        let templates = self.all.templates.values();
        let seen = templates.filter(|template| self.sees(&template.provenance));
        seen.map(|template| &template.listed)
    }

    /// Whether its prompts are listed as they were at another moment.
    pub(crate) fn lists_prompts_as(&self, other: &Self) -> bool {
        self.listed_prompts().eq(other.listed_prompts())
    }

    /// Whether its resources and templates are listed as they were at another moment.
    pub(crate) fn lists_resources_as(&self, other: &Self) -> bool {
        self.listed_resources().eq(other.listed_resources())
            && self.listed_templates().eq(other.listed_templates())
    }

    /// Whether a URI can be read.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.digest(uri).is_some()
    }

    /// What stands for the content behind a URI: equal ones mean equal content.
    pub(crate) fn digest(&self, uri: &str) -> Option<[u8; 32]> {
        if let Some(resource) = self.found_resource(uri) {
            return Some(resource.digest);
        }
        let fits = self.template(uri)?;
        Some(fits.0.digest)
    }

    /// The template that a URI fits, with the values in it. No two are served
    /// that one URI fits.
    fn template(&self, uri: &str) -> Option<(&Arc<ServedTemplate>, resource::Values)> {
        if uri.len() > resource::MAX_URI_BYTES {
            return None;
        }
        let mut templates = self.all.templates.values();
        let (template, values) =
            templates.find_map(|template| Some((template, template.values(uri)?)))?;
        self.sees(&template.provenance)
            .then_some((template, values))
    }

    /// `resources/read`.
    ///
    /// # Errors
    /// No such resource.
    pub(crate) fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        if let Some(resource) = self.found_resource(uri) {
            return Ok(ReadResourceResult::new(vec![resource.contents()]));
        }
        let contents = match self.template(uri) {
            Some((template, values)) => Some(template.contents(uri, &values)?),
            None => None,
        };
        match contents {
            Some(contents) => Ok(ReadResourceResult::new(vec![contents])),
            None => Err(ErrorData::resource_not_found(
                "there is no such resource",
                Some(json!({ "uri": resource::shown(uri) })),
            )),
        }
    }

    /// `prompts/get`, in both eras. Has the person behind the client asked for
    /// required arguments that are missing.
    ///
    /// # Errors
    /// No such prompt, arguments that it doesn't take, or none where nobody can be
    /// asked.
    pub(crate) async fn prompt(
        &self,
        params: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        // What is seen here depends on the principal already; the name is not needed.
        let nobody = Principal {
            name: Arc::from(""),
            tools: Tools::Only(Arc::default()),
            may_approve: false,
        };
        let client = Client::new(context, &nobody);
        let means = Means {
            era: client.era,
            form: client.answerable.form,
        };
        let ask = async |question| {
            let person = client.person.as_ref()?;
            person.ask(question, arguments::ANSWER_TIMEOUT).await.ok()
        };
        self.prompt_by(params, means, ask).await
    }

    /// [`Documents::prompt`], where `ask` puts a question to the person while the
    /// request waits.
    async fn prompt_by(
        &self,
        params: GetPromptRequestParams,
        means: Means,
        ask: impl AsyncFnOnce(InputRequest) -> Option<Value>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(prompt) = self.found_prompt(&params.name) else {
            return Err(ErrorData::invalid_params(
                "there is no such prompt",
                Some(json!({ "name": resource::shown(&params.name) })),
            ));
        };
        let given = arguments::given(prompt, params.arguments)?;
        let answers = params.input_responses.unwrap_or_default();
        match arguments::complete(prompt, given, &answers, means, ask).await? {
            arguments::Filled::All(values) => Ok(prompt.get(&values, self)?.into()),
            arguments::Filled::Ask(question) => Ok(question.into()),
        }
    }
}
