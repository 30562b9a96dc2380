//! `publisher`: the documents that a publisher signs besides bundles: its keys,
//! what it revokes, the index of a channel.

mod channel;
mod document;
mod revoke;
mod show;
mod signing;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a publisher's first document: its name, its keys, and how many must
    /// sign
    New(document::New),
    /// Make the next document: keys added, dropped or revoked. The thresholds of
    /// both documents sign it
    Next(document::Next),
    /// Make a list of revoked bundles and keys
    Revoke(revoke::Revoke),
    /// Make the index of a channel: which release of each bundle is current
    Channel(channel::Index),
    /// Add signatures to a document, in place
    Sign(signing::Sign),
    /// Show what a document says, and who claims to have signed it
    Show {
        /// The document
        file: PathBuf,
    },
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::New(new) => new.run(environment, output),
        Command::Next(next) => next.run(environment, output),
        Command::Revoke(revoke) => revoke.run(environment, output),
        Command::Channel(index) => index.run(environment, output),
        Command::Sign(sign) => sign.run(output),
        Command::Show { file } => show::run(file, output),
    }?;
    Ok(Exit::Fine)
}
