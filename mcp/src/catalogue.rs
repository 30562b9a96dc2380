//! The tools that clients see: names, descriptions, schemas, annotations. The host
//! decides which tools may be called; this module only shows them.

mod describe;
mod names;
mod schemas;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::Value;
use toolward_contract::tool::Tool;
use toolward_host::{
    CallError, ErrorClass, ErrorCode, Host, ToolFacts, WithheldReason, WithheldTool,
};

pub use names::NameProblem;
pub(crate) use names::Order;

use crate::principal::Principal;
use crate::result::Structure;

/// One tool as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct ListedTool {
    /// Its name over MCP.
    pub(crate) name: String,
    /// `id@major`, which names the tool to the host.
    pub(crate) target: String,
    pub(crate) contract: Arc<Tool>,
    /// The verified publisher; `dev:<dir>` for an unsigned bundle.
    pub(crate) publisher: String,
    /// BLAKE3 of its bundle's manifest, 64 hex digits.
    pub(crate) bundle: String,
    /// Its entry in `tools/list`.
    pub(crate) tool: rmcp::model::Tool,
    /// How the value of a result is sent.
    pub(crate) structure: Structure,
    /// Whether the contract's input is not an object. The arguments then have it under `input`.
    wrapped_input: bool,
}

impl ListedTool {
    /// Whether a principal may use it.
    pub(crate) fn is_for(&self, principal: &Principal) -> bool {
        let id = self.contract.id.as_str();
        principal.tools.include(id, self.contract.version.major)
    }

    /// Converts a client's arguments to the contract's input.
    ///
    /// # Errors
    ///
    /// If the arguments have a field marked `x-internal`, which no client may send, or if a wrapped
    /// input is not the only argument.
    pub(crate) fn input(&self, arguments: JsonObject) -> Result<Value, CallError> {
        schemas::input(&self.contract.inputs, self.wrapped_input, arguments)
    }

    /// Changes the paths of violations from paths in the input to paths in the arguments.
    pub(crate) fn place_violations(&self, error: &mut CallError) {
        if self.wrapped_input {
            schemas::place_violations(error);
        }
    }
}

/// A tool that no call can run: policy blocks it, no driver serves it, the operator does not give
/// its required context, or its bundle is not loaded. It is not listed. A call to it ends with the
/// reason.
#[derive(Debug, Clone)]
pub(crate) struct Blocked {
    /// The name that it would have over MCP.
    pub(crate) name: String,
    /// `id@major`, which names the tool to the host.
    pub(crate) target: String,
    /// Its contract's id.
    pub(crate) id: String,
    /// The contract's namespace, which the search tools show.
    pub(crate) namespace: String,
    /// The verified publisher.
    pub(crate) publisher: String,
    /// The error that ends a call to it.
    pub(crate) refusal: CallError,
    /// Why it is not loaded; `None` if it is loaded but can't run.
    pub(crate) withheld: Option<WithheldReason>,
    major: u64,
}

impl Blocked {
    /// Whether a principal could use it if it were not blocked.
    pub(crate) fn is_for(&self, principal: &Principal) -> bool {
        principal.tools.include(&self.id, self.major)
    }

    fn new(name: String, info: &ToolFacts) -> Self {
        let target = info.contract.major_id();
        Self {
            refusal: info.refusal().unwrap_or_else(|| blocked(&target)),
            name,
            target,
            id: info.contract.id.to_string(),
            namespace: info.contract.effective_namespace().to_owned(),
            publisher: info.publisher.to_string(),
            withheld: None,
            major: info.contract.version.major,
        }
    }

    fn withheld(name: String, tool: WithheldTool) -> Self {
        let namespace = tool
            .id
            .rsplit_once('.')
            .map_or(&*tool.id, |(space, _)| space);
        Self {
            refusal: tool.refusal(),
            name,
            target: tool.major_id(),
            namespace: namespace.to_owned(),
            id: tool.id,
            publisher: tool.publisher,
            withheld: Some(tool.reason),
            major: tool.major,
        }
    }
}

/// Returns the error for a blocked tool for which the host has no more specific error.
fn blocked(target: &str) -> CallError {
    CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::PolicyBlocked,
        format!("`{target}` is blocked here"),
    )
    .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("allow it"))
}

/// A snapshot of the tools of a host, as clients see them.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    /// The tools that may run, in the order of their names.
    pub(crate) listed: Vec<ListedTool>,
    /// Tools that may not run, in the order of their names, followed by tools that are not loaded.
    pub(crate) blocked: Vec<Blocked>,
    /// Names that tools ask for and do not get, and tools without a name.
    pub(crate) problems: Vec<NameProblem>,
    by_name: HashMap<String, Place>,
    /// Places of tools by id, by `id@major` and by alias, each in the order of arrival. A tool that
    /// is not loaded is also found by its name.
    by_id: HashMap<String, Vec<Place>>,
}

/// The place of a tool in a catalogue.
#[derive(Debug, Clone, Copy)]
enum Place {
    Listed(usize),
    Blocked(usize),
}

