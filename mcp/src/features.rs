//! The features of the server at one moment: a host, and its tools, prompts and resources as
//! clients see them.

use std::collections::BTreeSet;

use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam,
    ServerNotification as Notification, Tool,
};
use toolward_bundle::content::Content;
use toolward_bundle::text::near_tool;
use toolward_host::{Host, WithheldReason};
use toolward_policy::Policy;

use crate::catalogue::{self, NameProblem, Order, ToolListing};
use crate::documents::{DocumentsError, ServedDocuments};
use crate::principal::Principal;
use crate::search::Finder;

/// The tools, prompts and resources that clients see of a host.
///
/// ```
/// use toolward_host::Host;
/// use toolward_mcp::ServerFeatures;
/// use toolward_policy::Policy;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::builder().build()?;
/// let features = ServerFeatures::new(host, &[], &Policy::empty(), 100)?;
/// assert_eq!(features.tool_count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ServerFeatures {
    pub(crate) host: Host,
    pub(crate) catalogue: ToolListing,
    pub(crate) documents: ServedDocuments,
    /// Present if tools are not listed, but found by searching.
    pub(crate) finder: Option<Finder>,
}

/// The changes since earlier features: changed lists, and changed content behind URIs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) updated: Vec<String>,
}

impl Changes {
    /// The notifications to a client about these changes.
    pub(crate) fn notifications(self) -> impl Iterator<Item = Notification> {
        let lists = [
            self.tools
                .then(|| Notification::ToolListChangedNotification(Default::default())),
            self.prompts
                .then(|| Notification::PromptListChangedNotification(Default::default())),
            self.resources
                .then(|| Notification::ResourceListChangedNotification(Default::default())),
        ];
        let updated = self.updated.into_iter().map(|uri| {
            let update = ResourceUpdatedNotificationParam::new(uri);
            Notification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(update))
        });
        lists.into_iter().flatten().chain(updated)
    }
}

impl ServerFeatures {
    /// Returns the features of `host`, whose bundles are `contents`. Installed tools get their
    /// names over MCP in the order of their
    /// [`ToolEntry::arrival`](toolward_bundle::content::ToolEntry::arrival), other tools in the
    /// order of the bundles. If more than `defer_above` tools can run, they are not listed: clients
    /// find them through three tools of the server.
    ///
    /// # Errors
    ///
    /// [`DocumentsError`] if two documents would have one name.
    pub fn new(
        host: Host,
        contents: &[Content],
        policy: &Policy,
        defer_above: usize,
    ) -> Result<Self, DocumentsError> {
        let catalogue = catalogue::of(&host, &Order::new(contents, policy));
        let documents = ServedDocuments::of(contents, policy)?;
        let finder =
            (catalogue.listed.len() > defer_above).then(|| Finder::new(host.clone(), &catalogue));
        Ok(Self {
            host,
            catalogue,
            documents,
            finder,
        })
    }

    /// The host whose tools are served.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns how many tools can be called.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.catalogue.listed.len()
    }

    /// Returns the names of loaded tools that can't run, with the ids of their contracts. Policy
    /// blocks such a tool, no driver serves it, or the operator does not give its required context.
    pub fn blocked(&self) -> impl Iterator<Item = (&str, &str)> {
        let blocked = self.catalogue.blocked.iter();
        let blocked = blocked.filter(|tool| tool.withheld.is_none());
        blocked.map(|tool| (tool.name.as_str(), tool.id.as_str()))
    }

    /// The name of each tool over MCP, blocked tools included, with its `id@major`.
    pub fn tool_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self.catalogue.listed.iter();
        let listed = listed.map(|tool| (tool.name.as_str(), tool.target.as_str()));
        let blocked = self.catalogue.blocked.iter();
        listed.chain(blocked.map(|tool| (tool.name.as_str(), tool.target.as_str())))
    }

    /// Returns the definition of a tool as in `tools/list`, by its name over MCP; `None` if no tool
    /// that can run has this name.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<serde_json::Value> {
        let mut listed = self.catalogue.listed.iter();
        let tool = listed.find(|tool| tool.name == name)?;
        serde_json::to_value(&tool.tool).ok()
    }

    /// Returns the problems with names to report to the operator: tools that got no name, and tools
    /// that ask for a name outside their publisher's prefixes.
    pub fn name_problems(&self) -> impl Iterator<Item = &NameProblem> {
        self.catalogue.problems.iter()
    }

    /// Among the listed tools that `principal` may use, returns the name that resembles an unknown
    /// name.
    pub(crate) fn near(&self, name: &str, principal: &Principal) -> Option<&str> {
        if self.finder.is_some() {
            // Clients call the tools behind a finder by `call_tool`, which suggests names itself.
            return None;
        }
        near_tool(name, self.own(principal).map(|tool| tool.name.as_ref()))
    }

    /// Returns the tools that are listed for a principal: the tools that it may use, or the three
    /// tools of the finder.
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

    /// Returns the instructions for models. They state how many of the principal's tools are
    /// blocked, held or withdrawn; without a principal they state no numbers.
    pub(crate) fn instructions(&self, principal: Option<&Principal>) -> String {
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
        let blocked = self.catalogue.blocked.iter();
        let blocked = blocked.filter(|tool| principal.is_some_and(|one| tool.is_for(one)));
        let blocked: Vec<_> = blocked.map(|tool| tool.withheld).collect();
        for (withheld, state) in [
            (
                None,
                "blocked by the operator's policy and not listed; only the operator of this \
                 server can allow them",
            ),
            (
                Some(WithheldReason::Held),
                "held and not listed until the operator of this server accepts an update",
            ),
            (
                Some(WithheldReason::Withdrawn),
                "withdrawn and can't be called",
            ),
        ] {
            let count = blocked.iter().filter(|one| **one == withheld).count();
            let tools = match count {
                0 => continue,
                1 => "One more tool is".to_owned(),
                count => format!("{count} more tools are"),
            };
            text.push_str(&format!(" {tools} {state}."));
        }
        text
    }

    /// Returns the changes for a principal since `before`: a flag for each list that changed, and
    /// the URIs in `watched` whose content changed or is gone. Features that the principal may not
    /// use don't count.
    pub(crate) fn changes_since(
        &self,
        before: &Self,
        watched: &BTreeSet<String>,
        principal: &Principal,
    ) -> Changes {
        let same = match (&self.finder, &before.finder) {
            (Some(_), Some(_)) => true,
            (None, None) => self.own(principal).eq(before.own(principal)),
            _ => false,
        };
        let [now, then] = [self, before].map(|features| features.documents.seen_by(principal));
        let changed = |uri: &&String| now.digest(uri) != then.digest(uri);
        Changes {
            tools: !same,
            prompts: now.prompts() != then.prompts(),
            resources: now.resources() != then.resources() || now.templates() != then.templates(),
            updated: watched.iter().filter(changed).cloned().collect(),
        }
    }
}
