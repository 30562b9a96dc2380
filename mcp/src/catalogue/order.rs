//! The order in which tools arrived, and which of them may choose a name.

use std::cmp::Reverse;
use std::collections::HashMap;

use toolward_bundle::content::Content;
use toolward_contract::tool::McpResult;
use toolward_host::ToolFacts;
use toolward_policy::Policy;

use super::names::Claim;

/// Facts about tools that the host does not have, by bundle and `id@major`.
#[derive(Debug, Default)]
pub(crate) struct Order {
    tools: HashMap<(String, String), Arrived>,
}

#[derive(Debug)]
struct Arrived {
    /// When it was installed, as a number that later ones exceed.
    arrival: Option<u64>,
    /// The place of its bundle among the served bundles.
    bundle: usize,
    /// Whether it may be called what its contract asks for.
    names_itself: bool,
    /// Which half of its results clients are sent.
    result: McpResult,
}

/// Sorts by arrival. Of tools that arrived together, newer major versions come first,
/// since an id without a version means the newest.
type Key = (u64, usize, String, Reverse<u64>);

impl Order {
    /// The order of the tools of these bundles: by installation, else by the order of the
    /// bundles.
    pub(crate) fn new(contents: &[Content], policy: &Policy) -> Self {
        let mut tools = HashMap::new();
        for (place, content) in contents.iter().enumerate() {
            let publisher = content.origin.publisher();
            let bundle = content.manifest_digest.to_string();
            for entry in &content.tools {
                let contract = &entry.tool;
                let (id, major) = (contract.id.as_str(), contract.version.major);
                let asked = contract.mcp_name.as_deref();
                let allowed = |name| policy.names_tool(&publisher, id, major, name);
                let arrived = Arrived {
                    arrival: entry.arrival,
                    bundle: place,
                    names_itself: entry.names_itself || asked.is_some_and(allowed),
                    result: policy
                        .mcp_result(&publisher, id, major)
                        .unwrap_or(contract.mcp_result),
                };
                tools.insert((bundle.clone(), contract.major_id()), arrived);
            }
        }
        Self { tools }
    }

    fn arrived(&self, info: &ToolFacts) -> Option<&Arrived> {
        let tool = (info.bundle.to_string(), info.contract.major_id());
        self.tools.get(&tool)
    }

    /// Which half of a tool's results clients are sent.
    pub(super) fn result(&self, info: &ToolFacts) -> McpResult {
        let arrived = self.arrived(info);
        arrived.map_or(info.contract.mcp_result, |arrived| arrived.result)
    }

    pub(super) fn of(&self, info: &ToolFacts) -> Key {
        let arrived = self.arrived(info);
        let arrival = arrived.and_then(|arrived| arrived.arrival);
        let bundle = arrived.map_or(usize::MAX, |arrived| arrived.bundle);
        let contract = &info.contract;
        (
            arrival.unwrap_or(u64::MAX),
            // Bundles are installed one by one.
            arrival.map_or(bundle, |_| 0),
            contract.id.to_string(),
            Reverse(contract.version.major),
        )
    }

    pub(super) fn claim<'i>(&self, info: &'i ToolFacts) -> Claim<'i> {
        let contract = &info.contract;
        let names_itself = self
            .arrived(info)
            .is_some_and(|arrived| arrived.names_itself);
        Claim {
            given: contract.mcp_name.as_deref().filter(|_| names_itself),
            id: contract.id.as_str(),
            major: contract.version.major,
            version: contract.version.to_string(),
            publisher: &info.publisher,
        }
    }
}
