//! `policy`: what the operator grants, looked at from the tools' side. Nothing
//! here changes a file.

mod check;
mod documents;
mod explain;
mod list;
mod suggest;

use clap::{Args, Subcommand};
use toolward_bundle::content::Content;
use toolward_host::Host;
use toolward_policy::{Contract, Implementation, Machine, Policy, ToolRoutes};

use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind};
use crate::flags::Flagged;
use crate::output::Output;
use toolward_operator::bundles::BundleSource;
use toolward_operator::config::{Granted, PolicyFiles};
use toolward_operator::host_setup;

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
    source: Flagged<BundleSource>,

    #[command(flatten)]
    policies: Flagged<PolicyFiles>,
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

impl Subject {
    /// What the host has for drivers: whether their directories can be used, too.
    fn machine(&self, granted: &Granted, environment: &Environment) -> Result<Machine, Failure> {
        let builder = Host::builder().policy(granted.policy.clone());
        let builder = host_setup::protect(builder, granted, &self.source.trust, environment)?;
        Ok(builder.machine()?)
    }
}

/// The routes of all tools of the bundles, as a host has them; only those of one
/// tool, where one is named.
fn routes<'b>(
    bundles: &'b Bundles,
    policy: &Policy,
    machine: &Machine,
    tool: Option<&str>,
) -> Result<Vec<ToolRoutes<'b>>, Failure> {
    let contracts = bundles.iter().flat_map(|(content, publisher)| {
        let tools = content.tools.iter();
        tools.map(move |entry| Contract {
            tool: entry.tool.as_ref(),
            publisher,
        })
    });
    let drivers = bundles.iter().flat_map(|(content, publisher)| {
        let drivers = content.drivers.iter();
        drivers.map(move |entry| Implementation {
            driver: entry.driver.as_ref(),
            publisher,
        })
    });
    let contracts: Vec<Contract<'b>> = contracts.collect();
    let drivers: Vec<Implementation<'b>> = drivers.collect();
    let mut found =
        toolward_policy::routes(&contracts, &drivers, policy, machine).map_err(|duplicate| {
            let ids = match duplicate.kind {
                "tool" => contracts
                    .get(duplicate.first)
                    .map(|one| one.tool.major_id()),
                _ => (drivers.get(duplicate.first)).map(|one| one.driver.id.to_string()),
            };
            let message = format!("{duplicate}: `{}`", ids.unwrap_or_default());
            Failure::new(Kind::Failed, "duplicate-id", message)
                .hint("name one of the two bundles only, or remove one")
        })?;
    found.retain(|one| tool.is_none_or(|name| is_named(one.contract.tool, name)));
    Ok(found)
}

fn is_named(contract: &toolward_contract::tool::Tool, name: &str) -> bool {
    contract.id.as_str() == name
        || contract.major_id() == name
        || contract.aliases.iter().any(|alias| alias == name)
}

/// There is no such tool.
fn nothing(bundles: &Bundles, tool: Option<&str>) -> Failure {
    const MAX_SUGGESTIONS: usize = 10;
    let tools = bundles.iter().flat_map(|(content, _)| &content.tools);
    let ids: Vec<String> = tools
        .take(MAX_SUGGESTIONS)
        .map(|entry| entry.tool.major_id())
        .collect();
    let message = match tool {
        Some(tool) => format!("no bundle has a tool `{tool}`"),
        None => "no bundle has a tool".to_owned(),
    };
    let failure = Failure::new(Kind::Failed, "tool-missing", message);
    match ids.as_slice() {
        [] => failure.hint("name a bundle with contracts and drivers"),
        ids => failure.hint(format!("the tools are: {}", ids.join(", "))),
    }
}
