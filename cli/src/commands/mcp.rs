//! `mcp`: the lines that make a client start or reach this server, and tokens.

mod client;
mod config;
mod token;

use clap::Subcommand;

use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

pub(crate) use client::Client;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the block that makes a client use this server, or write it into the
    /// client's file
    Config(config::Arguments),
    /// Make a token for `serve --tokens`
    Token(token::Arguments),
}

pub(crate) fn run(command: &Command, environment: &Environment, output: &mut Output) -> Result {
    match command {
        Command::Config(arguments) => config::run(arguments, environment, output),
        Command::Token(arguments) => token::run(arguments, output),
    }
}
