//! One module per subcommand: its flags, and the library calls they make.

pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
#[cfg(feature = "adapters")]
pub(crate) mod import;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod ledger;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod pack;
pub(crate) mod policy;
pub(crate) mod publisher;
mod reply;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod test;
pub(crate) mod trust;
pub(crate) mod verify;

use clap::CommandFactory as _;

use crate::arguments::{Cli, Command};
use crate::help;
use crate::prelude::*;

pub(crate) fn run(
    command: Command,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit> {
    let done = match command {
        Command::Call(arguments) => return arguments.run(environment, output),
        Command::Show(arguments) => show::run(&arguments, environment, output),
        Command::Serve(arguments) => return serve::run(arguments, environment, output),
        Command::Demo(arguments) => return arguments.run(environment, output),
        Command::Check(arguments) => return check::run(&arguments, output),
        Command::Verify(arguments) => return arguments.run(environment, output),
        Command::Test(arguments) => return arguments.run(environment, output),
        Command::Install(install) => return install.run(environment, output),
        Command::Update(update) => return update.run(environment, output),
        Command::Ledger(command) => return command.run(environment, output),
        Command::Doctor(arguments) => return arguments.run(environment, output),
        Command::Mcp(command) => mcp::run(&command, environment, output),
        #[cfg(feature = "adapters")]
        Command::Import(command) => command.run(environment, output),
        Command::New(arguments) => new::run(&arguments, environment, output),
        Command::Build(arguments) => build::run(&arguments, environment, output),
        Command::Pack(arguments) => pack::run(&arguments, environment, output),
        Command::Inspect(arguments) => inspect::run(&arguments, environment, output),
        Command::List(list) => list.run(environment, output),
        Command::Remove(remove) => remove.run(environment, output),
        Command::Search(search) => search.run(environment, output),
        Command::Trust(command) => command.run(environment, output),
        Command::Publisher(command) => command.run(environment, output),
        Command::Policy(command) => command.run(environment, output),
        Command::Completions(arguments) => arguments.run(&Cli::command()),
        Command::InternalNames(names) => names.run(environment),
        Command::InternalManPages(pages) => pages.run(help::complete(Cli::command())),
    };
    done.map(|()| Exit::Fine)
}
