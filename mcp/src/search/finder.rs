//! The three tools of the server that give access to a large catalogue (Agent Tool
//! 0.2.0, "Deferred loading"): their arguments and results.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolward_bundle::text::visible_line;
use toolward_host::{CallError, ErrorClass, ErrorCode, Host};
use toolward_support::search::{SearchDocument, SearchIndex};

use super::{holds, name_of, reference};
use crate::catalogue::{Blocked, Found, ListedTool, ToolListing};
use crate::methods::invalid_input;
use crate::principal::Principal;

/// Results of a search by default, and at most.
const DEFAULT_MATCHES: usize = 8;
const MAX_MATCHES: usize = 25;
/// Names that one search may ask for.
const MAX_NAMES: usize = 25;
/// Characters of a description in a search's answer.
const MAX_SUMMARY_CHARS: usize = 300;
/// Characters of a caller's text in an error.
const MAX_SHOWN_CHARS: usize = 200;

const SEARCH: &str = "search_tools";
const LOAD: &str = "load_tool";
const CALL: &str = "call_tool";

/// The version of Agent Tool.
const AGENT_TOOL: &str = "0.2.0";

const SEARCH_TEXT: &str = "Finds tools by keywords (`query`), or by their exact `names`: one is needed. Gives names \
     and summaries, no schemas: load a tool with `load_tool` before you call it. Summaries are \
     text of the tools' publishers.";

const LOAD_TEXT: &str = "Gives the full description and the schemas of one tool, and a \
     reference to call it by with `call_tool`. The description is text of the tool's publisher.";

const CALL_TEXT: &str = "Calls a tool that was loaded with `load_tool`. `input` must \
     fit the input schema that `load_tool` gave.";

/// Returns a schema of the server's tools: of an input (`search`, `load`, `call`) or of an output
/// (`found`, `loaded`).
fn schema(name: &str) -> Arc<JsonObject> {
    static ALL: LazyLock<HashMap<String, Arc<JsonObject>>> = LazyLock::new(|| {
        // A test reads every schema in this file.
        serde_json::from_str(include_str!("schemas.json")).unwrap_or_default()
    });
    ALL.get(name).cloned().unwrap_or_default()
}

/// The tools that find the others, in the order of their names.
pub(crate) fn tools() -> Vec<Tool> {
    let looks = ToolAnnotations::new()
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    // `call_tool` may have any effect that a found tool has.
    let calls = ToolAnnotations::new()
        .read_only(false)
        .destructive(true)
        .idempotent(false)
        .open_world(true);
    vec![
        Tool::new(CALL, CALL_TEXT, schema("call"))
            .with_title("Call a tool")
            .with_annotations(calls),
        Tool::new(LOAD, LOAD_TEXT, schema("load"))
            .with_title("Load a tool")
            .with_raw_output_schema(schema("loaded"))
            .with_annotations(looks.clone()),
        Tool::new(SEARCH, SEARCH_TEXT, schema("search"))
            .with_title("Search tools")
            .with_raw_output_schema(schema("found"))
            .with_annotations(looks),
    ]
}

/// Whether this is a tool of the server that does not call another tool.
pub(crate) fn only_looks(name: &str) -> bool {
    [SEARCH, LOAD].contains(&name)
}

/// How a call is handled while the catalogue's tools are not listed.
#[derive(Debug)]
pub(crate) enum Asked<'a> {
    /// The result of `search_tools` or `load_tool`.
    Answer(CallToolResult),
    /// A call to `search_tools` or `load_tool` ends with this error.
    Failed(Box<CallError>),
    /// The call to another tool is refused. `tool` is the host's name for that tool.
    Refused {
        /// The client's name for the tool.
        name: String,
        tool: Option<&'a str>,
        error: Box<CallError>,
    },
    /// `call_tool` calls this tool with this input.
    Call {
        tool: &'a ListedTool,
        input: JsonObject,
    },
    /// No tool has that name.
    Unknown,
}

/// Finds tools in a catalogue whose tools are not listed.
#[derive(Debug)]
pub(crate) struct Finder {
    host: Host,
    index: SearchIndex,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    #[serde(default)]
    query: String,
    #[serde(default)]
    names: Vec<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    reference: String,
    #[serde(default)]
    input: JsonObject,
}

impl Finder {
    /// Indexes the listed tools. `host` knows which drivers are ready.
    pub(crate) fn new(host: Host, catalogue: &ToolListing) -> Self {
        let documents = catalogue.listed.iter().map(|tool| SearchDocument {
            name: &tool.name,
            id: tool.contract.id.as_str(),
            aliases: &tool.contract.aliases,
            title: &tool.contract.name,
            hint: tool.contract.search_hint.as_deref().unwrap_or_default(),
            namespace: tool.contract.effective_namespace(),
            tags: &tool.contract.tags,
            description: &tool.contract.description,
            publisher: "",
        });
        Self {
            host,
            index: SearchIndex::build(documents),
        }
    }

