//! One module per subcommand: its flags, and the library calls they make.

pub(crate) mod build;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod compile_broker;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod pack;
pub(crate) mod policy;
pub(crate) mod publisher;
pub(crate) mod pull;
pub(crate) mod push;
mod reply;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod test;
pub(crate) mod trust;
pub(crate) mod verify;

use clap::CommandFactory as _;

use crate::arguments::{Cli, Command};
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

pub(crate) fn run(
    command: Command,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match command {
        Command::Call(arguments) => call::run(&arguments, environment, output),
        Command::Serve(arguments) => serve::run(arguments, environment, output),
        Command::Mcp(arguments) => mcp::run(arguments, output),
        Command::New(arguments) => new::run(&arguments, environment, output),
        Command::Check(arguments) => check::run(&arguments, output),
        Command::Build(arguments) => build::run(&arguments, environment, output),
        Command::Pack(arguments) => pack::run(&arguments, environment, output),
        Command::Sign(arguments) => sign::run(&arguments, output),
        Command::Verify(arguments) => verify::run(&arguments, environment, output),
        Command::Inspect(arguments) => inspect::run(&arguments, environment, output),
        Command::Test(arguments) => test::run(&arguments, environment, output),
        Command::Install(install) => install.run(environment, output),
        Command::Update(update) => update.run(environment, output),
        Command::List(list) => list.run(environment, output),
        Command::Remove(remove) => remove.run(environment, output),
        Command::Search(search) => search.run(environment, output),
        Command::Push(push) => push.run(environment, output),
        Command::Pull(pull) => pull.run(environment, output),
        Command::Trust(arguments) => trust::run(&arguments, environment, output),
        Command::Publisher(arguments) => publisher::run(&arguments, environment, output),
        Command::Policy(arguments) => policy::run(&arguments, environment, output),
        Command::Keys(arguments) => keys::run(&arguments, output),
        Command::Doctor(arguments) => doctor::run(&arguments, environment, output),
        Command::Completions(arguments) => completions::run(&arguments, Cli::command()),
        Command::InternalCompileBroker => compile_broker::broker(),
        Command::InternalCompileWorker => compile_broker::worker(),
    }
}