/// The tool that a name means to a principal.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Found<'a> {
    Listed(&'a ListedTool),
    Blocked(&'a Blocked),
}

impl<'a> Found<'a> {
    /// `id@major`, which names the tool to the host.
    pub(crate) fn target(self) -> &'a str {
        match self {
            Self::Listed(tool) => &tool.target,
            Self::Blocked(tool) => &tool.target,
        }
    }
}

impl ToolListing {
    /// Finds the tool that a client means: the tool with exactly this name, or, if no tool has this
    /// name, a tool with this id, `id@major` or alias. If there are several, the first tool that
    /// can run is preferred. `None` if the principal may not use the tool.
    pub(crate) fn find(&self, name: &str, principal: &Principal) -> Option<Found<'_>> {
        if let Some(place) = self.by_name.get(name) {
            return self.at(*place, principal);
        }
        let places = self.by_id.get(name)?.iter();
        let found = places.filter_map(|place| self.at(*place, principal));
        found.min_by_key(|found| matches!(found, Found::Blocked(_)))
    }

    fn at(&self, place: Place, principal: &Principal) -> Option<Found<'_>> {
        match place {
            Place::Listed(at) => {
                let tool = self.listed.get(at)?;
                tool.is_for(principal).then_some(Found::Listed(tool))
            }
            Place::Blocked(at) => {
                let tool = self.blocked.get(at)?;
                tool.is_for(principal).then_some(Found::Blocked(tool))
            }
        }
    }
}

/// Returns the id of a tool, with and without its major version, and its aliases. The host decides
/// which tool an alias means, so aliases that mean another tool, or none, are left out.
fn known_as(host: &Host, contract: &Tool) -> Vec<String> {
    let target = contract.major_id();
    let aliases = contract.aliases.iter();
    let own = aliases.filter(|alias| {
        let meant = host.tool(alias);
        meant.is_some_and(|meant| meant.contract.major_id() == target)
    });
    let mut names: Vec<String> = own.cloned().collect();
    names.extend([contract.id.to_string(), target.clone()]);
    names
}

/// Lists the tools of a host in the order of their names. The same bundles in the same order of
/// arrival give the same list. A loaded tool for which no name is free is left out.
pub(crate) fn of(host: &Host, order: &Order) -> ToolListing {
    let mut infos: Vec<&ToolFacts> = host.tools().collect();
    infos.sort_by_cached_key(|info| order.of(info));
    let withheld: Vec<WithheldTool> = host.withheld().collect();
    // Tools that are not loaded come last: they take no name from a tool that runs.
    let claims = infos.iter().map(|info| order.claim(info));
    let claims: Vec<_> = claims
        .chain(withheld.iter().map(names::Claim::of))
        .collect();
    let mut catalogue = ToolListing::default();
    let mut named: Vec<(String, usize, &ToolFacts)> = Vec::with_capacity(infos.len());
    let mut assigned = names::assign(&claims);
    let withheld_names = assigned.split_off(infos.len());
    let placed = infos.iter().copied().enumerate();
    for ((arrived, info), (name, claim)) in placed.zip(assigned.into_iter().zip(&claims)) {
        match name {
            Ok(name) => {
                if let (Some(asked), None) = (&info.contract.mcp_name, claim.given) {
                    catalogue.problems.push(NameProblem::Outside {
                        name: asked.clone(),
                        tool: claim.label(),
                        shown: name.clone(),
                    });
                }
                named.push((name, arrived, info));
            }
            Err(problem) => catalogue.problems.push(problem),
        }
    }
    named.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let count = infos.len();
    let mut icon_bytes = describe::MAX_ICON_BYTES;
    let mut ids: Vec<(usize, Vec<String>, Place)> = Vec::with_capacity(named.len());
    for (name, arrived, info) in named {
        let known = known_as(host, &info.contract);
        let place = match info.effects().filter(|_| info.context().is_none()) {
            Some(effects) => {
                let place = Place::Listed(catalogue.listed.len());
                let result = order.result(info);
                let listed = describe::listed(name.clone(), info, effects, result, &mut icon_bytes);
                catalogue.listed.push(listed);
                place
            }
            None => {
                let place = Place::Blocked(catalogue.blocked.len());
                catalogue.blocked.push(Blocked::new(name.clone(), info));
                place
            }
        };
        catalogue.by_name.insert(name, place);
        ids.push((arrived, known, place));
    }
    for (arrived, (tool, name)) in (count..).zip(withheld.into_iter().zip(withheld_names)) {
        // A tool without a free name is known by its id.
        let name = name.unwrap_or_else(|_problem| tool.id.clone());
        let mut known = tool.aliases.clone();
        // The id of a served tool takes precedence over this name.
        known.extend([tool.id.clone(), tool.major_id(), name.clone()]);
        let place = Place::Blocked(catalogue.blocked.len());
        catalogue.blocked.push(Blocked::withheld(name, tool));
        ids.push((arrived, known, place));
    }
    ids.sort_by_key(|(arrived, _, _)| *arrived);
    for (_, known, place) in ids {
        for id in known {
            catalogue.by_id.entry(id).or_default().push(place);
        }
    }
    catalogue
}