    /// Decides how to handle a call of `name`. `catalogue` is the listing that this finder was made
    /// from.
    pub(crate) fn asked<'a>(
        &self,
        catalogue: &'a ToolListing,
        name: &str,
        arguments: JsonObject,
        principal: &Principal,
    ) -> Asked<'a> {
        let behind = Behind {
            finder: self,
            catalogue,
            principal,
        };
        let answer = match name {
            SEARCH => read(arguments).and_then(|search| behind.search(search)),
            LOAD => read(arguments).and_then(|load| behind.load(&load)),
            CALL => {
                let call = match read::<Call>(arguments) {
                    Ok(call) => call,
                    Err(error) => return behind.refused(CALL, error),
                };
                return match behind.loaded(&call.reference) {
                    Ok(tool) => Asked::Call {
                        tool,
                        input: call.input,
                    },
                    Err(error) => behind.refused(name_of(&call.reference), error),
                };
            }
            _ => {
                return match behind.find(name) {
                    Some(Found::Listed(tool)) => behind.refused(name, not_loaded(&tool.name)),
                    Some(Found::Blocked(one)) => behind.refused(name, one.refusal.clone()),
                    None => Asked::Unknown,
                };
            }
        };
        match answer {
            Ok(value) => Asked::Answer(CallToolResult::structured(value)),
            Err(error) => Asked::Failed(Box::new(error)),
        }
    }
}

/// A catalogue as one principal sees it.
struct Behind<'f, 'a> {
    finder: &'f Finder,
    catalogue: &'a ToolListing,
    principal: &'f Principal,
}

