//! The command line: all commands. Each is a module with its flags and its library calls.

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

use std::ffi::OsString;

use clap::{ArgAction, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::environment::{Colours, Environment};
use crate::output::{Context, Look};
use crate::prelude::*;
use crate::{help, stderr, usage};

pub(crate) fn run(command: Command, context: &Context) -> Result<Exit> {
    let done = match command {
        Command::Call(arguments) => return arguments.run(context),
        Command::Show(arguments) => show::run(&arguments, context),
        Command::Serve(arguments) => return serve::run(arguments, context),
        Command::Demo(arguments) => return arguments.run(context),
        Command::Check(arguments) => return check::run(&arguments, context),
        Command::Verify(arguments) => return arguments.run(context),
        Command::Test(arguments) => return arguments.run(context),
        Command::Install(install) => return install.run(context),
        Command::Update(update) => return update.run(context),
        Command::Ledger(command) => return command.run(context),
        Command::Doctor(arguments) => return arguments.run(context),
        Command::Mcp(command) => mcp::run(&command, context),
        #[cfg(feature = "adapters")]
        Command::Import(command) => command.run(context),
        Command::New(arguments) => new::run(&arguments, context),
        Command::Build(arguments) => build::run(&arguments, context),
        Command::Pack(arguments) => pack::run(&arguments, context),
        Command::Inspect(arguments) => inspect::run(&arguments, context),
        Command::List(list) => list.run(context),
        Command::Remove(remove) => remove.run(context),
        Command::Search(search) => search.run(context),
        Command::Trust(command) => command.run(context),
        Command::Publisher(command) => command.run(context),
        Command::Policy(command) => command.run(context),
        Command::Completions(arguments) => arguments.run(&Cli::command()),
        Command::InternalNames(names) => names.run(context),
        Command::InternalManPages(pages) => pages.run(help::complete(Cli::command())),
    };
    done.map(|()| Exit::Fine)
}

const EXIT_CODES: &str = "\
Exit codes:
  0  fine
  1  the tool or a check failed
  2  wrong usage
  3  verification refused
  4  denied by policy";

/// Runs signed agent tools, each call in a fresh sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "toolward",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    after_long_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) style: Style,

    /// Print the version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = ALL_COMMANDS)]
    version: Option<bool>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The heading of the flags that all commands have.
const ALL_COMMANDS: &str = "Global options";

/// How all commands write their output.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = ALL_COMMANDS)]
pub(crate) struct Style {
    /// Write JSON to standard output instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Write no notes and no progress: results, warnings and errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    /// When to write colours [default: on terminals, unless NO_COLOR is set]
    #[arg(long, value_enum, value_name = "WHEN", hide_short_help = true)]
    #[arg(global = true)]
    pub(crate) color: Option<ColorChoice>,

    /// Print the important flags (-h), or all with explanations (--help)
    #[arg(short, long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call a tool
    Call(call::Arguments),
    /// Show a tool: what it takes and gives, its drivers, what it may do here
    Show(show::Arguments),
    /// Serve tools to agents over MCP
    Serve(serve::Arguments),
    /// Watch a hostile tool being stopped, and give three tools to an agent
    Demo(demo::Arguments),
    /// Set MCP clients up
    #[command(subcommand)]
    Mcp(mcp::Command),
    /// Make a new bundle: a contract, a driver and a test
    New(new::Arguments),
    /// Make a bundle from a component or from tool definitions of another host
    #[cfg(feature = "adapters")]
    #[command(subcommand)]
    Import(import::Command),
    /// Check contracts, drivers and bundles, like a compiler
    Check(check::Arguments),
    /// Build a bundle's components
    Build(build::Arguments),
    /// Run the examples of a bundle's contracts against its drivers
    Test(test::Arguments),
    /// Make a bundle from the directory its author works in, and sign it
    Pack(pack::Arguments),
    /// Sign, push and pull bundles, and make a publisher's keys and documents
    #[command(subcommand)]
    Publisher(publisher::Command),
    /// Verify a bundle's signatures and every file in it
    Verify(verify::Arguments),
    /// Show what a bundle contains and asks for
    Inspect(inspect::Arguments),
    /// Install a bundle, so that `call` finds it
    Install(install::Install),
    /// Install new releases of installed bundles, and accept held releases
    Update(install::Update),
    /// List installed bundles
    List(install::List),
    /// Remove an installed bundle
    Remove(install::Remove),
    /// Search tools: installed, or in the index of a channel
    Search(install::Search),
    /// Trust publishers by their documents
    #[command(subcommand)]
    Trust(trust::Command),
    /// Look at what the policy grants, and add to it
    #[command(subcommand)]
    Policy(policy::Command),
    /// Look at the record of calls: list, verify, prove, prune, erase
    #[command(subcommand)]
    Ledger(ledger::Command),
    /// Check this machine and installation
    Doctor(doctor::Arguments),
    /// Write a completion script for a shell
    Completions(completions::Arguments),
    /// Write ids and names for a completion script
    #[command(hide = true)]
    InternalNames(completions::Names),
    /// Write a manual page of each command, for packages
    #[command(hide = true)]
    InternalManPages(completions::ManPages),
}

/// The same command line with only the subcommand `serve`. Describing all subcommands takes a good
/// part of a millisecond, and an agent's client waits for the server to start.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct Serving {
    #[command(flatten)]
    style: Style,

    #[command(subcommand)]
    command: Serve,
}

