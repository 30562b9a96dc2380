//! `describe`: a tool in the form of another specification. Nothing is called.

use std::time::SystemTime;

use clap::{Args, ValueEnum};
use serde_json::Value;
use toolward_adapters::records::{Described, ToolDescription, function_definition};
use toolward_bundle::tool_names;
use toolward_host::{Host, LOCAL, ToolInfo};
use toolward_mcp::ServerFeatures;
use toolward_operator::bundles::BundleSource;
use toolward_operator::granted::{Granted, PolicyFiles};
use toolward_operator::host_setup::HostSetup;

use super::reply;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, OperatorCode, Result};
use crate::flags::Flagged;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A tool's id, or id@major
    tool: String,

    /// Agent Tool's records, a function for OpenAI's chat completions, or the tool as
    /// `serve` lists it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::AgentTool)]
    format: Format,

    #[command(flatten)]
    source: Flagged<BundleSource>,

    #[command(flatten)]
    policies: Flagged<PolicyFiles>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    AgentTool,
    Openai,
    Mcp,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let (source, name) = (&arguments.source, &arguments.tool);
    let contents = source.contents(environment, output)?;
    if let Some(failure) = source.withheld(name, &contents, environment, output)? {
        return Err(failure);
    }
    let granted = Granted::read(&source.trust, &arguments.policies, environment)?;
    let setup = HostSetup {
        policies: (*arguments.policies).clone(),
        state_dir: None,
    };
    // Nothing is called: no bucket is opened, no engine made.
    let builder = setup.host(
        contents.clone(),
        &granted,
        &source.trust,
        environment,
        false,
    )?;
    let builder = source.store.protect(builder, environment);
    let host = builder.defer_engine().build()?;
    let Some(tool) = host.tool(name) else {
        return Err(missing(name, &host));
    };
    let features = ServerFeatures::new(host.clone(), &contents, &granted.policy, usize::MAX)
        .map_err(|error| Failure::of(Kind::Failed, error))?;
    let described = match arguments.format {
        Format::AgentTool => records(&tool, &host, &features)?,
        Format::Mcp => definition(&tool, &features)?,
        Format::Openai => function_definition(&definition(&tool, &features)?),
    };
    match output.json() {
        true => output.value(&described),
        false => output.pretty(&described),
    }
}

/// The records of the tool, among those of its host.
fn records(tool: &ToolInfo, host: &Host, features: &ServerFeatures) -> Result<Value> {
    let tools: Vec<ToolInfo> = host.tools().collect();
    let named = |info: &ToolInfo| name_of(info, features).map(str::to_owned);
    let names: Vec<Option<String>> = tools.iter().map(named).collect();
    let all = tools.iter().zip(&names);
    let all: Vec<Described<'_>> = all
        .filter_map(|(info, name)| {
            Some(Described {
                info,
                name: name.as_deref()?,
            })
        })
        .collect();
    let target = tool.contract.major_id();
    let mut same = all.iter();
    let Some(described) = same.find(|one| one.info.contract.major_id() == target) else {
        return Err(unnamed(tool));
    };
    let description = ToolDescription::of(described, &all, LOCAL, SystemTime::now());
    serde_json::to_value(description)
        .map_err(|error| Failure::new(Kind::Failed, crate::failure::Code::OutputUnwritable, error))
}

/// The tool as the server lists it; the error of its calls if it lists none.
fn definition(tool: &ToolInfo, features: &ServerFeatures) -> Result<Value> {
    if let Some(refusal) = tool.refusal() {
        return Err(reply::refused(&refusal, &tool.contract.major_id()));
    }
    let name = name_of(tool, features).ok_or_else(|| unnamed(tool))?;
    features.definition(name).ok_or_else(|| unnamed(tool))
}

/// What the server calls the tool.
fn name_of<'f>(tool: &ToolInfo, features: &'f ServerFeatures) -> Option<&'f str> {
    let target = tool.contract.major_id();
    let mut names = features.tool_names();
    let (name, _) = names.find(|(_, of)| *of == target)?;
    Some(name)
}

fn unnamed(tool: &ToolInfo) -> Failure {
    let tool = tool.contract.major_id();
    let message = format!(
        "`{tool}` has no name over MCP: other tools have taken every name that it could have"
    );
    Failure::new(Kind::Failed, OperatorCode::ToolMissing, message)
        .hint("name its bundle only, without those of the other tools")
}

fn missing(name: &str, host: &Host) -> Failure {
    let ids: Vec<String> = host.tools().map(|tool| tool.contract.major_id()).collect();
    let hint = tool_names::hint(name, ids.iter().map(String::as_str));
    let message = format!("no bundle has a tool `{name}`");
    Failure::new(Kind::Failed, OperatorCode::ToolMissing, message).hint(hint.unwrap_or_else(|| {
        "`toolward list` shows the installed tools; `--bundle` names another bundle".to_owned()
    }))
}
