//! Prompts and resources that bundles ship: what policy serves, by the names and
//! URIs that clients know. Nothing here runs, fetches or opens anything.

mod error;

use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, Prompt,
    ReadResourceResult, Resource, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;
use toolward_bundle::content::Content;
use toolward_policy::Policy;

use crate::principal::Principal;

pub(crate) use error::DocumentsError;

/// The prompts and resources that are served. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Documents {}

impl Documents {
    /// What policy serves of these bundles.
    ///
    /// # Errors
    /// Two documents that would go by one name or URI.
    pub(crate) fn of<'c>(
        contents: impl IntoIterator<Item = &'c Content>,
        policy: &Policy,
    ) -> Result<Self, DocumentsError> {
        let _ = (contents.into_iter().count(), policy);
        Ok(Self::default())
    }

    /// Those that a principal may see: of bundles that it may use a tool of.
    #[must_use]
    pub(crate) fn seen_by(&self, _principal: &Principal) -> Self {
        self.clone()
    }

    /// The prompts as clients list them, by name.
    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        Vec::new()
    }

    /// The resources as clients list them, by URI.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        Vec::new()
    }

    /// The templates as clients list them, by URI.
    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        Vec::new()
    }

    /// Whether a URI can be read.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.digest(uri).is_some()
    }

    /// What stands for the content behind a URI: equal ones mean equal content.
    pub(crate) fn digest(&self, _uri: &str) -> Option<[u8; 32]> {
        None
    }

    /// `prompts/get`, in both eras. Asks the person behind the client for
    /// required arguments that are missing.
    pub(crate) async fn prompt(
        &self,
        params: GetPromptRequestParams,
        _context: &RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(ErrorData::invalid_params(
            "there is no such prompt",
            Some(json!({ "name": params.name })),
        ))
    }

    /// `resources/read`.
    pub(crate) fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        Err(ErrorData::invalid_params(
            "there is no such resource",
            Some(json!({ "uri": uri })),
        ))
    }

    /// `completion/complete`.
    pub(crate) fn complete(
        &self,
        _params: &CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::invalid_params("there is nothing to complete", None))
    }
}
