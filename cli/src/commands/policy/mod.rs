//! `policy`: what the operator grants, looked at from the tools' side. Nothing
//! here changes a file.

mod check;
mod explain;
mod list;
mod suggest;

use clap::{Args, Subcommand};
use toolward_bundle::content::Content;
use toolward_policy::{Contract, Explanation, Implementation, Policy};

use super::call::Source;
use super::reach::reachable;
use crate::config::{Granted, PolicyFlags};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

pub(super) use check::unknown_publishers;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List a bundle's tools: allowed, asking a person, or blocked
    List(list::Arguments),
    /// Show a tool's declaration, the policy's rules about it, what it gets, and
    /// why
    Explain(explain::Arguments),
    /// Write the smallest policy that lets a bundle's tools run
    Suggest(suggest::Arguments),
    /// Check a policy file
    Check(check::Arguments),
}

/// A bundle, and the policy that it is held to.
#[derive(Debug, Args)]
struct Subject {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    policies: PolicyFlags,
}

impl Subject {
    fn read(
        &self,
        environment: &Environment,
        output: &Output,
    ) -> Result<(Content, Granted), Failure> {
        let content = self.source.content(environment, output)?;
        let granted = Granted::read(&self.source.trust, &self.policies, environment)?;
        Ok((content, granted))
    }
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::List(arguments) => list::run(arguments, environment, output),
        Command::Explain(arguments) => explain::run(arguments, environment, output),
        Command::Suggest(arguments) => suggest::run(arguments, environment, output),
        Command::Check(arguments) => check::run(arguments, environment, output),
    }
}

/// Every contract of a bundle with every driver that carries it out; only those
/// of one tool, where one is named.
fn pairs<'a>(
    content: &'a Content,
    publisher: &'a str,
    tool: Option<&'a str>,
) -> impl Iterator<Item = (Contract<'a>, Implementation<'a>)> + 'a {
    let named = move |contract: &toolward_contract::tool::Tool| match tool {
        None => true,
        Some(name) => {
            contract.id.as_str() == name
                || contract.major_id() == name
                || contract.aliases.iter().any(|alias| alias == name)
        }
    };
    let tools = content.tools.iter().map(|entry| entry.tool.as_ref());
    tools.filter(move |tool| named(tool)).flat_map(move |tool| {
        content.drivers_for(tool).map(move |entry| {
            let driver = entry.driver.as_ref();
            (
                Contract { tool, publisher },
                Implementation { driver, publisher },
            )
        })
    })
}

/// What the policy says about each pair.
fn explanations(content: &Content, policy: &Policy, tool: Option<&str>) -> Vec<Explanation> {
    let publisher = content.origin.publisher();
    pairs(content, &publisher, tool)
        .map(|(contract, implementation)| {
            let request = reachable(content, contract.tool, implementation.driver);
            toolward_policy::explain(&contract, &implementation, policy, &request)
        })
        .collect()
}

/// There is no such tool, or none that can run.
fn nothing(content: &Content, tool: Option<&str>) -> Failure {
    const SHOWN: usize = 10;
    let ids: Vec<String> = content
        .tools
        .iter()
        .filter(|entry| content.drivers_for(&entry.tool).next().is_some())
        .map(|entry| entry.tool.major_id())
        .take(SHOWN)
        .collect();
    let message = match tool {
        Some(tool) => format!("the bundle has no tool `{tool}` with a driver"),
        None => "the bundle has no tool with a driver".to_owned(),
    };
    let failure = Failure::new(Exit::Failed, "tool-missing", message);
    match ids.as_slice() {
        [] => failure.hint("name a bundle with contracts and drivers"),
        ids => failure.hint(format!("its tools are: {}", ids.join(", "))),
    }
}