impl<'a> Behind<'_, 'a> {
    fn search(&self, search: Search) -> Result<Value, CallError> {
        if search.query.trim().is_empty() && search.names.is_empty() {
            return Err(invalid("expected `query` or `names`, found neither"));
        }
        if search.names.len() > MAX_NAMES {
            return Err(invalid(format!(
                "expected at most {MAX_NAMES} names, found {}",
                search.names.len()
            )));
        }
        let limit = search.limit.unwrap_or(DEFAULT_MATCHES);
        if !(1..=MAX_MATCHES).contains(&limit) {
            return Err(invalid(format!(
                "expected `limit` from 1 to {MAX_MATCHES}, found {limit}"
            )));
        }
        let mut found: Vec<(&ListedTool, &str)> = Vec::new();
        let mut unavailable = Vec::new();
        let mut unknown = Vec::new();
        let is_new = |found: &[(&ListedTool, &str)], tool: &ListedTool| {
            found.iter().all(|(other, _)| other.name != tool.name)
        };
        for name in &search.names {
            match self.find(name) {
                Some(Found::Listed(tool)) if is_new(&found, tool) => {
                    found.push((tool, "exact_name"));
                }
                Some(Found::Listed(_)) => {}
                Some(Found::Blocked(tool)) => unavailable.push(blocked(tool)),
                None => unknown.push(visible_line(name, MAX_SHOWN_CHARS)),
            }
        }
        let mut total = found.len();
        if !search.query.trim().is_empty() {
            let mine = |place: usize| self.tool(place).is_some();
            for hit in self.finder.index.search_among(&search.query, mine) {
                let tool = self.tool(hit.position);
                let Some(tool) = tool.filter(|tool| is_new(&found, tool)) else {
                    continue;
                };
                total = total.saturating_add(1);
                if found.len() < limit {
                    let reason = if hit.exact { "exact_name" } else { "keywords" };
                    found.push((tool, reason));
                }
            }
            if let Some(Found::Blocked(tool)) = self.find(search.query.trim()) {
                unavailable.push(blocked(tool));
            }
        }
        let matches = found
            .iter()
            .map(|(tool, reason)| self.deferred(tool, reason));
        let matches: Vec<Value> = matches.collect();
        let pending = matches.iter().filter(|tool| tool.get(PENDING).is_some());
        let pending: Vec<&Value> = pending.filter_map(|tool| tool.get("name")).collect();
        let mine = self.catalogue.listed.iter();
        let mine = mine.filter(|tool| tool.is_for(self.principal)).count();
        Ok(json!({
            "schema_version": AGENT_TOOL,
            "status": if matches.is_empty() { "no_match" } else { "matched" },
            "matches": matches,
            "total_matches": total,
            "total_tools": mine,
            "unknown_names": unknown,
            "blocked_tools": unavailable,
            "pending_tools": pending,
        }))
    }

    fn load(&self, load: &Load) -> Result<Value, CallError> {
        let tool = self.known(&load.name)?;
        let reference = reference(tool, self.principal).ok_or_else(|| {
            CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "the system has no randomness, and so no references can be made",
            )
        })?;
        let listed = serde_json::to_value(&tool.tool).unwrap_or_default();
        let of = |key: &str| listed.get(key).cloned().unwrap_or_default();
        Ok(json!({
            "schema_version": AGENT_TOOL,
            "loading_state": "loaded",
            "reference": reference,
            "tool_id": tool.contract.id.as_str(),
            "version": tool.contract.version.to_string(),
            "publisher": visible_line(&tool.publisher, MAX_SHOWN_CHARS),
            "name": tool.name,
            "title": of("title"),
            "description": of("description"),
            "input_schema": of("inputSchema"),
            "output_schema": of("outputSchema"),
            "annotations": of("annotations"),
        }))
    }

    /// The tool for which a reference was made.
    fn loaded(&self, reference: &str) -> Result<&'a ListedTool, CallError> {
        let tool = self.known(name_of(reference))?;
        match holds(reference, tool, self.principal) {
            true => Ok(tool),
            false => Err(not_loaded(&tool.name)),
        }
    }

    /// Refuses a call by this name with an error.
    fn refused(&self, name: &str, error: CallError) -> Asked<'a> {
        Asked::Refused {
            name: name.to_owned(),
            tool: self.find(name).map(|found| found.target()),
            error: Box::new(error),
        }
    }

    /// The tool at a place of the index, if it is for the principal.
    fn tool(&self, place: usize) -> Option<&'a ListedTool> {
        let tool = self.catalogue.listed.get(place)?;
        tool.is_for(self.principal).then_some(tool)
    }

    /// The tool with this name or id.
    fn find(&self, name: &str) -> Option<Found<'a>> {
        self.catalogue.find(name, self.principal)
    }

    /// Returns the listed tool with this name, or the error for a blocked or unknown tool.
    fn known(&self, name: &str) -> Result<&'a ListedTool, CallError> {
        match self.find(name) {
            Some(Found::Listed(tool)) => return Ok(tool),
            Some(Found::Blocked(blocked)) => return Err(blocked.refusal.clone()),
            None => {}
        }
        // An alias that two tools claim means neither, but both are suggested.
        let index = &self.finder.index;
        let hits = index.search_among(name, |place| self.tool(place).is_some());
        let places = index.named(name).chain(hits.iter().map(|hit| hit.position));
        let mut near: Vec<&str> = Vec::new();
        for tool in places.filter_map(|place| self.tool(place)) {
            if near.len() < MAX_SUGGESTIONS && !near.contains(&tool.name.as_str()) {
                near.push(&tool.name);
            }
        }
        let shown = visible_line(name, MAX_SHOWN_CHARS);
        Err(CallError::new(
            ErrorCode::NOT_FOUND,
            ErrorClass::UnknownTool,
            format!("there is no tool {shown:?}"),
        )
        .with_cause(json!({ "near": near }))
        .with_hint(format!("find the name with `{SEARCH}`")))
    }

    /// Returns the `deferred_tool_ref` of Agent Tool: the facts to choose a tool by, without its
    /// schemas.
    fn deferred(&self, tool: &ListedTool, reason: &str) -> Value {
        let contract = &tool.contract;
        let source = visible_line(&tool.publisher, MAX_SHOWN_CHARS);
        // Until the tool's driver is compiled, a call to the tool waits.
        let pending = !self.finder.host.is_ready(&tool.target);
        let mut deferred = json!({
            "schema_version": AGENT_TOOL,
            "tool_id": contract.id.as_str(),
            "name": tool.name,
            "namespace": contract.effective_namespace(),
            "title": visible_line(&contract.name, MAX_SHOWN_CHARS),
            "summary": visible_line(&contract.description, MAX_SUMMARY_CHARS),
            "search_hint": contract.search_hint,
            "source": source,
            "schema_visibility": "deferred",
            "loading_state": "deferred",
            "reason": reason,
            PENDING: pending.then_some(source),
        });
        if let Some(members) = deferred.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        deferred
    }
}

/// The member with the publisher of a tool whose component is still to be compiled.
const PENDING: &str = "pending_provider_or_server";

/// The most names that are suggested for an unknown one.
const MAX_SUGGESTIONS: usize = 5;

/// A tool that is blocked, and can't be loaded.
fn blocked(tool: &Blocked) -> Value {
    json!({
        "schema_version": AGENT_TOOL,
        "tool_id": tool.id,
        "name": tool.name,
        "namespace": tool.namespace,
        "source": visible_line(&tool.publisher, MAX_SHOWN_CHARS),
        "schema_visibility": "internal",
        "loading_state": "unavailable",
        "reason": tool.refusal.code.to_string(),
    })
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, CallError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| invalid(error.to_string()))
}

fn invalid(message: impl Into<String>) -> CallError {
    invalid_input(message, "the tool's input schema says what it takes")
}

fn not_loaded(name: &str) -> CallError {
    CallError::new(
        ErrorCode::SCHEMA_NOT_LOADED,
        ErrorClass::SchemaNotLoaded,
        format!("`{name}` was not loaded, or has changed since"),
    )
    .with_hint(format!(
        "load it with `{LOAD}`, then call it with `{CALL}` and the reference that you get"
    ))
}

#[cfg(test)]
mod tests;