#[derive(Debug, Subcommand)]
enum Serve {
    Serve(serve::Arguments),
}

impl Cli {
    /// Parses the command line of this process. Writes help and errors itself, and then ends the
    /// process.
    pub(crate) fn of_process() -> Self {
        if std::env::args_os()
            .nth(1)
            .is_some_and(|word| word == "serve")
            && let Ok(serving) = Serving::try_parse()
        {
            let Serve::Serve(arguments) = serving.command;
            return Self {
                style: serving.style,
                version: None,
                command: Command::Serve(arguments),
            };
        }
        let words: Vec<OsString> = std::env::args_os().collect();
        let mut command = help::complete(Self::command()).color(usage::colour(&words));
        let matches = command.try_get_matches_from_mut(&words);
        let cli = matches.and_then(|matches| Self::from_arg_matches(&matches));
        match cli.map_err(|error| usage::hinted(error, &words, &command)) {
            Ok(cli) => cli,
            // Only errors are written as JSON: help is text for people even with `--json`.
            Err(error) if error.use_stderr() && usage::wants_json(&words) => {
                let look = Look {
                    json: true,
                    ..Look::default()
                };
                let _ = Context::new(look, Environment::default())
                    .value(&usage::failure(&error).to_json());
                std::process::exit(error.exit_code());
            }
            Err(error) if error.use_stderr() => {
                let colours = Colours::read().wanted(usage::colour(&words)).stderr;
                stderr::write(usage::for_people(&error, colours));
                std::process::exit(error.exit_code());
            }
            Err(error) => error.exit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_call_takes_signed_bundles_and_one_under_work() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        parse("toolward call t --dev d --set a=1").unwrap();
        parse("toolward call t --bundle b --trust-key k --json").unwrap();
        parse("toolward call t").unwrap();
        parse("toolward call t --dev d --bundle b --trust-key k").unwrap();
        parse("toolward call t --dev d --dev e").unwrap_err();
    }

    #[test]
    fn a_test_runs_unsigned_code_only_where_dev_names_it() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        parse("toolward test --dev d").unwrap();
        parse("toolward test b --trust-key k").unwrap();
        parse("toolward test").unwrap_err();
        parse("toolward test b --dev d").unwrap_err();
        parse("toolward test --dev d --config c").unwrap_err();
        parse("toolward test --bundle b --trust-key k").unwrap();
        parse("toolward test b --bundle b").unwrap_err();
        parse("toolward test --bundle b --dev d").unwrap_err();
    }

    #[test]
    fn no_flag_says_yes_for_a_person() {
        for flag in ["--yes", "-y", "--approve", "--force"] {
            Cli::try_parse_from(["toolward", "call", "t", "--dev", "d", flag]).unwrap_err();
        }
    }

    #[test]
    fn serving_is_described_alone_as_among_all() {
        for line in [
            "toolward serve",
            "toolward serve --stdio --json --bundle b --trust-key k --policy-file p",
            "toolward serve --http 127.0.0.1:0 --no-token --defer-above 7",
            "toolward serve -q --color never",
        ] {
            let Serving { style, command } = Serving::try_parse_from(line.split(' ')).unwrap();
            let Serve::Serve(alone) = command;
            let all = Cli::try_parse_from(line.split(' ')).unwrap();
            let Command::Serve(among) = all.command else {
                panic!("{line}");
            };
            assert_eq!(format!("{style:?}"), format!("{:?}", all.style));
            assert_eq!(format!("{alone:?}"), format!("{among:?}"));
        }
        for line in ["toolward serve --help", "toolward serve --stdio --http 1"] {
            assert!(Serving::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
