//! What is served at one moment: a host and what clients see of it.

use std::collections::{BTreeSet, HashMap};

use rmcp::model::Tool;
use toolward_bundle::content::Content;
use toolward_host::Host;
use toolward_policy::Policy;

use crate::catalogue::{self, Blocked, Catalogue, CatalogueError, Listed};
use crate::documents::{Documents, DocumentsError};
use crate::principal::Principal;
use crate::search::Finder;

/// What clients see of a host.
pub struct Surface {
    pub(crate) host: Host,
    catalogue: Catalogue,
    by_name: HashMap<String, usize>,
    documents: Documents,
    /// There where tools are found rather than listed.
    finder: Option<Finder>,
}

/// Why a host can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SurfaceError {
    /// Two tools have one name, or a name is not to be had.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// Two prompts or resources have one name.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
}

impl SurfaceError {
    /// The stable code of this error, as the book lists it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Catalogue(error) => error.code(),
            Self::Documents(error) => error.code(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Catalogue(error) => error.hint().to_owned(),
            Self::Documents(error) => error.hint().to_owned(),
        }
    }
}

/// What is different from one moment to another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Surface {
    /// What clients see of `host`, whose bundles are `contents`. With more than
    /// `defer_above` tools they are not listed but found, through three tools of
    /// the server's own.
    ///
    /// # Errors
    ///
    /// [`SurfaceError`] when two tools or documents would have one name.
    pub fn new(
        host: Host,
        contents: &[Content],
        policy: &Policy,
        defer_above: usize,
    ) -> Result<Self, SurfaceError> {
        let catalogue = catalogue::of(&host)?;
        let documents = Documents::of(contents, policy)?;
        let by_name = catalogue.listed.iter().enumerate();
        let by_name = by_name
            .map(|(place, tool)| (tool.name.clone(), place))
            .collect();
        let finder =
            (catalogue.listed.len() > defer_above).then(|| Finder::new(host.clone(), &catalogue));
        Ok(Self {
            host,
            catalogue,
            by_name,
            documents,
            finder,
        })
    }

    /// The host whose tools these are.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// How many tools can be called.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.catalogue.listed.len()
    }

    /// The names of tools that policy blocks, with the ids of their contracts.
    pub fn blocked(&self) -> impl Iterator<Item = (&str, &str)> {
        let blocked = self.catalogue.blocked.iter();
        blocked.map(|tool| (tool.name.as_str(), tool.id.as_str()))
    }

    pub(crate) fn documents(&self) -> &Documents {
        &self.documents
    }

    pub(crate) fn finder(&self) -> Option<&Finder> {
        self.finder.as_ref()
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The tool with this name, if `principal` may use it.
    pub(crate) fn find(&self, name: &str, principal: &Principal) -> Option<&Listed> {
        let listed = self.catalogue.listed.get(*self.by_name.get(name)?)?;
        listed.is_for(principal).then_some(listed)
    }

    /// The blocked tool with this name, if `principal` may use it.
    pub(crate) fn find_blocked(&self, name: &str, principal: &Principal) -> Option<&Blocked> {
        let mut blocked = self.catalogue.blocked.iter();
        blocked.find(|tool| tool.name == name && tool.is_for(principal))
    }

    /// The tools that a principal is shown: its own, or those that find them.
    pub(crate) fn tools(&self, principal: &Principal) -> Vec<Tool> {
        match &self.finder {
            Some(_) => crate::search::tools(),
            None => self.own(principal).cloned().collect(),
        }
    }

    fn own(&self, principal: &Principal) -> impl Iterator<Item = &Tool> {
        let listed = self.catalogue.listed.iter();
        let own = listed.filter(|tool| tool.is_for(principal));
        own.map(|tool| &tool.tool)
    }

    /// What a model is told about this server.
    pub(crate) fn instructions(&self) -> String {
        let mut text = "Each tool runs in a sandbox of its own and reaches only what the operator \
             granted. Descriptions and results are text of the tools' publishers, not of this \
             server."
            .to_owned();
        if self.finder.is_some() {
            text.push_str(
                " There are more tools than are listed: find them with `search_tools`, load one \
                 with `load_tool`, and call it with `call_tool`.",
            );
        }
        text
    }

    /// What is different for a principal since `before`. Of what it may not use it
    /// hears nothing.
    pub(crate) fn changes_since(&self, before: &Self, principal: &Principal) -> Changes {
        let same = match (&self.finder, &before.finder) {
            (Some(_), Some(_)) => true,
            (None, None) => self.own(principal).eq(before.own(principal)),
            _ => false,
        };
        let [now, then] = [self, before].map(|surface| surface.documents.seen_by(principal));
        Changes {
            tools: !same,
            prompts: !now.lists_prompts_as(&then),
            resources: !now.lists_resources_as(&then),
        }
    }

    /// Those of `watched` whose content is another for a principal than it was, or is
    /// gone.
    pub(crate) fn updated_since(
        &self,
        before: &Self,
        watched: &BTreeSet<String>,
        principal: &Principal,
    ) -> Vec<String> {
        let [now, then] = [self, before].map(|surface| surface.documents.seen_by(principal));
        let other = |uri: &&String| now.digest(uri) != then.digest(uri);
        watched.iter().filter(other).cloned().collect()
    }
}

impl std::fmt::Debug for Surface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surface")
            .field("tools", &self.catalogue.listed.len())
            .field("blocked", &self.catalogue.blocked.len())
            .finish_non_exhaustive()
    }
}
