//! `show --policy`: shows declaration, policy, grant and reasons of one tool together, or which
//! prompts and resources are served and why others are not. `show --as`: shows a tool in the form
//! of another specification.

#[cfg(feature = "adapters")]
use std::time::SystemTime;

use clap::ValueEnum;
#[cfg(feature = "adapters")]
use toolward_adapters::records::{Described, amplifier_spec, function_definition, tool_records};
use toolward_bundle::text::visible_json;
use toolward_host::ToolFacts;
#[cfg(feature = "adapters")]
use toolward_host::{Host, LOCAL};
use toolward_mcp::ServerFeatures;
use toolward_mcp::documents::suggest;
use toolward_operator::policy_review::{InternalAddress, PolicyReview};
use toolward_policy::{Contract, Explanation, Rejected, Rejection};

use super::{Shown, Subject};
use crate::commands::policy::{document_json, document_line, documents};
use crate::commands::reply;
use crate::prelude::*;

/// Longest explanation of one driver, in characters. It is long, since the policy lines in an
/// explanation would be useless if they were cut.
const MAX_EXPLANATION_CHARS: usize = 256 * 1024;

/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

/// The most names that are suggested for an unknown name.
const MAX_SUGGESTIONS: usize = 10;

pub(super) fn policy(review: &PolicyReview, name: &str) -> Result<Option<Shown>> {
    let granted = &review.granted;
    let tools = review.routes(Some(name))?;
    let served = tools.iter().flat_map(|tool| &tool.routes);
    let found: Vec<(Explanation, Vec<InternalAddress>)> = served
        .map(|route| {
            let granted = route.decision.grant();
            let internal = granted.map(InternalAddress::of).unwrap_or_default();
            (review.explain(route), internal)
        })
        .collect();
    let rejected = tools.iter().flat_map(|tool| {
        let rejected = tool.rejected.iter();
        rejected.map(move |one| (&tool.contract, one))
    });
    let rejected: Vec<(&Contract<'_>, &Rejected<'_>)> = rejected.collect();
    let mut documents = documents(review);
    documents.retain(|document| document.is_meant(name));
    let mut contents = review.bundles.iter().map(|(content, _)| content);
    let is_bundle = contents.any(|content| content.manifest.id.as_str() == name);
    if tools.is_empty() && documents.is_empty() && !is_bundle {
        return Ok(None);
    }
    let missing = suggest(&documents);
    let value = json!({
        "ok": true,
        "policies": granted.files,
        "drivers": found.iter().map(|(explanation, _)| explanation).collect::<Vec<_>>(),
        "not_serving": rejected.iter().map(|(contract, one)| json!({
            "tool": contract.tool.major_id(),
            "publisher": contract.publisher,
            "driver": one.implementation.driver.id.as_str(),
            "driver_publisher": one.implementation.publisher,
            "reasons": one.reasons,
        })).collect::<Vec<_>>(),
        "documents": documents.iter().map(document_json).collect::<Vec<_>>(),
        "lines_to_add": missing,
        "addresses_missing": found.iter().flat_map(|(_, internal)| internal).map(|one| json!({
            "host": one.host, "addresses": one.addresses, "line": one.line(),
        })).collect::<Vec<_>>(),
    });
    let mut parts = Vec::new();
    if !found.is_empty() {
        let explained: Vec<String> = found.iter().map(explained).collect();
        parts.push(explained.join("\n\n"));
    }
    let unserved = tools.iter().filter(|tool| tool.routes.is_empty());
    parts.extend(unserved.map(|tool| blocked(&tool.contract)));
    if !rejected.is_empty() {
        parts.push(String::new());
        let rejected = rejected.iter();
        parts.extend(rejected.map(|(contract, one)| refused(contract, one)));
    }
    if !tools.is_empty() && !documents.is_empty() {
        parts.push(String::new());
    }
    parts.extend(documents.iter().map(document_line));
    if tools.is_empty() && documents.is_empty() {
        parts.push(format!("{name} brings no prompts and no resources"));
    }
    if !missing.is_empty() {
        let missing = visible(&missing, MAX_EXPLANATION_CHARS);
        let missing = missing.trim_end();
        parts.push(format!(
            "\nto have it served, add to the policy:\n\n{missing}"
        ));
    }
    let mut lines = found.iter().map(|(one, _)| &one.lines_to_add);
    let lacks_lines = lines.any(|lines| !lines.is_empty()) || !missing.is_empty();
    let place = lacks_lines.then(|| format!("the policy's file is {}", granted.place.display()));
    Ok(Some(Shown {
        note: place,
        ..Shown::new(value, parts.join("\n"))
    }))
}

/// Lists the prompts and resources of the bundles, for an unknown name.
pub(super) fn known_documents(review: &PolicyReview) -> Option<String> {
    let documents = documents(review);
    let known = documents.iter().map(|document| document.id);
    let known: Vec<&str> = known.take(MAX_SUGGESTIONS).collect();
    (!known.is_empty()).then(|| format!("prompts and resources are: {}", known.join(", ")))
}

