//! `policy`: what the operator grants, looked at from the tools' side. Nothing
//! here changes a file.

mod check;
mod documents;
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
    /// List a bundle's tools: allowed, asking a person, or blocked; and its
    /// prompts and resources: served or hidden
    List(list::Arguments),
    /// Show a tool's declaration, the policy's rules about it, what it gets, and
    /// why; or what becomes of a prompt or resource
    Explain(explain::Arguments),
    /// Write the smallest policy that lets a bundle's tools run, and its prompts
    /// and resources be seen
    Suggest(suggest::Arguments),
    /// Check a policy file
    Check(check::Arguments),
}

/// Bundles, and the policy that they are held to.
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
    ) -> Result<(Bundles, Granted), Failure> {
        let contents = self.source.contents(environment, output)?;
        let granted = Granted::read(&self.source.trust, &self.policies, environment)?;
        let named = contents.into_iter().map(|content| {
            let publisher = content.origin.publisher();
            (content, publisher)
        });
        Ok((named.collect(), granted))
    }
}

/// Bundles with the names of their publishers.
type Bundles = Vec<(Content, String)>;

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

/// Every contract with every driver that carries it out; only those of one
/// tool, where one is named.
fn pairs<'a>(
    bundles: &'a Bundles,
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
    let tools = bundles.iter().flat_map(|(content, publisher)| {
        let tools = content.tools.iter();
        tools.map(move |entry| Contract {
            tool: entry.tool.as_ref(),
            publisher,
        })
    });
    let tools = tools.filter(move |contract| named(contract.tool));
    tools.flat_map(move |contract| {
        bundles.iter().flat_map(move |(content, publisher)| {
            content.drivers_for(contract.tool).map(move |entry| {
                let driver = entry.driver.as_ref();
                (contract, Implementation { driver, publisher })
            })
        })
    })
}

/// What the policy says about each pair.
fn explanations(bundles: &Bundles, policy: &Policy, tool: Option<&str>) -> Vec<Explanation> {
    pairs(bundles, tool)
        .map(|(contract, implementation)| {
            let contents = bundles.iter().map(|(content, _)| content);
            let request = reachable(contents, contract.tool, implementation.driver);
            toolward_policy::explain(&contract, &implementation, policy, &request)
        })
        .collect()
}

/// There is no such tool, or none that can run.
fn nothing(bundles: &Bundles, tool: Option<&str>) -> Failure {
    const SHOWN: usize = 10;
    let mut ids: Vec<String> = pairs(bundles, None)
        .map(|(contract, _)| contract.tool.major_id())
        .collect();
    ids.dedup();
    ids.truncate(SHOWN);
    let message = match tool {
        Some(tool) => format!("no bundle has a tool `{tool}` with a driver"),
        None => "no bundle has a tool with a driver".to_owned(),
    };
    let failure = Failure::new(Exit::Failed, "tool-missing", message);
    match ids.as_slice() {
        [] => failure.hint("name a bundle with contracts and drivers"),
        ids => failure.hint(format!("the tools are: {}", ids.join(", "))),
    }
}
