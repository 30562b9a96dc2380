//! `show --as`: a tool in the form of another specification.

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
use toolward_operator::policy_review::PolicyReview;

use super::{Shown, Subject};
use crate::commands::reply;
use crate::output::unwritable;
use crate::prelude::*;

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

pub(super) fn of(
    form: ToolForm,
    review: &PolicyReview,
    name: &str,
    subject: &Subject,
    environment: &Environment,
) -> Result<Option<Shown>> {
    let (source, granted) = (&subject.source, &review.granted);
    let contents = review.bundles.iter().map(|(content, _)| content.clone());
    let contents: Vec<Content> = contents.collect();
    let setup = HostSetup {
        policies: (*subject.policies).clone(),
        state_dir: None,
    };
    // Nothing is called: no bucket is opened, no engine made.
    let builder = setup.host(contents.clone(), granted, &source.trust, environment, false)?;
    let builder = source.store.protect(builder, environment);
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

/// The records of the tool, among the other tools of its host.
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

/// The tool as the server lists it; the error of its calls if it lists none.
fn definition(tool: &ToolFacts, features: &ServerFeatures) -> Result<Value> {
    if let Some(refusal) = tool.refusal() {
        return Err(reply::refused(&refusal, &tool.contract.major_id()));
    }
    let name = name_of(tool, features).ok_or_else(|| unnamed(tool))?;
    features.definition(name).ok_or_else(|| unnamed(tool))
}

/// What the server calls the tool.
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