fn explained((explanation, internal): &(Explanation, Vec<InternalAddress>)) -> String {
    let shown = visible(&explanation.to_string(), MAX_EXPLANATION_CHARS);
    let mut text = shown.trim_end().to_owned();
    for one in internal {
        let one = visible_line(&one.to_string(), 400);
        text.push_str(&format!("\n  address {one}"));
    }
    text
}

fn blocked(contract: &Contract<'_>) -> String {
    let (id, publisher) = (contract.tool.major_id(), contract.publisher);
    let shown = visible_line(publisher, MAX_PUBLISHER_CHARS);
    format!("{id} of {shown}: blocked, no driver serves it")
}

/// Describes on one line a driver that names the tool but does not serve it.
fn refused(contract: &Contract<'_>, one: &Rejected<'_>) -> String {
    let (id, publisher) = (&one.implementation.driver.id, one.implementation.publisher);
    let tool = contract.tool.major_id();
    let reasons: Vec<String> = one.reasons.iter().map(ToString::to_string).collect();
    let mut line = format!(
        "driver {id} of {} does not serve {tool}: {}",
        visible_line(publisher, MAX_PUBLISHER_CHARS),
        visible_line(&reasons.join("; "), MAX_EXPLANATION_CHARS)
    );
    if one.reasons == [Rejection::NotBound] {
        line.push_str(&format!(
            "; `toolward policy suggest {tool} --driver {id}` writes the lines that bind it"
        ));
    }
    line
}

/// The specifications whose form a tool can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ToolForm {
    /// The records of Agent Tool 0.2.0
    #[cfg(feature = "adapters")]
    AgentTool,
    /// A function for OpenAI's chat completions
    #[cfg(feature = "adapters")]
    Openai,
    /// The tool as `serve` lists it
    Mcp,
    /// Amplifier's tool specification
    #[cfg(feature = "adapters")]
    Amplifier,
}

pub(super) fn form(
    form: ToolForm,
    review: &PolicyReview,
    name: &str,
    subject: &Subject,
    context: &Context,
) -> Result<Option<Shown>> {
    let (source, granted) = (&subject.source, &review.granted);
    let contents = review.bundles.iter().map(|(content, _)| content.clone());
    let contents: Vec<Content> = contents.collect();
    let setup = HostSetup {
        policies: (*subject.policies).clone(),
        state_dir: None,
    };
    // No tool is called, so no bucket is opened and no engine is made.
    let setup = setup.configured(&source.trust, context);
    let builder = setup.host(contents.clone(), granted, false)?;
    let builder = source.store.protect(builder, context);
    let host = builder.defer_engine().build()?;
    let Some(tool) = host.tool(name) else {
        return Ok(None);
    };
    let features = ServerFeatures::new(host.clone(), &contents, &granted.policy, usize::MAX);
    let features = features.map_err(failed)?;
    let value = match form {
        #[cfg(feature = "adapters")]
        ToolForm::AgentTool => records(tool, &host, &features)?,
        ToolForm::Mcp => definition(tool, &features)?,
        #[cfg(feature = "adapters")]
        ToolForm::Openai => function_definition(&definition(tool, &features)?),
        #[cfg(feature = "adapters")]
        ToolForm::Amplifier => amplifier_spec(&definition(tool, &features)?),
    };
    let lines = serde_json::to_string_pretty(&value).map_err(unwritable)?;
    Ok(Some(Shown::new(value, visible_json(&lines))))
}

/// Returns the records of Agent Tool for this tool. They also refer to the host's other tools.
#[cfg(feature = "adapters")]
fn records(tool: &ToolFacts, host: &Host, features: &ServerFeatures) -> Result<Value> {
    let named = |info| {
        let name = name_of(info, features)?;
        Some(Described { info, name })
    };
    let all: Vec<Described<'_>> = host.tools().filter_map(named).collect();
    let target = tool.contract.major_id();
    let mut same = all.iter();
    let Some(described) = same.find(|one| one.info.contract.major_id() == target) else {
        return Err(unnamed(tool));
    };
    Ok(tool_records(described, &all, LOCAL, SystemTime::now()))
}

/// Returns the tool as the server lists it, or the error of its calls if the server does not list
/// it.
fn definition(tool: &ToolFacts, features: &ServerFeatures) -> Result<Value> {
    if let Some(refusal) = tool.refusal() {
        return Err(reply::refused(&refusal, &tool.contract.major_id()));
    }
    let name = name_of(tool, features).ok_or_else(|| unnamed(tool))?;
    features.definition(name).ok_or_else(|| unnamed(tool))
}

/// Returns the server's name for the tool.
fn name_of<'f>(tool: &ToolFacts, features: &'f ServerFeatures) -> Option<&'f str> {
    let target = tool.contract.major_id();
    let mut names = features.tool_names();
    let (name, _) = names.find(|(_, of)| *of == target)?;
    Some(name)
}

fn unnamed(tool: &ToolFacts) -> Failure {
    let tool = tool.contract.major_id();
    let message = format!(
        "`{tool}` has no name over MCP: other tools have taken every name that it could have"
    );
    Failure::failed(OperatorCode::ToolMissing, message)
        .hint("name its bundle only, without those of the other tools")
}
